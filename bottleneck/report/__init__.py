"""The Report of one run: loaded, saved and checked; files of documents, written safely.

It imports the probes' core, files and system. Begin with report.py.
"""
