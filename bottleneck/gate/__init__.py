"""Gate of `check`: compares a report with expectations and earlier reports; pure.

It imports records, analysis, report, text and the probes' core. Begin with judging.py.
"""
