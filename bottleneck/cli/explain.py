"""`bottleneck explain REPORT.json`: the diagnosis of a saved report, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

File = Annotated[Path, typer.Argument(metavar="REPORT.json", help="A report written by --json.")]
Format = Annotated[str, typer.Option("--format", metavar="F", help="text or json.")]


def explain(file: File, format: Format = "text", verbose: options.Verbose = False) -> int:
    """Diagnose a saved report again, offline."""
    with interrupts.held():
        from bottleneck import report
        from bottleneck.analysis import diagnose
        from bottleneck.cli import running
        from probes.stage import Refused

    if format not in {"text", "json"}:
        raise Refused("usage", f"--format {format!r} is neither text nor json")
    try:
        loaded = report.load(file)
    except report.ReportError as error:
        raise Refused("usage", f"{file}: {error}") from None
    except OSError as error:
        raise Refused("usage", f"{file}: {error.strerror}") from None
    to_stdout = "-" if format == "json" else None
    done = running.written(loaded, diagnose(loaded), running.Output(to_stdout, False, verbose))
    return exits.DONE if done else exits.INCOMPLETE
