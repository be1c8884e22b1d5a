"""TCP connections as the kernel tells of them, and who limits one.

It imports core and system. Begin with sock_diag.py, then limits.py.
"""
