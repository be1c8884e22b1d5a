"""Many clients, many servers: which pairs are measured when, and what slow pairs share.

It imports records, analysis, report, target and the probes. Begin with run.py, then culprit.py.
"""
