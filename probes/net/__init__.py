"""Our own data path over TCP and UDP: the session's port, and the transfers over it.

It imports core, system, sockets, files and host. Begin with port.py, then transfer.py.
"""
