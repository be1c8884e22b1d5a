"""Schema, redaction and trend of reports and their diagnoses.

It imports analysis, report, text and the probes' core. Begin with trend.py; redaction/ hides
names.
"""
