"""The program's way in: `bottleneck`, `python -m bottleneck`."""

from bottleneck import own_modules


def main() -> None:
    """Runs the command line and exits with its code."""
    # Before anything else is imported: `python -m` has put the current folder first.
    own_modules.search_nowhere_else()
    from bottleneck.cli.program import main as run

    run()


if __name__ == "__main__":
    main()
