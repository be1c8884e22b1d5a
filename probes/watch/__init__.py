"""Copies of other programs, watched from outside: their connections, threads and files.

It imports core, system, sockets and files. Begin with running_copies.py, then socket_watch.py.
"""
