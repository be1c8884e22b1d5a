"""The probes: what is measured, one file a stage; they know nothing of the coordinator."""

STAGES = (
    "loopback",
    "tcp",
    "path",
    "paths",
    "latency",
    "sweep",
    "matrix",
    "udp",
    "disk",
    "smb-copy",
    "smb-matrix",
    "smb-multichannel",
    "smb-tax",
    "small-files",
    "native-copy",
)
"""The stages, in the order in which a run comes to them."""
