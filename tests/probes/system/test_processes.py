"""Processes: trees, and who used how much between readings, those that ended included."""

import pytest

from probes.system import processes
from probes.system.proc import ProcessStat


def stat(pid, parent, name="x"):
    return ProcessStat(pid, name, parent, False, 1.0, 0.0, 5, 0)


TREE = {each.pid: each for each in (stat(1, 0), stat(5, 1), stat(6, 5), stat(7, 6), stat(8, 1))}


def test_a_loop_of_parents_ends():
    looped = {2: stat(2, 3), 3: stat(3, 2)}
    assert processes.ancestors(looped, 2) == {2, 3}
    assert processes.descendants(looped, 2) == {3, 2}


def test_what_a_parent_inherits_is_the_time_since_the_reading_before():
    earlier = {5: stat(5, 1), 6: stat(6, 5)}
    later = {5: stat(5, 1)._replace(reaped_seconds=1.75)}
    assert processes.inherited_seconds(earlier, later) == {5: 0.75}


def test_a_whole_branch_that_ended_is_inherited_by_its_root():
    earlier = {5: stat(5, 1), 6: stat(6, 5), 7: stat(7, 6)._replace(reaped_seconds=2.0)}
    later = {5: stat(5, 1)._replace(reaped_seconds=4.5)}
    assert processes.inherited_seconds(earlier, later) == {5: 0.5}


def test_a_pid_that_was_given_again_is_one_that_ended():
    earlier = {5: stat(5, 1), 6: stat(6, 5)}
    later = {5: stat(5, 1)._replace(reaped_seconds=1.5), 6: stat(6, 5)._replace(started_ticks=9)}
    assert processes.inherited_seconds(earlier, later) == {5: 0.5}


WATCH_KEY = "first watch"


def other(pid, parent=1, cpu=0.0, reaped=0.0, core=0, started=5, kernel=False):
    return ProcessStat(pid, "x", parent, kernel, cpu, reaped, started, core)


class Readings:
    """Takes readings a second apart; processes not in servers or ours count as others'."""

    def __init__(self):
        self.account = processes.Account()
        self.clock_seconds = 0.0

    def take(self, *stats, servers=(), ours=(), cores=(0,), watched=WATCH_KEY):
        """Returns the growth of others' CPU seconds with this reading."""
        seconds_before = self.account.other_cpu_seconds
        self.clock_seconds += 1.0
        host = {each.pid: each for each in stats}
        self.account.take(watched, host, self.clock_seconds, set(servers), set(ours), set(cores))
        return self.account.other_cpu_seconds - seconds_before

    def of_servers(self):
        """Returns the CPU time of all servers, those that ended included."""
        return sum(each.cpu_seconds for each in self.account.servers.values())


@pytest.fixture
def readings():
    return Readings()


def test_a_stranger_counts_by_its_growth_and_a_new_one_whole(readings):
    readings.take(other(20, cpu=5.0))
    assert readings.take(other(20, cpu=5.5), other(21, cpu=0.25)) == pytest.approx(0.75)


def test_a_pid_that_was_given_again_counts_from_its_own_start(readings):
    readings.take(other(20, cpu=5.0))
    assert readings.take(other(20, cpu=5.5, started=9)) == pytest.approx(5.5)


def test_a_strangers_child_that_ended_is_not_counted_with_its_whole_life(readings):
    readings.take(other(20, cpu=1.0, reaped=50.0), other(22, parent=20, cpu=90.0))
    assert readings.take(other(20, cpu=1.0, reaped=140.5)) == pytest.approx(0.5)


def test_one_that_ended_and_that_nobody_waited_for_takes_nothing_from_the_rest(readings):
    readings.take(other(20, cpu=1.0), other(22, parent=20, cpu=90.0))
    assert readings.take(other(20, cpu=1.25)) == pytest.approx(0.25)


def test_what_is_ours_a_kernel_thread_or_on_another_core_does_not_count(readings):
    readings.take(other(9), other(20, core=1), other(30, kernel=True))
    grown = readings.take(
        other(9, cpu=1.0), other(20, cpu=1.0, core=1), other(30, cpu=1.0, kernel=True), ours=[9]
    )
    assert grown == 0.0


def test_one_that_comes_over_from_another_core_brings_no_past(readings):
    readings.take(other(20, cpu=100.0, core=1))
    assert readings.take(other(20, cpu=100.5, core=0)) == pytest.approx(0.5)


def test_another_clients_server_is_an_other(readings):
    readings.take(other(70), other(71, 70), other(72, 70), servers=[71])
    grown = readings.take(other(70), other(71, 70, cpu=0.5), other(72, 70, cpu=0.75), servers=[71])
    assert grown == pytest.approx(0.75)
    assert readings.of_servers() == pytest.approx(0.5)


def test_a_server_that_ended_keeps_its_time_up_to_its_end(readings):
    readings.take(other(70, reaped=3.0), other(71, 70, cpu=2.0), servers=[71])
    assert readings.take(other(70, reaped=3.0 + 2.5)) == 0.0
    assert readings.of_servers() == pytest.approx(2.5)
    readings.take(other(70, reaped=9.0))
    assert readings.of_servers() == pytest.approx(2.5), "what comes later is not its"


def test_the_past_of_another_clients_ended_server_is_not_counted(readings):
    readings.take(other(70), other(71, 70, cpu=2.0), other(72, 70, cpu=900.0), servers=[71])
    readings.take(other(70, reaped=902.5))
    assert readings.of_servers() == pytest.approx(2.5)


def test_a_server_whose_connection_closed_stays_one_while_it_lives(readings):
    readings.take(other(70), other(71, 70, cpu=2.0), servers=[71])
    assert readings.take(other(70), other(71, 70, cpu=2.25)) == 0.0
    assert readings.of_servers() == pytest.approx(2.25)
    assert readings.account.living_servers() == {71}


def test_another_watch_starts_without_servers(readings):
    readings.take(other(70), other(71, 70, cpu=2.0), servers=[71])
    readings.take(other(70), other(71, 70, cpu=2.0), watched="another")
    assert readings.account.living_servers() == set()
