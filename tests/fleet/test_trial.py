"""The trial sees tests that meet, and tells apart those that run beside each other."""

import pytest

from tests.fleet.trial import MOVING_BYTES, Sample, meetings

NONE = Sample({}, {"nas0": 0})


@pytest.mark.parametrize(
    ("one", "other", "disk", "counts"),
    [
        (("pc8", "nas0"), ("pc9", "nas1"), 0, (1, 0, 0)),
        (("pc8", "nas0"), ("pc8", "nas1"), 0, (1, 1, 0)),
        (("pc8", "nas0"), ("pc9", "nas0"), 0, (1, 1, 0)),
        (("pc8", "nas0"), ("pc9", "nas0"), 1 << 20, (1, 1, 1)),
        (("pc0", "nas0"), ("pc1", "nas1"), 0, (1, 1, 0)),
    ],
    ids=["nothing", "client", "server", "disk", "uplink"],
)
def test_tests_meet_over_what_they_share_while_both_move(one, other, disk, counts):
    busy = Sample(dict.fromkeys((one, other), 2 * MOVING_BYTES), {"nas0": disk})
    assert meetings([NONE, busy]) == counts and meetings([busy, busy]) == (0, 0, 0)
