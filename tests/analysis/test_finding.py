"""The closed sets of words."""

import pytest

from bottleneck.analysis.finding import (
    CAUSES,
    Comparison,
    Diagnosis,
    Verdict,
    WordError,
    check_words,
)


@pytest.mark.parametrize(
    "words",
    [
        ("disk", "path", "read"),
        ("disk", "server", "link-rate"),
        ("network", None, "link-rate"),
        ("unknown", "client", "inconclusive"),
        ("cpu", "client", "busy"),
        ("wire", "path", "loss"),
    ],
)
def test_words_outside_the_contract_cannot_be_made(words):
    with pytest.raises(WordError):
        Verdict(*words, 0.5, None, "")


def test_every_component_of_the_contract_has_causes():
    assert set(CAUSES) == {
        "disk",
        "network",
        "tcp",
        "smb",
        "cpu",
        "memory",
        "bus",
        "instrument",
        "unknown",
    }
    check_words("network", "path", "link-rate")
    check_words("smb", "path", "round-trips")


def test_a_comparison_is_about_something_that_is_known():
    with pytest.raises(WordError):
        Comparison("weather", "")


def test_a_diagnosis_without_copies_has_no_chosen_one():
    assert Diagnosis(None, (), "").chosen is None
