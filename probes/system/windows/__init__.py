"""Windows: POSIX's calls as far as this program uses them. Imported on Windows alone."""
