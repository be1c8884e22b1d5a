"""Foreign programs, one file each; no other file runs them: fio, Samba's, iperf3, a copy command.

It imports core, system, sockets and files. Begin with fio.py.
"""
