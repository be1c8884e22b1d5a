"""The command line: which commands there are, and the one place where errors become exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from bottleneck import __version__
from bottleneck.cli import exits
from bottleneck.cli.agent import agent
from bottleneck.cli.demo import demo
from bottleneck.cli.diagnose import diagnose
from bottleneck.cli.explain import explain
from bottleneck.cli.probe import probe
from bottleneck.cli.schema import schema

app = typer.Typer(
    name="bottleneck",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Why is this file copy slow? Measures every stage of an SMB copy on both hosts and names "
    "the component that caps it.",
    epilog="Exit codes: 0 done, 3 done but a stage is missing or the verdict is inconclusive, "
    "64 usage, 69 host or agent not reachable, 70 internal, 77 login or permission, 130 Ctrl-C.",
)
for command in (diagnose, demo, probe, explain, agent, schema):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"bottleneck {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Nothing but --version."""


def run(arguments: list[str]) -> int:
    """Runs one command; its exit code. No ending of it is a traceback."""
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        refuse_passwords(arguments)
        code = app(arguments, prog_name="bottleneck", standalone_mode=False)
        sys.stdout.flush()
    except usage_error as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        exits.complain("interrupted")
        return exits.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough; the interpreter must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return exits.DONE
    except Exception as error:
        return _known(error)
    return code if isinstance(code, int) else exits.DONE


def _usage(error: Exception) -> int:
    text = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        print(text)
    else:
        exits.complain(f"{text} ('bottleneck --help' lists commands and options)")
    return exits.USAGE


def _known(error: Exception) -> int:
    from bottleneck.report import ReportError
    from probes.stage import Refused

    if isinstance(error, Refused):
        exits.complain(error.text)
        return exits.OF_REFUSAL[error.kind]
    if isinstance(error, ReportError):
        exits.complain(str(error))
        return exits.USAGE
    exits.complain(f"internal error: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    if os.environ.get("BOTTLENECK_DEBUG"):
        raise error
    return exits.INTERNAL


def refuse_passwords(arguments: list[str]) -> None:
    """Refuses a password among the arguments: everybody on the host could read it there."""
    from probes.stage import Refused

    for argument in arguments:
        name = argument.partition("=")[0]
        if name in {"--password", "--pass", "-p"}:
            raise Refused(
                "usage",
                f"{name}: arguments are seen by everybody on this host; use --auth-file F, "
                "the environment's BOTTLENECK_PASSWORD, or the prompt",
            )
