"""The gate: a report held against expectations and an earlier report; pure."""
