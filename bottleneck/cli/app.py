"""The command line: which commands there are, and the one place where errors become exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bottleneck import __version__, agent_token, credentials
from bottleneck.cli import completion, configured, debt, exits, interrupts
from bottleneck.cli.agent import agent
from bottleneck.cli.check import check
from bottleneck.cli.cleanup import cleanup
from bottleneck.cli.compare import compare
from bottleneck.cli.config import config
from bottleneck.cli.demo import demo
from bottleneck.cli.diagnose import diagnose
from bottleneck.cli.doctor import doctor
from bottleneck.cli.estimate import estimate
from bottleneck.cli.explain import explain
from bottleneck.cli.history import history
from bottleneck.cli.probe import probe
from bottleneck.cli.schema import schema
from bottleneck.cli.watch import watch

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
for command in (
    diagnose,
    demo,
    probe,
    watch,
    explain,
    check,
    compare,
    estimate,
    agent,
    schema,
    history,
    config,
    doctor,
    cleanup,
):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"bottleneck {__version__}")
        raise typer.Exit


def _show_completion(shell: str | None) -> None:
    if shell is not None:
        print(completion.script(shell))
        raise typer.Exit


def _install_completion(shell: str | None) -> None:
    if shell is not None:
        print(f"{completion.install(shell)} is written; a new {shell} completes")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    show_completion: Annotated[
        str | None,
        typer.Option(
            "--show-completion",
            metavar="SHELL",
            callback=_show_completion,
            is_eager=True,
            help="Show the completion script of bash, zsh, fish or powershell.",
            autocompletion=completion.one_of(*completion.SHOWN),
        ),
    ] = None,
    install_completion: Annotated[
        str | None,
        typer.Option(
            "--install-completion",
            metavar="SHELL",
            callback=_install_completion,
            is_eager=True,
            help="Install it for this user's bash, zsh or fish.",
            autocompletion=completion.one_of(*completion.INSTALLED),
        ),
    ] = None,
) -> None:
    """What is answered without a command."""


def run(arguments: list[str]) -> int:
    """Runs one command; its exit code. No ending of it is a traceback, and each has its report."""
    # Before anything is started: no process of ours inherits it.
    credentials.take_from_environment()
    agent_token.take_from_environment()
    debt.owe(arguments)
    exits.said.clear()
    try:
        with interrupts.let_through():
            code, sentence = _run(arguments)
    except KeyboardInterrupt:
        code, sentence = exits.INTERRUPTED, "interrupted"
    if sentence:
        if not exits.said:
            exits.complain(sentence)
        _settle("interrupted" if code == exits.INTERRUPTED else "failed", sentence)
    return _answered(arguments, code, sentence) if arguments[:1] == ["check"] else code


def _answered(arguments: list[str], code: int, sentence: str) -> int:
    """The ending of a check: a monitoring system reads stdout, and knows 0 to 3 alone."""
    try:
        from bottleneck.cli import answers

        return answers.ended(arguments, code, sentence)
    except (Exception, KeyboardInterrupt) as error:
        exits.complain(f"no answer could be given: {type(error).__name__}")
        return exits.INCOMPLETE


def _settle(status: str, sentence: str) -> None:
    try:
        debt.owed.settle(status, sentence)
    except KeyboardInterrupt:
        # Asked for more than once: whoever waits has had enough.
        exits.abandon_stdout()


def _run(arguments: list[str]) -> tuple[int, str]:
    """Exit code of a command, and what is left to say about it."""
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        refuse_passwords(arguments)
        completion.get_ready()
        defaults = configured.default_map(app, arguments)
        code = app(arguments, prog_name="bottleneck", standalone_mode=False, default_map=defaults)
        sys.stdout.flush()
    except usage_error as error:
        return _usage(error)
    except typer.Abort:
        return exits.INTERRUPTED, "interrupted"
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != 1:
            return (error.code if isinstance(error.code, int) else exits.DONE), ""
        # typer and rich end with 1 where whoever read our output has enough.
        exits.abandon_stdout()
        return exits.DONE, ""
    except Exception as error:
        if interrupts.is_behind(error):
            return exits.INTERRUPTED, "interrupted"
        return exits.of_error(error)
    if code == exits.INTERRUPTED and not exits.said:
        # typer makes this code of a KeyboardInterrupt, without a word.
        return code, "interrupted"
    return (code if isinstance(code, int) else exits.DONE), ""


def _usage(error: Exception) -> tuple[int, str]:
    text = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        print(text)
        return exits.USAGE, ""
    return exits.USAGE, f"{text} ('bottleneck --help' lists commands and options)"


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
