"""What a run would find on both hosts, and `cleanup` of what killed runs left.

Only leftovers.py removes anything. It imports agents, target, text and the probes. Begin with
look.py, then leftovers.py.
"""
