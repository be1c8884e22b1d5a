"""What is made of a report and its diagnosis together: schema, hidden names, trend.

It imports analysis, report, text and the probes' core. Begin with trend.py; redaction/ hides
names.
"""
