"""Two hosts on this one: namespaces, a link with a planted limit, and a private Samba.

It imports analysis and the probes. Begin with plants.py.
"""
