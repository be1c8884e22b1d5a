"""Agents on both hosts and how the coordinator reaches them: start, requests, replies.

It imports login and the probes; server, requests, request_checks and protocol travel to the other
host. Begin with hosts.py, then server.py.
"""
