"""What a run would find here and there: looks.py asks, judge.py judges; nothing is written."""
