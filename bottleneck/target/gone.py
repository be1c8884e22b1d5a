"""Options of earlier releases, and what takes their place: refused by one line, for one release."""

SUCCESSORS = {
    "tcp://": "--agent tcp:// was removed: use ssh://[user@]host, or exec:COMMAND",
    "--listen": "agent --listen was removed: use --agent ssh://[user@]host on the client",
    "--any-address": "agent --any-address was removed together with --listen",
    "--history": "--history was removed: write reports with --json into a folder, and use "
    "bottleneck compare FOLDER",
    "history": "bottleneck history was removed: use bottleneck compare FOLDER, of reports that "
    "--json wrote",
    "--idle": "agent --idle was removed together with --listen",
    "ttcp://": "--tcp-peer ttcp:// was removed: use iperf3://host[:port]",
    "--job": "--job was removed: run fio JOBFILE itself, or use --pattern, --block-size, --depth",
    "--cold-from": "--cold-from was removed: use --file FILE to pull a file that is not cached",
}
"""By what was typed."""
