"""Basis of every stage: the records, the description of a stage, foreign values into records.

It imports nothing of this project. Begin with records.py, then stage.py.
"""
