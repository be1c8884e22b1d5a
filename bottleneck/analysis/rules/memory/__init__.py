"""The memory of both hosts."""
