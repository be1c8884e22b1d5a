"""Our own data path on the SMB libraries' authenticated sessions."""
