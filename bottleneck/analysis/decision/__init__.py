"""Decides from the facts of a copy what caps it: one formula over the facts, one table of causes.

Begin with weigh.py, the likelihood of each component. causes.py finds the cause behind it, and
verdict.py puts both together.
"""
