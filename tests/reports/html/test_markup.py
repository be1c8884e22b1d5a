"""What a stranger wrote cannot become markup, and a page cannot be made to fetch or run."""

from __future__ import annotations

import pytest

from bottleneck.reports.html.markup import Markup, MarkupError, tag, together


def test_text_is_escaped_wherever_it_is_put():
    made = tag("p", "<b>&\"'", title='"><script>')
    assert made == ('<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&quot;&#x27;</p>')


def test_markup_is_not_escaped_twice_and_nothing_is_left_out():
    assert tag("div", tag("span", "&"), None, " and ") == "<div><span>&amp;</span> and </div>"
    assert together(["<", Markup("<p></p>")]) == "&lt;<p></p>"


def test_what_could_hide_or_reorder_text_is_made_visible():
    assert tag("p", "a\u202eb\x1b[1m") == "<p>a\\u202eb\\x1b[1m</p>"
    assert tag("p", title="\x00") == '<p title="\\x00"></p>'


def test_an_attribute_that_is_none_is_left_out():
    assert tag("p", class_=None, id="a") == '<p id="a"></p>'
    assert tag("rect", width=12.0, height=1.25) == '<rect width="12" height="1.25"/>'


@pytest.mark.parametrize("element", ["script", "iframe", "object", "img", "link", "base", "form"])
def test_elements_that_run_or_fetch_cannot_be_made(element):
    with pytest.raises(MarkupError):
        tag(element)


@pytest.mark.parametrize(
    "attribute", ["onclick", "onload", "style", "src", "srcset", "action", "formaction", "a b"]
)
def test_attributes_that_run_or_fetch_cannot_be_made(attribute):
    with pytest.raises(MarkupError):
        tag("a", **{attribute: "x"})


@pytest.mark.parametrize(
    "address", ["http://a", "//a", "javascript:x", "data:,", "file:///etc", " #a", "a#b"]
)
def test_links_lead_to_places_in_the_page_alone(address):
    with pytest.raises(MarkupError):
        tag("a", href=address)
    assert tag("a", href="#copies") == '<a href="#copies"></a>'
