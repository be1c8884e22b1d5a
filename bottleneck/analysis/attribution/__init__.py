"""Where a copy's time went, and whom that names: pure, from the trace that a copy left.

A stage of the chain (the sender's disk and CPU, the path, the receiver's CPU and disk) limits the
copy while it has work: neither starved by the stage before it nor blocked by the one behind.
Begin reading in attribution.py.
"""
