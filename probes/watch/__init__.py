"""Copies of other programs, watched from outside: what their threads wait for, their connections.

It imports core, system, sockets and files. Begin with running_copies.py, then thread_calls.py.
"""
