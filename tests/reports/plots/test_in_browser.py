"""In a real browser the marks are seen, texts can be read on a phone and lie beside each other."""

from __future__ import annotations

from html import escape

import pytest

from bottleneck.analysis import diagnose
from bottleneck.reports.html.style import sheet
from bottleneck.reports.plots import plots, trend_plots
from bottleneck.trend import Point, Trend

LOOK = """() => [...document.querySelectorAll('svg.plot')].map(svg => {
  const box = each => each.getBoundingClientRect(), whole = box(svg);
  const texts = [...svg.querySelectorAll('text')];
  const marks = [...svg.querySelectorAll('rect,circle,line,polyline,polygon,path')];
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  const painted = each => [getComputedStyle(each).fill, getComputedStyle(each).stroke]
    .some(paint => paint !== 'none');
  const outside = each => box(each).left < whole.left - 1 || box(each).right > whole.right + 1
    || box(each).top < whole.top - 1 || box(each).bottom > whole.bottom + 1;
  return {
    name: svg.getAttribute('aria-labelledby'),
    width: whole.width,
    visible: marks.filter(e => box(e).width + box(e).height > 1 && painted(e)).length,
    unpainted: marks.filter(e => !painted(e)).length,
    outside: [...texts, ...marks].filter(outside).map(e => e.textContent),
    overlaps: texts.flatMap((a, at) => texts.slice(at + 1).filter(b => over(box(a), box(b)))
      .map(b => `${a.textContent} | ${b.textContent}`)),
    font: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize)
      * whole.width / svg.viewBox.baseVal.width)),
  };
})"""


@pytest.fixture
def page_text(report):
    """The drawings in figures, as on the page."""
    points = [
        Point(f"2026-11-{at:02}T02:00:00+00:00", 1e8, 9e7, 1.2e8, f"disk/server/{at // 7}", 0.9)
        for at in range(1, 29)
    ]
    trends = trend_plots((Trend("pull.uncached", "3.1.1", tuple(points)),))
    shown = "".join(
        f"<figure><h3>{escape(each.title)}</h3>{each.svg}</figure>"
        for each in (*plots(report, diagnose(report)), *trends)
    )
    head = f'<meta name="viewport" content="width=device-width"><style>{sheet()}</style>'
    return f"<!DOCTYPE html>{head}<main><div class=plots>{shown}</div></main>"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_plots_are_seen_and_read(browser, page_text, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=True
    )
    page = context.new_page()
    page.set_content(page_text)
    seen = page.evaluate(LOOK)
    context.close()
    assert len(seen) >= 12
    for each in seen:
        assert each["visible"] >= 5, each
        assert each["unpainted"] == 0, each
        assert each["outside"] == [], each
        assert each["overlaps"] == [], each
        assert each["font"] >= 11, each
        assert each["width"] <= 560 + 1, each
