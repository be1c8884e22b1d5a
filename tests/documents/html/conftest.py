"""Fixtures with which the tests of the page read it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from bottleneck.documents.html import document as html_text
from tests import stored_reports
from tests.stored_reports import diagnose

ROOT = Path(__file__).parents[3]
_EMPTY = {"meta"}


class Tree(HTMLParser):
    """A page as it was read: elements with their attributes and the text inside of each."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        """The element that each piece of text lies in, and the piece."""
        self.open: list[str] = []
        self.strange: list[str] = []
        """Comments, declarations and instructions; end tags that fit nothing."""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.strange.append(f"{tag} has an attribute twice")
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if self.open[-1:] == [tag]:
            self.open.pop()
        else:
            self.strange.append(f"</{tag}> within {self.open[-1:]}")

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))

    def handle_comment(self, data):
        self.strange.append(f"<!--{data}")

    def handle_pi(self, data):
        self.strange.append(f"<?{data}")

    def unknown_decl(self, data):
        self.strange.append(f"<![{data}")

    @property
    def words(self) -> str:
        return " ".join(piece for element, piece in self.texts if element != "style")

    def attributes_of(self, element: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == element]


@pytest.fixture(scope="session")
def tree():
    return Tree


@pytest.fixture(scope="session")
def page_of():
    def render(path: Path) -> str:
        report = stored_reports.load(path)
        return html_text(report, diagnose(report))

    return render
