"""The page's one style sheet: no address, no import, nothing that a script would have to add.

Colours are CSS variables on :root, one set for light and one for dark backgrounds, each with a
contrast of at least 4.5 as text on --paper and on --surface (WCAG 2.2, 1.4.3). Drawings use them
through classes (`fill: var(--series-1)`), never as style attributes: the policy refuses those.

    --paper      the page                        --surface    cards, figures, the drawings' ground
    --ink        text, axes                      --muted      second text, ticks' labels
    --grid       rules, grid lines, outlines     --accent     the copy itself, links, what is chosen
    --cap        the cap, and it alone           --good       reached, passed
    --warn       doubts, what is missing         --faint      ground of table heads and of tracks
    --on-accent  text on --accent, --cap, --good, --warn and each of --series-1 to 6
    --series-1 ... --series-6                    lines and bars that are told apart

A drawing is as wide as its figure: about 330 px on a page of 390 px, 500 px on one of 1280 px.
"""

from __future__ import annotations

from bottleneck.reports.plots.style import PLOT_STYLE

_LIGHT = """
--paper:#faf9f5;--surface:#fff;--faint:#f1efe8;--ink:#1d1c1a;--muted:#5f5b54;--grid:#dbd7cd;
--accent:#1c5d8c;--cap:#b3261e;--good:#2c6b3c;--warn:#855300;--on-accent:#fff;
--series-1:#1c5d8c;--series-2:#a85400;--series-3:#2b7350;--series-4:#78479b;--series-5:#7b6200;
--series-6:#56646f;
"""

_DARK = """
--paper:#141619;--surface:#1b1e22;--faint:#24282d;--ink:#e9e6df;--muted:#aaa69d;--grid:#3a3f46;
--accent:#7db7e2;--cap:#ff8d7e;--good:#84c893;--warn:#e3b35c;--on-accent:#101214;
--series-1:#7db7e2;--series-2:#f2a661;--series-3:#7ccaa2;--series-4:#c6a4e4;--series-5:#dcc25f;
--series-6:#aab8c3;
"""

_FRAME = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
overflow-wrap:anywhere}
body>*{max-width:70rem;margin-inline:auto;padding-inline:clamp(1rem,3vw,2rem)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
h1,h2,h3{line-height:1.25;text-wrap:balance;font-weight:650}
h1{font-size:clamp(1.35rem,1rem + 1.6vw,2rem);margin:.35rem 0 .75rem;letter-spacing:-.01em}
h2{font-size:1.2rem;margin:0 0 .75rem}
h3{font-size:1rem;margin:0 0 .5rem}
p{margin:0 0 .75rem;max-width:46rem}
ul,ol{margin:0 0 .75rem;padding-left:1.2rem;max-width:52rem}
li{margin:.2rem 0}
a{color:var(--accent)}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
font-size:.9em}
pre{margin:0 0 .75rem;padding:.75rem 1rem;background:var(--faint);border-radius:6px;
white-space:pre-wrap}
.muted,figcaption,.note{color:var(--muted)}
.small{font-size:.875rem}
"""

_PARTS = """
header{padding-top:2rem}
header p{margin:0}
.origin{color:var(--muted);font-size:.9rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;padding:0;margin:1.25rem 0 0;
font-size:.9rem;max-width:none}
nav li{margin:0}
nav a{display:inline-block;padding:.2rem 0;text-decoration:none}
nav a:hover{text-decoration:underline}
main>section{padding-block:1.75rem;border-top:1px solid var(--grid)}
main>section:first-child{border-top:0;padding-top:1.25rem}
main>section>section{margin-top:1.75rem}
footer{border-top:1px solid var(--grid);padding-block:1.25rem 3rem;color:var(--muted);
font-size:.875rem}
.verdict{border-left:4px solid var(--cap);padding-left:clamp(.9rem,2vw,1.4rem)}
.verdict.open{border-left-color:var(--warn)}
.facts{display:flex;flex-wrap:wrap;gap:.75rem 2.5rem;margin:0 0 1rem}
.facts div{min-width:0}
.facts dt,.kicker{font-size:.8rem;color:var(--muted)}
.facts dd{margin:0;font-size:1.15rem;font-weight:600;font-variant-numeric:tabular-nums}
.facts dd.cap{color:var(--cap)}
.first{background:var(--surface);border:1px solid var(--grid);border-radius:8px;
padding:1rem 1.25rem;margin:1.25rem 0 0}
.first p:last-child,.first ul:last-child,.first ol:last-child{margin-bottom:0}
.warning{border-left:4px solid var(--warn);padding:.25rem 0 .25rem 1rem}
details{margin:.5rem 0}
summary{cursor:pointer;color:var(--accent);padding:.25rem 0;width:fit-content;max-width:100%}
details[open]>summary{margin-bottom:.5rem}
.pairs{margin:0 0 .75rem;font-size:.95rem}
.pairs div{display:grid;grid-template-columns:8rem minmax(0,1fr);gap:.15rem 1rem;
padding:.2rem 0}
.pairs dt{color:var(--muted)}
.pairs dd{margin:0}
.line{display:block}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr));
gap:1.5rem 2rem}
.beside>*{min-width:0;margin:0}
.columns{columns:24rem 3;column-gap:2.5rem}
.columns>*{break-inside:avoid;margin-bottom:1.5rem}
"""

_TABLES = """
.scroll{container-type:inline-size;overflow-x:auto;max-width:100%;margin:0 0 1rem;position:relative}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;line-height:1.4}
caption{text-align:left;color:var(--muted);padding:0 0 .4rem;caption-side:top}
caption span{display:inline-block;position:sticky;left:0;max-width:100cqi}
th,td{padding:.35rem 1.1rem .35rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--grid);overflow-wrap:normal;white-space:nowrap}
th:last-child,td:last-child{padding-right:.25rem}
thead th{font-weight:600;color:var(--muted);font-size:.82rem;vertical-align:bottom;
border-bottom-color:var(--muted)}
tbody th{font-weight:400}
th.right,td.right{text-align:right}
tr.chosen th,tr.chosen td{font-weight:650}
tr.cap th,tr.cap td{color:var(--cap);font-weight:650}
tr.soft th,tr.soft td{color:var(--muted)}
td.none{color:var(--muted)}
.cell{min-width:7rem;font-weight:600}
.below{display:block;font-size:.82rem;font-weight:400;color:var(--muted)}
.cell .below{white-space:normal}
.cell.chosen{border-left:3px solid var(--cap);padding-left:.6rem}
.bar{display:block;width:clamp(5rem,16vw,11rem);height:.8rem;margin-top:.3rem}
.bar .track{fill:var(--faint)}
.bar .fill{fill:var(--series-6)}
tr.chosen .fill{fill:var(--accent)}
tr.cap .fill{fill:var(--cap)}
tr.soft .fill{fill:none;stroke:var(--series-6);stroke-width:1;vector-effect:non-scaling-stroke}
"""

_CHAIN = """
.chain{list-style:none;display:grid;grid-template-columns:repeat(7,minmax(0,1fr));padding:0;
margin:0 0 .75rem;max-width:none;font-size:.875rem;line-height:1.35}
.chain li{margin:0;min-width:0;display:grid;grid-template-rows:subgrid;grid-row:span 3;gap:0}
.chain .part{padding:0 .5rem .5rem 0;font-weight:600}
.chain .part span{display:block;font-weight:400;color:var(--muted);font-size:.8rem}
.chain svg{display:block;width:100%;height:6rem;overflow:visible}
.chain .down{display:none}
.chain .told{padding:.5rem .5rem 0 0;font-variant-numeric:tabular-nums}
.chain .told span{display:block;color:var(--muted);font-size:.8rem}
.chain .is-cap .part,.chain .is-cap .told,.chain .is-cap .told span{color:var(--cap)}
.chain .is-cap .told{font-weight:650}
.bore{fill:var(--faint)}
.pipe{fill:none;stroke:var(--muted);stroke-width:1;vector-effect:non-scaling-stroke}
.is-cap .pipe{stroke:var(--cap);stroke-width:2}
.unseen .pipe{stroke-dasharray:4 4}
.flow{fill:var(--accent)}
.is-cap .flow{fill:var(--cap)}
.unseen .flow{fill-opacity:.35}
.way{fill:none;stroke:var(--surface);stroke-width:1.5;vector-effect:non-scaling-stroke}
@media screen and (max-width:52rem){
.chain{display:block}
.chain li{display:grid;grid-template:"pipe part" auto "pipe told" 1fr/4.5rem minmax(0,1fr);
column-gap:1rem;min-height:4.75rem}
.chain .part{grid-area:part;padding:.5rem 0 0}
.chain .told{grid-area:told;padding:0 0 .5rem}
.chain .part span,.chain .told span{display:inline;margin-left:.35rem}
.chain svg{grid-area:pipe;height:100%;min-height:4.75rem}
.chain .across{display:none}
.chain .down{display:block}
}
"""

_FIGURES = """
.plots{columns:27rem 2;column-gap:1.5rem}
.plots figure{break-inside:avoid;margin-bottom:1.5rem}
.held{display:grid;gap:1.5rem;align-items:start}
@media (min-width:60rem){.held{grid-template-columns:repeat(2,minmax(0,1fr))}}
.held>*{min-width:0}
figure{margin:0;min-width:0;background:var(--surface);border:1px solid var(--grid);
border-radius:8px;padding:1rem}
figure h3{margin-bottom:.35rem}
figcaption{font-size:.9rem;margin-bottom:.6rem}
figure svg{display:block;width:100%;height:auto}
figure details{margin:.6rem 0 0;font-size:.9rem}
figure .scroll{margin-bottom:0}
"""

_PRINT = """
@page{margin:15mm}
@media print{
:root{color-scheme:light;%s}
html{font-size:9.5pt}
body{font-size:1rem;background:#fff}
.plots{columns:2;column-gap:1rem}
.held{grid-template-columns:repeat(2,minmax(0,1fr))}
.chain svg{height:4.5rem}
table{font-size:.85rem}
th,td{padding-right:.6rem}
body>*{max-width:none;padding-inline:0}
nav{display:none}
header{padding-top:0}
main>section{padding-block:1rem}
h2,h3{break-after:avoid}
figure,tr,.first,.chain li{break-inside:avoid}
.scroll{overflow:visible}
tbody th,td:not(.right){white-space:normal}
figure details{display:none}
details::details-content{content-visibility:visible;block-size:auto}
summary{color:inherit}
.chain svg,figure svg,.bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""


def sheet() -> str:
    """The whole sheet, ready for a <style> element: it holds no markup."""
    light, dark = _LIGHT.strip(), _DARK.strip()
    colours = (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
    parts = (colours, _FRAME, _PARTS, _TABLES, _CHAIN, _FIGURES, PLOT_STYLE, _PRINT % light)
    return "\n".join(part.strip("\n") for part in parts)
