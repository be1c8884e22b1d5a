"""Our own data path over SMB: login by a library, READ and WRITE in our own pipes.

It imports core, system, sockets, files and programs. Begin with session.py, then pipe.py.
"""
