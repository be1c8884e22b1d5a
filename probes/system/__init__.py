"""The operating system: processes and children, /proc, netlink, tools, and what Windows has of it.

It imports core. Begin with child.py, then proc.py.
"""
