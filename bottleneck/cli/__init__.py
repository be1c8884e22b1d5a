"""The commands: the only place that knows typer and exit codes."""
