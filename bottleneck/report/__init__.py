"""The Report: what one run measured, loaded, saved and checked; the files that documents become.

It imports the probes' core. Begin with report.py.
"""
