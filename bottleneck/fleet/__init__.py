"""Many clients, many servers: which pairs are measured when, and what slow pairs share; pure."""
