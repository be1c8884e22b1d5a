"""What is made of a report and its diagnosis together: schema, hidden names, trend, ticket.

It imports analysis, the report and the rooms below them. Begin with ticket_figures.py.
"""
