"""Templates: each figure in its unit, and no sentence about what is not known."""

import pytest

from bottleneck.analysis.comparisons.table import pick, read, write

ROW = {
    "bytes_per_second": 112e6,
    "rtt_seconds": 0.02,
    "window_bytes": 1 << 20,
    "loss_ratio": 0.31,
    "gain_times": 1.94,
    "streams": 8.0,
    "reason": "{streams} [of] something",
    "full": True,
    "slow": False,
    "depth": None,
    "best": {"bytes_per_second": 1e9},
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{bytes_per_second} at {rtt_seconds}", "112 MB/s at 20 ms"),
        ("{window_bytes}, {loss_ratio}, {gain_times}", "1 MiB, 31%, 1.9x"),
        ("{streams} of {best.bytes_per_second}", "8 of 1.00 GB/s"),
        ("{streams} at {depth}", ""),
        ("{streams} at {depth.bytes}", ""),
        ("{streams} at {absent}", ""),
        ("{streams}[ at {depth}][ over {rtt_seconds}].", "8 over 20 ms."),
        ("{slow}Slow.", ""),
        ("It is[{slow} not][{full} really] full.", "It is really full."),
        ("Why: {reason}", "Why: {streams} [of] something"),
    ],
)
def test_a_template_is_written_where_its_figures_are_known(template, text):
    assert write(template, ROW) == text


def test_a_row_is_read_by_the_names_of_its_columns():
    details = {"streams": 4, "seconds": "soon", "verb": 7, "bytes": 0}
    row = {"verb": "pull", "streams": 4.0, "seconds": None, "standing": None}
    assert read(details, "verb= streams! seconds standing=", verb="pull") == row
    assert read(details, "streams bytes!") is None
    assert pick(row, "verb streams") == {"verb": "pull", "streams": 4.0}
