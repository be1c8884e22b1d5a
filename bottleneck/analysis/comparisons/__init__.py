"""Comparisons of a report's measurements with each other, each tested against the noise."""
