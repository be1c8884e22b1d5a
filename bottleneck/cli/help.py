"""What --help shows of a command: its options in named groups, and two examples."""

from __future__ import annotations

import textwrap
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperOption

UNNAMED = "Options"
"""The group of options that belong to none, as --help; it comes last."""
NAS = "//nas/media --user alice --agent ssh://nas"
EXAMPLES = {
    "": ("demo", f"diagnose {NAS}"),
    "diagnose": (f"diagnose {NAS}", "diagnose /mnt/media --yes --html report.html"),
    "demo": ("demo", "demo --quick --html demo.html"),
    "probe": (f"probe tcp {NAS}", "probe disk --device /dev/sdb --zones 16"),
    "watch": ("watch", "watch nas --agent ssh://nas --seconds 30"),
    "explain": ("explain report.json --verbose", "explain report.json --format ticket --redact"),
    "check": (
        "check //nas/media --user alice --yes --crit 'headline < 50MB/s'",
        "check --report 'runs/*.json' --max-age 26h --format nagios",
    ),
    "compare": ("compare before.json after.json", "compare before.json after.json --format json"),
    "estimate": (
        "estimate pull --link 1Gbit/s --rtt 20ms --disk-read hdd",
        "estimate push --link 10Gbit/s --mtu 9000 --disk-write nvme",
    ),
    "agent": ("agent --listen 192.0.2.10:5300", "agent --listen 192.0.2.10:5300 --idle 3600"),
    "schema": ("schema", "schema > report.schema.json"),
    "history": ("history", "history runs.sqlite --most 100 --format json"),
    "config": ("config", "config diagnose"),
    "doctor": ("doctor", f"doctor {NAS}"),
    "cleanup": ("cleanup --dry-run", "cleanup //nas/media --user alice --older-than 86400"),
}
"""By command, what follows `bottleneck`; of none, those of the program."""


def examples(command: str) -> str:
    """The end of a command's help; click keeps the lines of a block that begins with \\b."""
    lines = (f"  bottleneck {each}" for each in EXAMPLES.get(command, ()))
    return "\n".join(("\b", "Examples:", *lines))


class Command(TyperCommand):
    """A command whose help names the group of each option."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """As the man page has it: optional words in brackets, others bare."""
        arguments = (each for each in self.params if isinstance(each, TyperArgument))
        return ["[OPTION]...", *(each.metavar or "" for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then each group under its heading, all in the same two columns."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if isinstance(each, TyperArgument):
                named = ((each.metavar or "").strip("[]"), each.help or "")
                groups.setdefault("Arguments", []).append(named)
            elif isinstance(each, TyperOption) and (row := each.get_help_record(ctx)):
                groups.setdefault(each.rich_help_panel or UNNAMED, []).append(row)
        columns = max(len(flags) for rows in groups.values() for flags, _ in rows)
        for heading in sorted(groups, key=lambda name: name == UNNAMED):
            with formatter.section(heading):
                for flags, text in groups[heading]:
                    formatter.write(_lines(f"  {flags:<{columns}}  ", text, formatter.width))


def _lines(begin: str, text: str, width: int) -> str:
    """The text beside its flags; no option's name is broken, as click does at a hyphen."""
    lines = textwrap.wrap(text, width - len(begin), break_on_hyphens=False)
    return begin + ("\n" + " " * len(begin)).join(lines) + "\n"
