"""The four combinations of direction and initiator, as the file's holder and its receiver start."""

import pytest

ABOUT = ("initiator",)


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


def test_the_sender_should_start_it_where_both_directions_say_so(world, says):
    pair(world, "client", about(112), about(80))
    pair(world, "server", about(110), about(85))
    says(world)


def test_the_receiver_or_a_host_is_named_where_those_are_what_helps(world, says):
    pair(world, "client", about(80), about(112))
    says(world)
    pair(world, "server", about(110), about(70))
    says(world)


def test_where_the_directions_disagree_it_depends(world, says):
    pair(world, "client", about(112), about(80))
    pair(world, "client", about(70), about(100), cache="uncached")
    pair(world, "server", about(110), about(85))
    pair(world, "server", about(100), about(101), cache="uncached")
    says(world)


def test_differences_within_the_noise_are_none(world, says):
    pair(world, "client", (100, 105, 112), (99, 108, 111))
    pair(world, "server", 110, 95)  # one run each
    says(world)


def test_others_that_differ_not_are_counted(world, says):
    pair(world, "client", about(112), about(80))
    pair(world, "client", about(100), about(101), cache="uncached")
    pair(world, "server", about(100), about(101))
    says(world)


def test_another_programs_copies_are_named_as_such(world, says):
    pair(world, "client", about(112), about(80), engine="smbclient")
    says(world)


def test_a_push_that_nothing_flushed_is_compared_as_acknowledged(world, says):
    """smbclient sends no FLUSH: against a flushed rate it would look faster than it is."""
    own = {"acknowledged_bytes_per_second": 112e6, "flush_seconds": 2.0}
    there = {"flushed": False, "acknowledged_bytes_per_second": 113e6}
    pair(world, "server", about(113), about(70), engine="smbclient", own=own, there=there)
    says(world)


def test_an_acknowledged_difference_says_so(world, says):
    there = {"flushed": False}
    pair(world, "server", about(113), about(70), engine="smbclient", there=there)
    says(world)


def test_what_this_tool_itself_served_tells_nothing(world, says):
    there = {"engine_server": "impacket"}
    pair(world, "client", about(112), about(30), engine="smbclient", there=there)
    says(world)


def test_a_source_that_one_of_both_may_have_had_in_the_cache_compares_nothing(world, says):
    world.copy("pull.uncached", about(60))
    world.copy("server.push.uncached", about(112), initiator="server", proven=False)
    says(world)


@pytest.mark.parametrize("sender", ["client", "server"])
def test_a_share_that_encrypts_where_the_other_does_not_is_told(world, sender, says):
    own = {"signing": None, "encryption": None}
    there = {**own, "encryption": "aes-128-gcm"}
    pair(world, sender, about(112), about(80), own=own, there=there)
    says(world)


def test_half_a_pair_altered_bytes_or_another_dialect_compare_nothing(world, says):
    world.copy("push.cached", 112)
    says(world)
    world.copy("server.pull.cached", 80, initiator="server", details={"hash_ok": False})
    says(world)
    world.copy("server.pull.cached", 80, initiator="server", dialect="2.1")
    world.copy("server.pull.uncached", 80, initiator="server")
    world.native("push.uncached", 50)
    says(world)


def test_what_holds_the_slower_start_is_named_where_it_was_measured(world, says):
    """The client's core is full while it serves its share, and is not while it pushes."""
    world.copy("push.cached", about(112))
    full = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
    world.copy("server.pull.cached", about(70), initiator="server", client=full)
    says(world)
