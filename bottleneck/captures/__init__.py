"""Packet captures: the copies in a file of packets, and whose turn it was at each moment.

It imports report, text and the probes. Begin with capture.py, then turns.py.
"""
