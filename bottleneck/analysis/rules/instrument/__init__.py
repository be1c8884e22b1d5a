"""This tool itself."""
