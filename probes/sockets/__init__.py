"""TCP connections as the kernel reports them, and which end limits one.

It imports core and system. Begin with sock_diag.py, then limits.py.
"""
