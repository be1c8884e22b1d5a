"""What a person or a program reads: a diagnosis as text, page, ticket, table or figures.

Nothing is decided here: a section yields blocks (document.py), a renderer shows them. Begin with
answer.py, the one screen.
"""
