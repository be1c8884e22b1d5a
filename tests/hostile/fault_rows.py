"""All rows of the fault matrix, and those that cannot be made on one machine."""

from __future__ import annotations

import fault_rows_files
import fault_rows_hosts
import fault_rows_network
import fault_rows_programs
import fault_rows_server

ROWS = tuple(
    sorted(
        fault_rows_network.ROWS
        + fault_rows_server.ROWS
        + fault_rows_files.ROWS
        + fault_rows_programs.ROWS
        + fault_rows_hosts.ROWS,
        key=lambda row: (int("".join(filter(str.isdigit, row.number))), row.number),
    )
)
NOT_HERE = {
    "8": "a link-local address with its interface: loopback has none that smbd serves",
    "10": "quotas of a file system: this kernel has none; the error itself is row 10's",
    "21": "Kerberos, expired and locked accounts: no domain controller here",
    "24": "a real suspend: the machine has none; the freezer holds the run in row 24",
    "26": "fio of other years: not to be had; their output is played in row 26",
    "40": "a file system without O_TMPFILE: the kernel knows none of them (vfat, NFS)",
    "48": "a real power cut, and write caches: a copy of the live disc stands in, row 48",
}
"""Of a row the part that is not tried, and why."""
