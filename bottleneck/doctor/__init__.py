"""What a run would find on both hosts, and what killed runs left: leftovers.py alone removes.

It imports agents, target, text and the probes. Begin with look.py, then leftovers.py.
"""
