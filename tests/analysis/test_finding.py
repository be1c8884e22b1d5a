"""The closed sets of words."""

import pytest

from bottleneck.analysis.finding import Comparison, Diagnosis, Verdict, WordError
from bottleneck.analysis.rules.registry import CAUSES, check_words


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
def test_words_outside_the_contract_are_no_verdict(words):
    with pytest.raises(WordError):
        check_words(*words)


def test_the_rules_have_the_causes_of_the_contract_and_no_other():
    assert {
        "disk": {"read", "write", "seek", "zone", "sync", "contention"},
        "network": {"link-rate", "loss", "contention", "mtu", "duplex", "delay", "wrong-path"},
        "tcp": {"receive-window", "send-buffer", "congestion-control"},
        "smb": {"round-trips", "dialect", "signing", "encryption", "server-software"},
        "cpu": {"one-core", "all-cores", "quota", "contention"},
        "memory": {"cache-size", "writeback", "swap"},
        "bus": {"pcie", "usb"},
        "instrument": {"ceiling"},
        "unknown": {"inconclusive", "not-measured"},
    } == {component: set(causes) for component, causes in CAUSES.items()}
    for component in CAUSES.keys() - {"unknown"}:
        check_words(component, "server", min(CAUSES[component]))


def test_a_comparison_is_about_something_that_is_known():
    with pytest.raises(WordError):
        Comparison("weather", "")


def test_a_caps_words_are_as_they_are_asked_for():
    assert Verdict("disk", "server", "read", 0.9, 1.0, "").words == "disk/server/read"
    assert Verdict("unknown", None, "inconclusive", 0, None, "").words == "unknown/inconclusive"


def test_a_diagnosis_without_copies_has_no_chosen_one():
    assert Diagnosis(None, (), "").main_copy is None
