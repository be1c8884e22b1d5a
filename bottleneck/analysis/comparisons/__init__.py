"""What stands side by side in a report, each tested against the noise."""
