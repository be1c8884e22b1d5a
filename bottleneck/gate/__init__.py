"""The gate of `check`: a report held against expectations and earlier reports; pure.

It imports records, analysis, report, text and the probes' core. Begin with judging.py.
"""
