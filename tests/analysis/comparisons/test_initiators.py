"""The four combinations of direction and initiator, as the file's holder and its receiver start."""

import pytest

from bottleneck.analysis import diagnose


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "initiator"]


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def pair(world, sender, pushed, pulled, cache="cached", engine="own", **details):
    """One direction: started by its sender, by its receiver."""
    by_client, by_server = (pushed, pulled) if sender == "client" else (pulled, pushed)
    name = f"{'push' if sender == 'client' else 'pull'}.{cache}"
    other = f"server.{'pull' if sender == 'client' else 'push'}.{cache}"
    world.copy(name, by_client, details=details.get("own"))
    there = {"initiator": "server", "engine": engine, "details": details.get("there")}
    world.copy(other, by_server, **there)


def test_the_sender_should_start_it_where_both_directions_say_so(world):
    pair(world, "client", about(112), about(80))
    pair(world, "server", about(110), about(85))
    (found,) = compared(world)
    assert found.sentence.startswith(
        "Start it from the sender: 1.4x client to server cached when the client starts it "
        "(112 MB/s against 80 MB/s); 1.3x server to client cached when the server starts it "
        "(110 MB/s against 85 MB/s). Started by the server that copy is slower: nothing that was "
        "measured explains it: "
    )
    assert found.significant
    assert found.ratio == pytest.approx(1.4)
    assert [row["direction"] for row in found.rows] == ["client to server", "server to client"]
    assert [row["better"] for row in found.rows] == ["sender", "sender"]
    assert len(found.steps) == 4


def test_the_receiver_or_a_host_is_named_where_those_are_what_helps(world):
    pair(world, "client", about(80), about(112))
    assert compared(world)[0].sentence.startswith("Start it from the receiver: 1.4x")
    pair(world, "server", about(110), about(70))
    # the server: it receives the one and sends the other
    assert compared(world)[0].sentence.startswith("Start it from the server: 1.4x")


def test_where_the_directions_disagree_it_depends(world):
    pair(world, "client", about(112), about(80))
    pair(world, "client", about(70), about(100), cache="uncached")
    pair(world, "server", about(110), about(85))
    pair(world, "server", about(100), about(101), cache="uncached")
    (found,) = compared(world)
    assert found.sentence.startswith("Who should start it depends: ")
    assert found.sentence.count("; no difference that can be told in the other one. ") == 1
    assert len(found.rows) == 4


def test_differences_within_the_noise_are_none(world):
    pair(world, "client", (100, 105, 112), (99, 108, 111))
    pair(world, "server", 110, 95)  # one run each
    (found,) = compared(world)
    assert found.sentence.startswith("It makes no difference that these runs can tell who starts")
    assert not found.significant
    assert all(row["better"] is None for row in found.rows)


def test_others_that_differ_not_are_counted(world):
    pair(world, "client", about(112), about(80))
    pair(world, "client", about(100), about(101), cache="uncached")
    pair(world, "server", about(100), about(101))
    assert (
        compared(world)[0].sentence.count("; no difference that can be told in the other 2. ") == 1
    )


def test_another_programs_copies_are_named_as_such(world):
    pair(world, "client", about(112), about(80), engine="smbclient")
    (found,) = compared(world)
    assert found.sentence.endswith(
        "The server's own copies were made by smbclient, the client's by this tool: a part of the "
        "difference may be theirs."
    )
    assert found.rows[0]["engine"] == "smbclient"


def test_a_push_that_nothing_flushed_is_compared_as_acknowledged(world):
    """smbclient sends no FLUSH: against a flushed rate it would look faster than it is."""
    own = {"acknowledged_bytes_per_second": 112e6, "flush_seconds": 2.0}
    there = {"flushed": False, "acknowledged_bytes_per_second": 113e6}
    pair(world, "server", about(113), about(70), engine="smbclient", own=own, there=there)
    (found,) = compared(world)
    assert not found.significant
    assert found.rows[0]["durable"] is False
    assert found.rows[0]["receiver_bytes_per_second"] == 112e6


def test_an_acknowledged_difference_says_so(world):
    there = {"flushed": False}
    pair(world, "server", about(113), about(70), engine="smbclient", there=there)
    assert "(113 MB/s against 70 MB/s, as acknowledged)" in compared(world)[0].sentence


def test_what_this_tool_itself_served_tells_nothing(world):
    there = {"engine_server": "impacket"}
    pair(world, "client", about(112), about(30), engine="smbclient", there=there)
    (found,) = compared(world)
    assert found.sentence.startswith("Who should start the copy cannot be told: the client's share")
    assert not found.significant
    assert found.rows[0]["engine_server"] == "impacket"


def test_a_source_that_one_of_both_may_have_had_in_the_cache_compares_nothing(world):
    world.copy("pull.uncached", about(60))
    world.copy("server.push.uncached", about(112), initiator="server", proven=False)
    assert compared(world) == []


@pytest.mark.parametrize("sender", ["client", "server"])
def test_a_share_that_encrypts_where_the_other_does_not_is_told(world, sender):
    own = {"signing": None, "encryption": None}
    there = {**own, "encryption": "aes-128-gcm"}
    pair(world, sender, about(112), about(80), own=own, there=there)
    assert compared(world)[0].sentence.endswith(
        " The copies that the client started were plain, the server's encrypted: that may be a "
        "part of it, or hide it."
    )


def test_half_a_pair_altered_bytes_or_another_dialect_compare_nothing(world):
    world.copy("push.cached", 112)
    assert compared(world) == []
    world.copy("server.pull.cached", 80, initiator="server", details={"hash_ok": False})
    assert compared(world) == []
    world.copy("server.pull.cached", 80, initiator="server", dialect="2.1")
    world.copy("server.pull.uncached", 80, initiator="server")
    world.native("push.uncached", 50)
    assert compared(world) == []


def test_what_holds_the_slower_start_is_named_where_it_was_measured(world):
    """The client's core is full while it serves its share, and is not while it pushes."""
    world.copy("push.cached", about(112))
    full = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
    world.copy("server.pull.cached", about(70), initiator="server", client=full)
    (found,) = compared(world)
    assert " Started by the server that copy is slower: " in found.sentence
    (row,) = found.rows
    assert (row["mechanism"], row["component"], row["side"]) == ("ceiling", "cpu", "client")
