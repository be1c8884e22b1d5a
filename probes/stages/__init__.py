"""What is measured, one file a stage; probes.STAGES lists them.

It imports all other rooms of probes. Begin with tcp.py, and with core/stage.py, which says what a
stage is.
"""
