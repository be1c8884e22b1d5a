"""The disks that a copy is read from and written to."""
