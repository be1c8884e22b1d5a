"""What cards and disks are plugged into."""
