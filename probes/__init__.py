"""The probes: what is measured, one file a stage; they know nothing of the coordinator."""

STAGES = (
    "loopback",
    "tcp",
    "sweep",
    "latency",
    "matrix",
    "udp",
    "path",
    "disk",
    "smb-copy",
    "smb-matrix",
    "smb-tax",
    "small-files",
    "native-copy",
)
"""The stages, in the order of a report."""
