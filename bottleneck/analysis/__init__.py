"""Report to Diagnosis, by pure functions: the same report always gives the same words.

It imports report, text and the probes' core. Begin with diagnosis.py; each cause that a verdict
names is a file below rules/.
"""
