"""Outputs of iperf3, fio, ping, smbclient, rsync, robocopy, dd, diskspd and ss, as observations.

It imports estimate, report, text, and the probes' core. Begin with registry.py.
"""
