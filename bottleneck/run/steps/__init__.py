"""Steps of a run: copies, disks, network, other stages.

It imports what run imports. Begin with copies.py; schedule.py orders the steps.
"""
