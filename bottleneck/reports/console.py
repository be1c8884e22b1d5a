"""A diagnosis on a terminal: the verdict first, then what it stands on."""

from __future__ import annotations

from rich.console import Console

from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.report import Report
from bottleneck.reports import layout, remarks
from bottleneck.reports.comparisons import print_comparisons
from bottleneck.reports.copies import print_copies, print_grid
from bottleneck.reports.disks import print_disks
from bottleneck.reports.interfaces import print_interfaces
from bottleneck.reports.ladder import print_rungs, print_target
from bottleneck.reports.path import print_path
from bottleneck.reports.safe import safe
from bottleneck.reports.stages import print_stages
from bottleneck.reports.units import explorer_note
from bottleneck.reports.waterfall import print_waterfall
from bottleneck.reports.words import confidence_text, dialect_text
from bottleneck.reports.zone_curve import print_zone_curves

EVIDENCE_SHOWN = 8
SETTINGS_SHOWN = 4


def print_report(
    report: Report, diagnosis: Diagnosis, console: Console, verbose: bool = False
) -> None:
    """Writes the whole diagnosis; readable from 80 columns on.

    verbose: ceilings, ladder, evidence and advice of every copy, not of the headline's alone, and
    every row of the comparisons. Foreign text is made safe, and none of it is read as markup.
    """
    signs = layout.signs(console)
    chosen = diagnosis.chosen
    shown = diagnosis.copies if verbose else tuple(each for each in [chosen] if each)
    _print_verdict(report, diagnosis, console)
    print_copies(diagnosis, console, signs)
    print_grid(diagnosis, console, signs)
    for copy in shown:
        print_waterfall(copy, console, signs)
        print_rungs(copy, console, signs)
    for copy in shown:
        print_target(copy, console)
    print_zone_curves(report, console, signs)
    print_comparisons(diagnosis, console, signs, verbose)
    print_stages(report, console, signs)
    print_path(report, console)
    print_interfaces(report, console)
    print_disks(report, console)
    for copy in shown:
        _print_reasons(copy, console, verbose)
    _print_remarks(report, console, verbose)
    if chosen is not None and chosen.bytes_per_second:
        console.print()
        layout.paragraph(console, explorer_note(chosen.bytes_per_second), "dim")


def _print_verdict(report: Report, diagnosis: Diagnosis, console: Console) -> None:
    layout.paragraph(console, safe(diagnosis.summary, 2000), "bold")
    chosen = diagnosis.chosen
    if chosen is not None and chosen.verdict.component != "unknown":
        layout.line(console, f"Confidence: {confidence_text(chosen.verdict)}")
    if report.status != "complete":
        layout.line(console, f"The run is {report.status}: this is what it came to.", "magenta")


def _print_reasons(copy: CopyDiagnosis, console: Console, verbose: bool) -> None:
    which = f" ({safe(copy.copy, 40)}, {dialect_text(copy.dialect)})" if verbose else ""
    _print_points(console, f"Evidence{which}", copy.evidence, None if verbose else EVIDENCE_SHOWN)
    _print_points(console, f"Advice{which}", copy.advice)


def _print_remarks(report: Report, console: Console, verbose: bool) -> None:
    most = None if verbose else SETTINGS_SHOWN
    costly = remarks.costly_server_settings(report)
    _print_points(console, "What costs throughput in the server's smb.conf", costly, most)
    costly = remarks.costly_host_settings(report, "tcp_settings")
    _print_points(console, "What costs throughput in the hosts' TCP settings", costly)
    costly = remarks.costly_host_settings(report, "disk_settings")
    _print_points(console, "What costs throughput below the hosts' folders", costly)
    _print_points(console, "Not measured", remarks.missing(report))
    if verbose:
        _print_points(console, "Why each step was made", remarks.reasons(report))
    _print_points(console, "Notes", report.notes)


def _print_points(
    console: Console, title: str, points: tuple[str, ...], most: int | None = None
) -> None:
    layout.bullets(console, title, [safe(each, 600) for each in points[:most]])
    if most is not None and len(points) > most:
        layout.line(console, f"  and {len(points) - most} more with --verbose", "dim")
