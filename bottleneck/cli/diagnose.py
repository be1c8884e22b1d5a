"""The commands that measure copies and stages: `diagnose` and `probe`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bottleneck.cli import completion, interrupts, options
from bottleneck.documents.formats import KINDS
from probes import STAGES

if TYPE_CHECKING:
    from bottleneck.cli.documents import Output
    from bottleneck.run.plan import Options
    from probes.core.stage import Stage as StageDescription

TARGET_HELP = "//host[:port]/share[/folder], smb://... or a folder of a mounted share."
Target = Annotated[str, typer.Argument(metavar="TARGET", help=TARGET_HELP)]


def diagnose(
    target: Target,
    login: options.Login,
    ends: options.Ends,
    others: options.Others,
    disk: options.Disk,
    copies: options.Copies,
    requests: options.Requests,
    time: options.Time,
    goal: options.Goal,
    *,
    outputs: options.Documents,
    yes: options.Yes = False,
    screen: options.Screen,
) -> int:
    """Find the bottleneck of copies to and from TARGET.

    Measures disks, CPUs, network and SMB separately, then copies test files.
    The password comes from --auth-file, BOTTLENECK_PASSWORD or a prompt.
    """
    with interrupts.defer():
        from bottleneck.cli import documents, knobs, loading, measuring
        from probes.core.stage import Refused

    output = documents.output(documents.add_report(outputs), screen)
    output = replace(output, keeps=output.on_stdout != "json")
    setup = measuring.choose(target, measuring.budget_seconds(time), ends, copies, others, disk)
    if requests.words and setup.target.path:
        raise Refused("usage", "--request-size and --depth: TARGET must be //host/share")
    setup = replace(
        setup,
        target_rate_bytes_per_second=loading.target_rate(goal.target_rate),
        copy_settings=knobs.settings("smb-copy", requests.words),
    )
    access = measuring.log_in_as(login, setup.target)
    measuring.ask_first(setup, yes)
    return measuring.run(setup, access, output)


Stage = Annotated[
    str,
    typer.Argument(
        metavar="STAGE",
        help=f"One of {', '.join(STAGES)}.",
        autocompletion=completion.one_of(*STAGES),
    ),
]
StageTarget = Annotated[str | None, typer.Argument(metavar="[TARGET]", help=TARGET_HELP)]


ProbeFormat = Annotated[
    str, options.format_of("text", *KINDS, help=f"Format of stdout: text, {', '.join(KINDS)}.")
]


def probe(
    stage: Stage,
    target: StageTarget = None,
    *,
    login: options.Login,
    ends: options.Ends,
    others: options.Others,
    disk: options.Disk,
    copies: options.Copies,
    one: options.OneCopy,
    choices: options.Knobs,
    repeats: options.Repeats,
    time: options.Time,
    format: ProbeFormat = "text",
    outputs: options.Documents,
    yes: options.Yes = False,
    screen: options.Screen,
) -> int:
    """Measure one stage, such as tcp or disk.

    Stages between the hosts need TARGET and --agent; stages over SMB need TARGET.
    """
    with interrupts.defer():
        from bottleneck.cli import documents, knobs, measuring
        from probes.core.records import Access
        from probes.core.stage import Refused, module_of

    outputs = documents.add_report(documents.in_format(format, outputs))
    output = _add_figures(documents.output(outputs, screen), repeats)
    if stage not in STAGES:
        raise Refused("usage", f"probe {stage!r}: must be one of {', '.join(STAGES)}")
    if target is None and stage == "tcp" and others.tcp_peer is not None:
        target = f"//{measuring.host_text(others.tcp_peer)}/-"
    description, agent = module_of(stage).STAGE, ends.agent != "none"
    over_smb, at_server = "share" in description.needs, stage == "disk" and agent
    _check_options(stage, others, disk, copies, one)
    settings, runs = _settings(stage, choices), repeats.runs or 0
    address = target or "//localhost/-"
    seconds = measuring.budget_seconds(time, knobs.budget_seconds(settings, runs))
    setup = measuring.choose(
        address, seconds, ends, copies, others, disk, stages=(stage,), without_target=target is None
    )
    setup = replace(setup, settings=settings, runs=runs, copy=one.copy or "")
    _check_target(description, target, setup, agent)
    access = measuring.log_in_as(login, setup.target) if over_smb or at_server else Access()
    if description.writes and not (stage == "disk" and (setup.file or setup.device)):
        measuring.ask_first(setup, yes)
    return measuring.run(setup, access, output, only_steps=True)


def _settings(stage: str, choices: options.Knobs) -> dict[str, Any]:
    """Returns the settings that were chosen; --access with --zones chooses the zones."""
    from bottleneck.cli import command_line, knobs

    settings = knobs.settings(stage, choices.words)
    if "verb" in settings and "zones" in command_line.current().line.options:
        settings.setdefault("pattern", "zones")
    return settings


def _add_figures(output: Output, repeats: options.Repeats) -> Output:
    """Returns the output with the sections and the interval that repeated runs need."""
    sections = output.sections or (("measurements", "skipped") if repeats.runs else ())
    return replace(output, sections=sections, interval_seconds=repeats.interval)


def _check_target(
    description: StageDescription, target: str | None, setup: Options, agent: bool
) -> None:
    """Raises Refused, "usage", where a stage needs another TARGET, or one at all, or other words.

    agent: whether there is one on the server.
    """
    from bottleneck.run import plan
    from probes.core.stage import Refused

    if description.name == "disk":
        plan.check_disk(setup)
    folder = bool(setup.target.path)
    prefix, over_smb = f"probe {description.name}", "share" in description.needs
    if target is None and (over_smb or "server" in description.needs):
        raise Refused("usage", f"{prefix}: no TARGET; use //host/share")
    if target is None and agent and (description.by_agent or description.name == "disk"):
        raise Refused("usage", f"{prefix}: no TARGET for the agent; use //host/share")
    if "mount" in description.needs and not folder:
        raise Refused("usage", f"{prefix}: TARGET must be a folder of a mounted share")
    if folder and over_smb:
        raise Refused("usage", f"{prefix}: TARGET must be //host/share; or use probe native-copy")


def _check_options(
    stage: str,
    others: options.Others,
    disk: options.Disk,
    copies: options.Copies,
    one: options.OneCopy,
) -> None:
    """Raises Refused, "usage", where a stage has no use for an option that was given."""
    from bottleneck.cli import completion, knobs
    from probes.core.records import FILE_COPY, OWN_COPIES
    from probes.core.stage import Refused

    if one.copy:
        completion.checked_word("--copy", one.copy, (*OWN_COPIES, FILE_COPY))
    if one.copy == FILE_COPY and not others.file:
        raise Refused("usage", f"--copy {FILE_COPY}: use it with --file FILE")
    secured = dict.fromkeys(("signing", "encryption"), knobs.stages_with("security"))
    values = {"file": others.file, "tree": others.tree, "device": disk.device}
    values |= {**vars(copies), **vars(one)}
    for name, stages in {**knobs.OF_STAGES, **secured}.items():
        if values.get(name) and stage not in stages:
            option = f"--{name.replace('_', '-')}"
            raise Refused(
                "usage", f"probe {stage}: {option} not allowed here; use probe {stages[0]}"
            )
