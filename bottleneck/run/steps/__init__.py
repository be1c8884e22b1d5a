"""Carrying steps out, one file a kind: network, disks, copies."""
