"""What is made of a report and its diagnosis together: schema, hidden names, trend, ticket.

It imports analysis, report, text and the probes' core. Begin with ticket_figures.py; redaction/
hides names.
"""
