"""What the stages reported, as the rules read it: parsed once, frozen, by name."""
