"""In a real browser: nothing leaves, nothing is refused, all is seen, read and reached.

Screenshots of every page at both widths and in both schemes are written to the folder that
BOTTLENECK_SCREENSHOTS names, else to the test's own temporary one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

DATA = Path(__file__).parents[2] / "data"
NAMES = ("lab-with-agent", "thorough", "comparisons", "strange")
SIZES = {390: 844, 1280: 900}
SCHEMES = ("light", "dark")
SHARED = "BOTTLENECK_SCREENSHOTS"
OPEN = "() => document.querySelectorAll('details').forEach(each => { each.open = true })"
MARKS = """() => [...document.querySelectorAll('figure')].map(figure => {
  const marks = [...figure.querySelectorAll('svg *')].filter(each => {
    const box = each.getBoundingClientRect(), style = getComputedStyle(each);
    return box.width + box.height > 1 && (style.fill !== 'none' || style.stroke !== 'none');
  });
  return [figure.querySelector('h3').textContent, marks.length];
})"""
CUT = """() => {
  const told = [], wide = document.documentElement.clientWidth;
  for (const each of document.body.querySelectorAll('*')) {
    if (each.closest('.scroll, svg, summary') && !each.matches('.scroll')) continue;
    const box = each.getBoundingClientRect();
    if (box.right > wide + 1 || box.left < -1) told.push(each.outerHTML.slice(0, 120));
    const inline = getComputedStyle(each).display.startsWith('inline');
    if (!inline && !each.matches('.scroll') && each.scrollWidth > each.clientWidth + 1)
      told.push('cut: ' + each.outerHTML.slice(0, 120));
  }
  return told;
}"""
OVERLAPS = """() => {
  const texts = 'h1,h2,h3,p,dt,dd,figcaption,summary,caption span,th,td,.part,.told';
  const boxes = [...document.querySelectorAll(texts)]
    .filter(each => each.textContent.trim() && each.checkVisibility())
    .map(each => [each, each.getBoundingClientRect()]);
  const told = [];
  boxes.forEach(([one, a], at) => boxes.slice(at + 1).forEach(([other, b]) => {
    if (one.contains(other) || other.contains(one)) return;
    if (one.closest('table') !== other.closest('table')) return;
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2)
      told.push(one.textContent.slice(0, 60) + ' | ' + other.textContent.slice(0, 60));
  }));
  return told;
}"""


@pytest.fixture(scope="module")
def files(page_of, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in NAMES}
    for name, path in paths.items():
        path.write_text(page_of(DATA / f"report-v1-{name}.json"), encoding="ascii")
    paths["timed"] = folder / "timed.html"
    paths["timed"].write_text(page_of(DATA / "traces/sync-60.json.gz"), encoding="ascii")
    return paths


@dataclass
class Visit:
    """A page in a browser, its requests and its complaints."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def open_page(browser: Browser, path: Path, width: int, scheme: str, **options) -> Iterator[Visit]:
    context = browser.new_context(
        viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme, **options
    )
    try:
        visit = Visit(context.new_page())
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        # A refusal by the page's own policy is an error on the console.
        visit.page.on("console", lambda message: visit.complaints.append(message.text))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.goto(path.as_uri(), wait_until="load")
        yield visit
    finally:
        context.close()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_nothing_leaves_nothing_runs_and_nothing_is_refused(browser, files, name):
    with open_page(browser, files[name], 1280, "light") as visit:
        visit.page.evaluate(OPEN)
        assert visit.requests == [files[name].as_uri()]
        assert visit.complaints == []
        assert visit.page.locator("script").count() == 0


def test_the_policy_holds_where_it_is_put_to_the_test(browser, files):
    """The policy refuses what would get past the escaping: a script, a style, a picture."""
    with open_page(browser, files["lab-with-agent"], 1280, "light") as visit:
        ran = visit.page.evaluate("""() => {
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          document.body.append(script);
          const picture = document.createElement('img');
          picture.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=';
          document.body.append(picture);
          document.body.setAttribute('style', 'margin-left: 77px');
          return [window.ran === true, getComputedStyle(document.body).marginLeft];
        }""")
        assert ran[0] is False
        assert ran[1] != "77px"
        assert len(visit.complaints) >= 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        *((name, width, scheme) for name in NAMES[:2] for width in SIZES for scheme in SCHEMES),
        ("comparisons", 390, "dark"),
        ("comparisons", 1280, "light"),
    ],
)
def test_all_is_seen_and_nothing_is_cut_off(browser, files, tmp_path, name, width, scheme):
    pictures = Path(os.environ.get(SHARED) or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    with open_page(browser, files[name], width, scheme) as visit:
        page = visit.page
        page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        drawn = page.evaluate(MARKS)
        assert len(drawn) >= 2
        assert [title for title, marks in drawn if marks < 5] == []
        assert page.evaluate(CUT) == []
        page.evaluate(OPEN)
        assert page.evaluate(CUT) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize("width", SIZES)
def test_what_limits_each_copy_is_seen_without_scrolling(browser, files, width):
    with open_page(browser, files["lab-with-agent"], width, "light") as visit:
        title = visit.page.locator("#copies th", has_text="limited by").first
        box = title.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        *(("thorough", width, scheme) for width in SIZES for scheme in SCHEMES),
        ("comparisons", 390, "light"),
        ("strange", 1280, "dark"),
        *(("timed", width, scheme) for width in SIZES for scheme in SCHEMES),
    ],
)
def test_axe_finds_nothing_serious(browser, files, name, width, scheme):
    with open_page(browser, files[name], width, scheme, bypass_csp=True) as visit:
        visit.page.evaluate(OPEN)
        violations = Axe().run(visit.page).response["violations"]
        serious = [
            f"{each['id']} ({each['impact']}): {node['target']} {node['html'][:120]}"
            for each in violations
            for node in each["nodes"][:3]
        ]
        assert serious == []


def test_a_key_opens_the_course_of_a_copy_without_a_network(browser, files):
    with open_page(browser, files["timed"], 390, "light") as visit:
        bars = visit.page.locator("#times summary")
        course = visit.page.locator("#times figure").first
        assert bars.count() >= 4 and not course.is_visible()
        bars.first.press("Enter")
        assert course.is_visible() and "who had work" in course.text_content()
    assert visit.requests == [files["timed"].as_uri()]


def test_every_table_that_scrolls_is_reached_by_the_keyboard(browser, files):
    with open_page(browser, files["thorough"], 390, "light") as visit:
        scrolling = visit.page.locator(".scroll")
        assert scrolling.count() > 0
        for index in range(scrolling.count()):
            if scrolling.nth(index).is_visible():
                scrolling.nth(index).focus()
                assert scrolling.nth(index).evaluate("each => document.activeElement === each")


def test_the_printed_page_is_dark_on_white_and_holds_what_was_folded(browser, files):
    with open_page(browser, files["thorough"], 1280, "dark") as visit:
        visit.page.emulate_media(media="print", color_scheme="dark")
        look = "getComputedStyle(document.body)"
        assert visit.page.evaluate(f"{look}.backgroundColor") == "rgb(255, 255, 255)"
        assert visit.page.evaluate(f"{look}.color") == "rgb(29, 28, 26)"
        assert not visit.page.locator("nav").is_visible()
        folded = visit.page.locator("#evidence details p").first
        assert folded.is_visible()
