"""Measures many clients with many servers, and finds the node that slow pairs share.

It imports records, analysis, report, login and the probes. Begin with run.py, then culprit.py.
"""
