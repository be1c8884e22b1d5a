"""What every stage is made with: records, what a stage is, and foreign values made records.

It imports nothing of this project. Begin with records.py, then stage.py.
"""
