"""Slots and buses of cards and disks."""
