"""TCP: what the sockets of both ends let through."""
