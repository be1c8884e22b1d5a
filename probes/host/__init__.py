"""Facts and counters of a host: cores, memory, interfaces, control groups, its own SMB client.

It imports core, system, sockets, files and programs. Begin with facts.py.
"""
