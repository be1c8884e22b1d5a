"""Parses the target of a run, and finds the credentials to log in there.

It imports the probes alone. Begin with target.py.
"""
