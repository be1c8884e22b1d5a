"""The program, from its start to its exit code: `bottleneck`, `python -m bottleneck`."""

import sys

from bottleneck.agents import own_modules


def main() -> None:
    """Runs the command line and exits with its code."""
    # Before anything else is imported: `python -m` has put the current folder first.
    own_modules.search_nowhere_else()
    from bottleneck.cli import interrupts, streams

    # First of all: from here on no signal can end the program without its last words.
    interrupts.hold()
    from probes.system.child import keep_private

    # Before anything else is imported or started: no process of ours inherits a secret.
    keep_private()
    from bottleneck.login import credentials

    credentials.take_from_environment()
    streams.open_missing()
    streams.obey_locale()
    streams.refuse_block_devices()
    from bottleneck.cli.app import run
    from probes.system import tools

    tools.keep_to_safe_folders()

    code = run(sys.argv[1:])
    # The interpreter's own end would show a traceback.
    interrupts.ignore()
    sys.exit(code)


if __name__ == "__main__":
    main()
