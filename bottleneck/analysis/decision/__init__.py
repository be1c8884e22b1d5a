"""From the facts of a copy to its verdict: one formula over the facts, one table of causes.

Begin with weigh.py: how likely each component is the cap. causes.py says what is behind it,
verdict.py puts both together.
"""
