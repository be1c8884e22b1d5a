"""Makes the pictures of README and docs from real runs: the terminal and a copy's course as SVG,
the page as PNG.

Usage: .venv/bin/python scripts/pictures.py [REPORT.json]
Without a report it takes the lab's run in examples/; `bottleneck diagnose ... --json F` or
`bottleneck demo --json F` makes one of your own. The PNG needs a Chromium (apt-get install
chromium-headless-shell) and is left as it is where there is none.
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.documents.console import print_report
from bottleneck.documents.html import document as html_text
from bottleneck.documents.plots.copies import drawings
from bottleneck.documents.plots.shapes import sheet
from bottleneck.report import report

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs/pictures"
EXAMPLE = ROOT / "examples/server-disk-read.json"
TIMED, TIMED_COPY = ROOT / "tests/data/traces/sync-60.json.gz", "push.uncached"
COLUMNS, LINES = 100, 40
"""Size of the terminal in the picture."""
WIDTH, HEIGHT = 1280, 1040
"""Size of the page's visible part, in CSS pixels."""
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
FRAME = """\
<svg viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect x="-12" y="-10" width="100%" height="100%" rx="8" fill="#101418"/>
<g clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Replaces rich's frame, which loads a font from the internet."""


def terminal_svg(path: Path) -> str:
    """Returns the first lines that `bottleneck explain` prints for a report, as SVG."""
    from rich.text import Text

    stored = report.load(path)
    console = Console(width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    print_report(stored, diagnose(stored), console)
    recorder = Console(width=COLUMNS, file=io.StringIO(), force_terminal=True, record=True)
    printed = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    # Only whole sections, as many as fit.
    ends = [index for index, line in enumerate(printed[:LINES]) if not line.strip()]
    for line in (f"$ bottleneck explain {path.name}", *printed[: ends[-1]]):
        recorder.print(Text.from_ansi(line), no_wrap=True, crop=False)
    drawn = recorder.export_svg(title="", code_format=FRAME, unique_id="terminal")
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawn)[0])
    room = f'viewBox="-12 -10 {width + 24} {height + 20}"'
    return re.sub(r'viewBox="[^"]+"', room, drawn, count=1)


def time_svg() -> str:
    """Returns the page's drawing of a copy over time as an SVG document."""
    stored = report.loads(gzip.decompress(TIMED.read_bytes()))
    drawn = drawings(stored, diagnose(stored))
    svg = next(plot.svg for copy, plot in drawn if copy.copy == TIMED_COPY)
    root = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"'
    head, _, rest = svg.replace("<svg", root, 1).partition(">")
    return f"{head}>\n<style>{sheet('colours', 'plots')}</style>{rest}\n"


def page_png(path: Path, picture: Path) -> bool:
    """Photographs the page of a report; False: there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return False
    from playwright.sync_api import sync_playwright

    stored = report.load(path)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        page_file.write_text(html_text(stored, diagnose(stored)), encoding="utf-8")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(page_file.as_uri())
        page.screenshot(path=picture)
        chromium.close()
    return True


def main() -> None:
    """Writes the pictures."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "terminal.svg").write_text(terminal_svg(path), encoding="utf-8")
    (PICTURES / "time.svg").write_text(time_svg(), encoding="utf-8")
    if not page_png(path, PICTURES / "page.png"):
        print("no Chromium here: page.png is left as it is", file=sys.stderr)


if __name__ == "__main__":
    main()
