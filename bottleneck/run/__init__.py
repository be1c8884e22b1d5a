"""A run: its plan, the hosts and results so far, each kind of step, watching, the demo.

It imports agents, analysis, report, target, text and the probes. Begin with session.py.
"""
