"""Documents for a person or a program: a diagnosis as text, page, ticket, table or figures.

Nothing is decided here: a section yields blocks (document.py), a renderer shows them. It imports
fleet, gate, records, analysis, report, text and the probes' core. Begin with answer.py, the one
screen.
"""
