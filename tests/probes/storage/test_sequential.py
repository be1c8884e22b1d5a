"""One job's samples."""

import pytest

from probes.records import Sample
from probes.storage.sequential import window_rates


def test_windows_are_half_a_second_and_longer():
    samples = [Sample(0.25 * number, 100 * number) for number in range(8)]
    assert window_rates(samples) == pytest.approx([400.0] * 3)
    assert window_rates(samples[:2]) == []
