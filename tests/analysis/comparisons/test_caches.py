"""Cached against uncached: the sender's disk is named where it was measured to be what it is."""

import pytest

ABOUT = ("cache",)


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


@pytest.mark.parametrize(("verb", "sender"), [("pull", "server"), ("push", "client")])
def test_the_senders_disk_is_named_where_the_uncached_copy_reaches_it(path, verb, sender, says):
    path.disk(sender, "read", (24, 25, 26))
    path.copy(f"{verb}.cached", about(112))
    path.copy(f"{verb}.uncached", about(24))
    says(path)


def test_a_disk_that_nobody_measured_is_what_both_copies_differ_in(path, says):
    path.copy("pull.cached", about(112))
    path.copy("pull.uncached", about(24))
    says(path)


def test_a_fast_disk_is_not_blamed(path, says):
    path.disk("server", "read", 800)
    path.disk("client", "write", 900)
    path.copy("pull.cached", about(112))
    path.copy("pull.uncached", about(24))
    says(path)


def test_an_uncached_copy_that_is_the_faster_one_is_told_without_a_word_of_its_disk(path, says):
    path.copy("pull.cached", about(60))
    path.copy("pull.uncached", about(100))
    says(path)


def test_differences_within_the_noise_are_none(path, says):
    path.copy("push.cached", (100, 105, 112))
    path.copy("push.uncached", (99, 108, 111))
    says(path)


def test_both_directions_are_told_the_one_that_differs_first(path, says):
    path.disk("server", "read", 25)
    path.copy("push.cached", about(112))
    path.copy("push.uncached", about(111))
    path.copy("pull.cached", about(112))
    path.copy("pull.uncached", about(24))
    says(path)


def test_the_users_own_file_is_compared_with_itself_alone(path, says):
    path.copy("file.pull.cached", about(112))
    path.copy("file.pull.uncached", about(12))
    path.copy("pull.uncached", about(60))
    says(path)


@pytest.mark.parametrize("which", ["cached", "uncached"])
def test_what_may_have_been_the_other_one_is_not_compared(path, which, says):
    for cache in ("cached", "uncached"):
        path.copy(f"pull.{cache}", about(100), proven=cache != which)
    says(path)
