"""Datagrams sent and arrived: the path's loss in words, apart from what this tool itself lost."""

import pytest

ABOUT = ("datagrams",)

CLEAN = {
    "sent_datagrams": 60_000,
    "received_datagrams": 60_000,
    "lost_datagrams": 0,
    "loss_ratio": 0.0,
    "receiver_dropped_datagrams": 0,
    "reordered_datagrams": 0,
    "reordered_ratio": 0.0,
    "duplicate_datagrams": 0,
    "longest_gap_datagrams": 0,
    "jitter_seconds": 4.5e-5,
    "sent_bytes_per_second": 94e6,
    "pace_ratio": 1.0,
    "payload_bytes": 1448,
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="a clean path lost none"),
        pytest.param(
            {"verb": "pull", "lost_datagrams": 1200, "longest_gap_datagrams": 4},
            id="loss is told with its longest gap",
        ),
        pytest.param(
            {"lost_datagrams": 30, "longest_gap_datagrams": 1}, id="a little loss is one in many"
        ),
        pytest.param({"lost_datagrams": 1}, id="a single datagram is no finding"),
        pytest.param(
            {"lost_datagrams": 600, "receiver_dropped_datagrams": None},
            id="where drops are not known the loss is the path's or the receiver's",
        ),
        pytest.param(
            {"sent_bytes_per_second": 60e6, "pace_ratio": 0.64},
            id="a sender that fell behind is told and not called loss",
        ),
        pytest.param(
            {"reordered_datagrams": 600, "reordered_ratio": 0.01, "duplicate_datagrams": 3},
            id="late and doubled ones are told",
        ),
        pytest.param({"lost_datagrams": 60_000}, id="all of them lost is no division"),
        *(
            pytest.param(
                {"verb": verb, "initiator": initiator, "receiver_dropped_datagrams": 70},
                id=f"what our own socket dropped is no loss: {verb} by the {initiator}",
            )
            for verb, initiator in (("push", "client"), ("pull", "client"), ("push", "server"))
        ),
        *(
            pytest.param(each, id=f"an account that does not add up tells nothing: {each}")
            for each in [
                {"sent_datagrams": 0},
                {"sent_datagrams": None},
                {"lost_datagrams": "some"},
                {"lost_datagrams": 60_001},
            ]
        ),
    ],
)
def test_an_account_of_datagrams(hosts, changes, store):
    account = {"verb": "push", "initiator": "client", **CLEAN, **changes}
    hosts.add("udp", account.pop("initiator"), {"verb": account.pop("verb")}, 94, account)
    store(hosts)
