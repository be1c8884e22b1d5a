"""The path between the hosts."""
