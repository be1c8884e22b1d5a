"""The processors of both hosts."""
