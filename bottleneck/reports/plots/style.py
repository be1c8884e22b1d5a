"""The rules of the drawings in the page's style sheet: classes over the page's colours.

The colours of lines, bars and text are the page's variables (bottleneck/reports/html/style.py),
with a fallback for a page that has none. The heat maps' own five steps stand here: each has a
ground and a text whose contrast is at least 4.5 (WCAG 2.2, 1.4.3) in both schemes.
"""

from __future__ import annotations

HEAT_LEVELS = 5
HEAT_LIGHT = (
    ("#e8eff5", "#1d1c1a"),
    ("#bed6e8", "#1d1c1a"),
    ("#86b2d3", "#1d1c1a"),
    ("#2d6d9e", "#ffffff"),
    ("#123f61", "#ffffff"),
)
"""Ground and text, the lowest first."""
HEAT_DARK = (
    ("#22303b", "#f2efe8"),
    ("#244a66", "#f2efe8"),
    ("#2c6590", "#ffffff"),
    ("#7db7e2", "#101214"),
    ("#d3e9fa", "#101214"),
)
_SERIES = {1: "#1c5d8c", 2: "#a85400", 3: "#2b7350", 4: "#78479b", 5: "#7b6200", 6: "#56646f"}
_NAMED = {"cap": "#b3261e", "accent": "#1c5d8c", "warn": "#855300"}


def _heat(levels: tuple[tuple[str, str], ...]) -> str:
    return "".join(
        f"--heat-{at}:{ground};--heat-{at}-ink:{ink};" for at, (ground, ink) in enumerate(levels)
    )


def _marks() -> str:
    """Fill, line and hatch of each colour that marks have."""
    colours = {f"series-{at}": light for at, light in _SERIES.items()} | _NAMED
    return "\n".join(
        f".plot .fill-{name}{{fill:var(--{name},{light})}}"
        f".plot .line-{name}{{stroke:var(--{name},{light})}}"
        for name, light in colours.items()
    )


def _cells() -> str:
    return "\n".join(
        f".plot .heat-{at}{{fill:var(--heat-{at},{ground})}}"
        f".plot text.on-heat-{at}{{fill:var(--heat-{at}-ink,{ink})}}"
        for at, (ground, ink) in enumerate(HEAT_LIGHT)
    )


PLOT_STYLE = f"""
:root{{{_heat(HEAT_LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_heat(HEAT_DARK)}}}}}
@media print{{:root{{{_heat(HEAT_LIGHT)}}}}}
figure svg.plot{{display:block;width:100%;max-width:35rem;height:auto;font-family:inherit}}
.plot text{{fill:var(--ink,#1d1c1a);font-size:12px}}
@media (min-width:40rem){{.plot text{{font-size:9.5px}}}}
.plot .muted{{fill:var(--muted,#5f5b54)}}
.plot .strong{{font-weight:650}}
.plot .grid{{stroke:var(--grid,#dbd7cd);stroke-width:1}}
.plot .axis{{stroke:var(--muted,#5f5b54);stroke-width:1}}
.plot .whisker{{stroke:var(--ink,#1d1c1a);stroke-width:1.2;fill:none}}
.plot .halo{{stroke:var(--surface,#fff);stroke-width:3.4;fill:none}}
.plot .guide{{stroke:var(--ink,#1d1c1a);stroke-width:1.2;stroke-dasharray:4 3;fill:none}}
.plot .edge{{stroke:var(--muted,#5f5b54);stroke-width:1;stroke-dasharray:2 3;fill:none}}
.plot .frame{{stroke:var(--ink,#1d1c1a);stroke-width:1.6;fill:none}}
.plot .around{{stroke:var(--surface,#fff)}}
.plot .track{{fill:var(--faint,#f1efe8)}}
.plot .ink{{fill:var(--ink,#1d1c1a)}}
.plot .paper{{fill:var(--surface,#fff)}}
.plot .pale{{fill-opacity:.3}}
.plot .open{{fill:none;stroke-width:1.4}}
.plot .stroke{{fill:none;stroke-width:2;stroke-linejoin:round}}
.plot .thin{{fill:none;stroke-width:1.1}}
.plot .dots{{fill:none;stroke-width:2;stroke-linecap:round}}
.plot .dashed{{stroke-dasharray:5 3}}
{_marks()}
{_cells()}
"""
"""Font sizes are units of the drawings, whose 330 are 330 to 560 px wide."""
