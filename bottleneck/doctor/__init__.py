"""What a run would find here and there: look.py asks, checks.py judges; nothing is written."""
