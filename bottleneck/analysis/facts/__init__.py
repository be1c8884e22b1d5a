"""Collects facts of a few kinds about the components that a copy passes, and signs of causes.

Begin with record.py; gather.py collects them from a report. Nothing else reads a report for a
verdict.
"""
