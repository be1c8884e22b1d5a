"""Figures that a person supplies in a file, made a Report like any other.

It imports analysis, report, text, and the probes' core and net. Begin with observations.py.
"""
