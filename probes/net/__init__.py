"""Our own TCP data path: the session's port, the transfers over it, and who limits them."""
