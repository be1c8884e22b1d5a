"""What the disk stage measures, one room a pattern."""
