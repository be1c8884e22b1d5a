"""Reading and readying this machine."""
