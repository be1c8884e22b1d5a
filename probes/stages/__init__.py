"""The stages of a measurement, one file each; probes.STAGES lists them.

It imports all other rooms of probes. Begin with tcp.py, and with core/stage.py, which defines a
stage.
"""
