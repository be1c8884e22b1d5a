"""What was asked for, who logs in, and options that are no more with what took their place.

It imports the probes alone. Begin with target.py.
"""
