"""What a run would find here and there (look.py asks, checks.py judges), and what killed runs left.

Nothing is written; leftovers.py alone removes, and only what this program made.
"""
