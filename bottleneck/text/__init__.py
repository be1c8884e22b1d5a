"""Quantities to words and back, and foreign text made safe to show.

It imports nothing of this project. Begin with units.py.
"""
