"""Details and settings of a report's stages, parsed once and frozen, as the rules read them."""
