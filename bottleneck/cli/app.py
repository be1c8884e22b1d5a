"""The command line: its commands, their help, and where errors become exit codes."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from bottleneck import __version__
from bottleneck.cli import command_line, completion, exits, interrupts, knobs
from bottleneck.cli.agent import agent
from bottleneck.cli.check import check
from bottleneck.cli.cleanup import cleanup
from bottleneck.cli.config import config
from bottleneck.cli.demo import demo
from bottleneck.cli.diagnose import diagnose, probe
from bottleneck.cli.doctor import doctor
from bottleneck.cli.estimate import estimate
from bottleneck.cli.explain import compare, explain
from bottleneck.cli.fleet import fleet
from bottleneck.cli.options import expanded_command
from bottleneck.cli.watch import watch
from bottleneck.login.target import SUCCESSORS
from probes import STAGES
from probes.core.stage import Refused, module_of

if TYPE_CHECKING:
    from bottleneck.cli.configuration import Value

LAST_HEADING = "Options"
"""Heading of options that have no group, such as --help; it comes last."""
COMMON = "Common options"
USUAL = ("user", "auth_file", "agent", "folder", "file", "size", "budget", "json", "html", "yes")
"""Options of `diagnose` that its help begins with."""
_PANELS = "Login,Hosts and agents,Copies,Disk,Time,Output".split(",")
HEADINGS = ("Arguments", COMMON, *_PANELS, LAST_HEADING)
PRINTING = ("", "schema")
"""Commands that only print, and no command at all."""
NEEDS = {"share": " (//host/share)", "mount": " (a mounted folder)", "server": " (--agent)"}
"""Requirement of a stage in words, by its Need."""
SHORT_HELP = {"help_option_names": ["-h", "--help"]}
NAS = "//nas/media --user alice --agent ssh://nas"
EXAMPLES = {
    "": ("demo", f"diagnose {NAS}"),
    "diagnose": (f"diagnose {NAS}", "diagnose /mnt/media --yes --html report.html"),
    "demo": ("demo", "demo --quick --html demo.html"),
    "probe": ("probe tcp //nas/media --agent ssh://nas", "probe disk --device /dev/sdb --zones 16"),
    "watch": ("watch", "watch 4711 --agent ssh://nas --seconds 30"),
    "explain": ("explain report.json --verbose", "explain report.json --format ticket --redact"),
    "check": (
        "check //nas/media --user alice --yes --crit 'headline < 50MB/s'",
        "check --report 'runs/*.json' --max-age 26h --format nagios",
    ),
    "compare": ("compare before.json after.json", "compare runs/ --format json"),
    "estimate": (
        "estimate pull --link 1Gbit/s --rtt 20ms --disk-read hdd",
        "estimate push --link 10Gbit/s --mtu 9000 --disk-write nvme",
    ),
    "fleet": (
        "fleet --reports runs/ --html fleet.html",
        "fleet hosts.yml --share //nas1/media --share //nas2/media --plan",
    ),
    "agent": ("agent --folder /srv/media", "agent --folder /srv/media --device /dev/sda"),
    "schema": ("schema", "schema > report.schema.json"),
    "config": ("config", "config diagnose"),
    "doctor": ("doctor", f"doctor {NAS}"),
    "cleanup": ("cleanup --dry-run", "cleanup //nas/media --agent ssh://nas --older-than 0"),
}
"""Arguments after `bottleneck`, by command; those of the program under the empty name."""
HOW_MEASURED = {
    "tcp": "A push from this host comes first, then a pull. Without --streams, one connection "
    "comes first, then four. Without an SMB login: of TARGET, only the host is used.",
    "udp": "A push from this host comes first (as iperf3 -u), then a pull (as iperf3 -u -R). "
    "Without an SMB login: of TARGET, only the host is used.",
    "disk": "Writes a test file in --folder, reads it past the page cache (as fio --direct=1) and "
    "removes it. With --device it only reads.",
    "smb-copy": "Pushes and pulls a test file. The sender has it in its memory (cached) or only on "
    "its disk (uncached). With --copy file, only FILE is copied, to --folder or to the share, from "
    "wherever the sender has it, and the copy is removed.",
}
"""Further help of each stage."""
SECOND_EXAMPLES = {
    "tcp": "//nas/media --agent ssh://nas --direction pull",
    "udp": "//nas/media --agent ssh://nas --rate 500Mbit/s",
    "disk": "--pattern random --block-size 4KiB --access read",
    "smb-copy": "//nas/media --copy file --file films/big.iso",
}
"""Arguments of the second example of `probe STAGE`, by stage."""


def examples(command: str) -> str:
    """Returns the end of a command's help; click keeps lines of a block that begins with \\b."""
    lines = (f"  bottleneck {each}" for each in EXAMPLES.get(command, ()))
    return "\n".join(("\b", "Examples:", *lines))


class Command(TyperCommand):
    """A command whose help names the group of each option."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the usage as the man page has it: optional words in brackets, others bare."""
        arguments = (each for each in self.params if isinstance(each, TyperArgument))
        names = [each.metavar or "" for each in arguments]
        stage = knobs.stage_of(command_line.current().line)
        if stage is not None:
            names = [stage, "TARGET" if module_of(stage).STAGE.needs else "[TARGET]"]
        return ["[OPTION]...", *names]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Writes the description; for `probe STAGE` that of the stage."""
        stage = knobs.stage_of(command_line.current().line)
        if stage is None:
            super().format_help_text(ctx, formatter)
            return
        formatter.write("\n")
        text = f"{_stage_text(stage)} {HOW_MEASURED.get(stage, '')}".rstrip()
        formatter.write(_lines("  ", text, formatter.width))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples; for `probe STAGE` those of the stage."""
        stage = knobs.stage_of(command_line.current().line)
        if stage is None:
            super().format_epilog(ctx, formatter)
            return
        with formatter.section("Examples"):
            formatter.write(f"  bottleneck probe {stage} {_hosts_of(stage)}".rstrip() + "\n")
            if stage in SECOND_EXAMPLES:
                formatter.write(f"  bottleneck probe {stage} {SECOND_EXAMPLES[stage]}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments, then each group under its heading, all in the same two columns.

        For `probe` without a stage a line for each stage; for `diagnose` the usual options first.
        """
        line = command_line.current().line
        stage = knobs.stage_of(line)
        if self.name == "probe" and stage is None:
            _write_stages(formatter)
            return
        groups: dict[str, list[tuple[str, str]]] = {}
        others = knobs.useless_parameters(line)
        usual = USUAL if self.name == "diagnose" else ()
        for each in self.get_params(ctx):
            if each.name in others or (each.name == "stage" and stage):
                continue
            if isinstance(each, TyperArgument):
                argument = ((each.metavar or "").strip("[]"), each.help or "")
                groups.setdefault("Arguments", []).append(argument)
            elif isinstance(each, TyperOption) and (row := each.get_help_record(ctx)):
                panel = COMMON if each.name in usual else each.rich_help_panel
                groups.setdefault(panel or LAST_HEADING, []).append(row)
        columns = max(len(flags) for rows in groups.values() for flags, _ in rows)
        for heading in sorted(
            groups, key=HEADINGS.index if usual else lambda name: name == LAST_HEADING
        ):
            with formatter.section(heading):
                for flags, text in groups[heading]:
                    formatter.write(_lines(f"  {flags:<{columns}}  ", text, formatter.width))


def _write_stages(formatter: Any) -> None:
    with formatter.section("Stages"):
        for name in STAGES:
            formatter.write(_lines(f"  {name:<16}  ", _stage_text(name), formatter.width))
    formatter.write("\nOptions of a stage: bottleneck probe STAGE --help\n")


def _stage_text(name: str) -> str:
    """Returns what a stage measures, and what it needs."""
    stage = module_of(name).STAGE
    needs = next((hint for need, hint in NEEDS.items() if need in stage.needs), "")
    return f"{stage.measures[:1].upper()}{stage.measures[1:]}{needs}."


def _hosts_of(stage: str) -> str:
    """Returns the arguments after `probe STAGE` in an example: the hosts that the stage needs."""
    needs = module_of(stage).STAGE.needs
    if "mount" in needs:
        return "/mnt/media"
    words = ["//nas/media"] * bool({"share", "server"} & set(needs))
    words += ["--user alice"] * ("share" in needs) + ["--agent ssh://nas"] * ("server" in needs)
    return " ".join(words)


def _lines(begin: str, text: str, width: int) -> str:
    """Returns the text beside its flags; no option's name is broken, as click does at a hyphen."""
    lines = textwrap.wrap(text, width - len(begin), break_on_hyphens=False)
    return begin + ("\n" + " " * len(begin)).join(lines) + "\n"


app = typer.Typer(
    name="bottleneck",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SHORT_HELP,
    help="Find out why a file copy to or from an SMB share is slow. Measures disks, CPUs, network "
    "and SMB on both hosts and names the bottleneck.",
    epilog="Exit codes: 0 done; 3 done, but a test is missing or the verdict is inconclusive; "
    "64 wrong usage; 69 host or agent not reachable; 70 internal error; 77 no login or "
    f"permission; 130 Ctrl-C. check has its own.\n\n{examples('')}",
)


def schema() -> int:
    """Print the JSON Schema of a report."""
    import json

    from bottleneck.records import schema as report_schema

    print(json.dumps(report_schema.schema(), indent=1))
    return exits.DONE


_FIRST = (diagnose, demo, probe, watch, explain, check, compare, estimate)
COMMANDS = (*_FIRST, fleet, agent, schema, config, doctor, cleanup)


def _version(flag: bool) -> None:
    if flag:
        print(f"bottleneck {__version__}")
        raise typer.Exit


def _show_completion(shell: str | None) -> None:
    if shell is not None:
        print(completion.script(shell))
        raise typer.Exit


def _install_completion(shell: str | None) -> None:
    if shell is not None:
        print(completion.install(shell))
        raise typer.Exit


def _shell_option(answer: Callable[[Any], None], help: str, *shells: str) -> Any:
    """Returns an option that takes a shell's name and is answered before any command."""
    name, words = f"--{answer.__name__[1:].replace('_', '-')}", completion.one_of(*shells)
    return typer.Option(
        name, metavar="SHELL", callback=answer, is_eager=True, help=help, autocompletion=words
    )


_SHOW = "Print the completion script for bash, zsh, fish or powershell."
_INSTALL = "Install completion for bash, zsh or fish, for this user."
Show = Annotated[str | None, _shell_option(_show_completion, _SHOW, *completion.SHOWN)]
Install = Annotated[str | None, _shell_option(_install_completion, _INSTALL, *completion.INSTALLED)]


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
    show_completion: Show = None,
    install_completion: Install = None,
) -> None:
    """Takes the options that are answered without a command."""


@cache
def tree(with_options: bool = True) -> TyperGroup:
    """Returns the commands as click has them; without their options for the program's own help."""
    app.registered_commands.clear()
    for command in COMMANDS:
        texts: dict[str, Any] = {"help": command.__doc__, "epilog": examples(command.__name__)}
        add = app.command(command.__name__, cls=Command, context_settings=SHORT_HELP, **texts)
        add(expanded_command(command) if with_options else lambda: None)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; every ending is reported, none is a traceback."""
    group = tree(False) if arguments in (["-h"], ["--help"]) else tree()
    command_line.begin(command_line.read(group, arguments))
    try:
        with interrupts.let_through():
            code, sentence = _run(group, list(command_line.current().line.arguments))
    except KeyboardInterrupt:
        code, sentence = exits.INTERRUPTED, "interrupted"
    except OSError as error:
        exits.abandon()
        code, sentence = exits.INCOMPLETE, f"stdout: {error.strerror}; the result was not written"
    if sentence:
        if not exits.complaints:
            exits.complain(sentence, visible=not command_line.current().plugin)
        _write_pending_documents("interrupted" if code == exits.INTERRUPTED else "failed", sentence)
    return _answer_check(code, sentence) if command_line.current().line.command == "check" else code


def _answer_check(code: int, sentence: str) -> int:
    """Returns the exit code of a check: a monitoring system reads stdout, and knows only 0 to 3."""
    try:
        from bottleneck.cli import check_runs

        return check_runs.answer_end(code, sentence)
    except (Exception, KeyboardInterrupt) as error:
        exits.complain(f"cannot report the result: {type(error).__name__}")
        return exits.INCOMPLETE


def _write_pending_documents(status: str, sentence: str) -> None:
    from bottleneck.cli import documents

    try:
        documents.write_pending(status, sentence)
    except KeyboardInterrupt:
        # Interrupted more than once: the user does not want to wait.
        exits.abandon()


def _run(group: TyperGroup, arguments: list[str]) -> tuple[int, str]:
    """Returns the exit code of a command, and what is left to say about it."""
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        refuse_numeric_bottleneck()
        command_line.current().line.check()
        completion.get_ready()
        code = group.main(
            arguments, prog_name="bottleneck", standalone_mode=False, default_map=_defaults()
        )
        sys.stdout.flush()
    except usage_error as error:
        return _usage(error)
    except typer.Abort:
        return exits.INTERRUPTED, "interrupted"
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != 1:
            return (error.code if isinstance(error.code, int) else exits.DONE), ""
        # typer and rich end with 1 where the reader of our output has gone.
        exits.abandon()
        return exits.DONE, ""
    except Exception as error:
        if interrupts.is_behind(error):
            return exits.INTERRUPTED, "interrupted"
        line = command_line.current().line
        if isinstance(error, OSError) and (line.asks_for_help or line.command in PRINTING):
            raise
        return exits.exit_of_error(error)
    if code == exits.INTERRUPTED and not exits.complaints:
        # typer makes this code of a KeyboardInterrupt, without a word.
        return code, "interrupted"
    return (code if isinstance(code, int) else exits.DONE), ""


def refuse_numeric_bottleneck() -> None:
    """Raises Refused, "usage", where PyPI's numeric package of our import name is here too."""
    # importlib.metadata would be a fifth of a command's start.
    matches = (each for folder in sys.path for each in Path(folder).glob("[Bb]ottleneck-*.*-info"))
    if (match := next(matches, None)) is None:
        return
    version = match.stem.partition("-")[2]
    raise Refused(
        "usage",
        f"cannot run beside the numeric package Bottleneck {version}, which has files of the same "
        "names; install this program separately: uv tool install . in a clone of it",
    )


def _defaults() -> dict[str, dict[str, Value]]:
    """Returns click's default_map: the configured values of options that were not given."""
    line = command_line.current().line
    if not line.command or line.asks_for_help:
        return {}
    with interrupts.defer():
        from bottleneck.cli import configuration

        # This imports platformdirs, too.
        configuration.sources(os.environ)
    pending = command_line.current()
    pending.settings = configuration.default_map(tree(), line)
    if pending.redaction is not None:
        pending.redaction.options(pending.settings)
    return {line.command: pending.settings}


def _usage(error: Exception) -> tuple[int, str]:
    text = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        print(text, flush=True)
        return exits.USAGE, ""
    typed = getattr(error, "option_name", "") or "".join(command_line.current().line.arguments[:1])
    if typed in SUCCESSORS:
        return exits.USAGE, SUCCESSORS[typed]
    command = " ".join(("bottleneck", command_line.current().line.command)).rstrip()
    return exits.USAGE, f"{text[:1].lower()}{text[1:].rstrip('.')}; see '{command} --help'"
