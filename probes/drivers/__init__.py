"""Foreign engines, each behind one narrow interface."""
