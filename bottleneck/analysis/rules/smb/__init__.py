"""The protocol, its dialects, and the programs that speak it."""
