"""Schema, redaction and trend: documents made of a report and its diagnosis.

It imports analysis, report, text and the probes' core. Begin with trend.py; redaction/ hides
names.
"""
