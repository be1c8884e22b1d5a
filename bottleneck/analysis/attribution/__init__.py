"""Attributes a copy's time to the stages of its chain, from the trace that the copy left.

A stage of the chain (the sender's disk and CPU, the path, the receiver's CPU and disk) limits the
copy while it has work: neither starved by the stage before it nor blocked by the one behind.
Begin reading in attribution.py.
"""
