"""The probes: what is measured, and what that takes; they know nothing of `bottleneck`.

Begin with stages/tcp.py.
"""

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
    "listing",
    "parallel",
    "native-copy",
)
"""The stages, in the order in which a run comes to them."""
