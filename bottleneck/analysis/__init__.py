"""Report to Diagnosis, by pure functions: the same report always gives the same words."""
