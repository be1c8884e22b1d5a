"""The Report: what one run measured, loaded, saved and checked; the files of documents.

It imports the probes' core, files and system. Begin with report.py.
"""
