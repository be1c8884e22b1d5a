"""The commands, one module each: the only place that knows typer, argv and exit codes.

It imports all other rooms. Begin with app.py, then diagnose.py; options.py has the options.
"""
