"""What is known of one copy, as facts of four kinds about the components on its way, and signs.

Begin with record.py; gather.py collects them from a report. Nothing else reads a report for a
verdict.
"""
