"""Checks both hosts and the share before a run; removes the leftovers of killed runs.

Only leftovers.py removes anything. It imports agents, login, text and the probes. Begin with
look.py, then leftovers.py.
"""
