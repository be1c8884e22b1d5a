"""How each kind of step is carried out: copies, disks, network, other stages.

It imports what run imports. Begin with copies.py; schedule.py makes what doubts.py of analysis asks
for.
"""
