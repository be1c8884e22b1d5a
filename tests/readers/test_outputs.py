"""Each tool's recorded output has figures or an error that says why not.

Recorded with the tools of Debian 12; ping of macOS and Windows, robocopy and diskspd are as
published.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bottleneck.readers import registry
from bottleneck.readers.figure import Output, number
from bottleneck.report.report import ReportError

OUTPUTS = sorted((Path(__file__).parents[1] / "data" / "readers").iterdir())


def text_of(figure):
    fields = vars(figure).items() if not isinstance(figure, str) else ()
    return " ".join(f"{name}={each}" for name, each in fields if each not in (None, ())) or figure


@pytest.mark.parametrize("file", OUTPUTS, ids=lambda path: path.name)
def test_an_output_tells(file, golden):
    text = registry.text_of(file.read_bytes())
    assert registry.reader_of(text).__module__.endswith(f".{file.stem.partition('-')[0]}")
    for side in ("server", None):
        golden(f"{side}:")
        try:
            for each in registry.figures(Output(text, side)):
                golden(f"  {text_of(each)}")
        except ReportError as error:
            golden(f"  {type(error).__name__}: {error}")


def test_each_format_has_three_outputs_and_one_of_them_is_broken():
    names = Counter(each.stem.partition("-")[0] for each in OUTPUTS)
    broken = Counter()
    for each in OUTPUTS:
        try:
            registry.figures(Output(registry.text_of(each.read_bytes()), "client"))
        except ReportError:
            broken[each.stem.partition("-")[0]] += 1
    assert set(names) == set(broken) == set(registry.NAMES.split(", "))
    assert min(names.values()) >= 3


NUMBERS = {"9.500": 9.5, "1,073,741": 1073741, "179.000.736,00": 179000736, "1,5": 1.5, "7": 7}


def test_a_number_is_read_as_its_language_writes_it_and_other_texts_are_none():
    assert {text: number(text) for text in NUMBERS} == NUMBERS
    for text in ("", "-nan", "inf", "1e5", "-3", "\u0663"):
        with pytest.raises(ReportError, match="is not a number"):
            number(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_is_read_as_a_system_writes_it(encoding):
    text = "Verbindung für nas: 12 ms\r\n"
    assert registry.text_of(text.encode(encoding)) == "Verbindung für nas: 12 ms\n"
