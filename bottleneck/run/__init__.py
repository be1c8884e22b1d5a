"""A run: its plan, hosts, log and steps; watching of running copies; the demo.

It imports agents, analysis, report, login, text and the probes. Begin with execution.py.
"""
