"""Processes: names with anything in them, trees, times in seconds."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="union-attr"

import os
import subprocess
import sys

from probes.host import processes
from probes.host.processes import ProcessStat

STAT = (
    "4658 (cat) R 4604 4604 3953 0 -1 4194304 98 0 0 0 150 250 10 20 20 0 1 0 213551 3133440 384 "
    "18446744073709551615 94823946870784 94823946890665 140726622062112 0 0 0 0 0 0 0 0 0 17 1 0 "
    "0 0 0 0 94823946906672 94823946908288 94824497815552 140726622067385 140726622067405 "
    "140726622067405 140726622068715 0\n"
)


def stat(pid, parent, name="x"):
    return ProcessStat(pid, name, parent, False, 1.0, 0.0, 1, 5, 0)


TREE = {each.pid: each for each in (stat(1, 0), stat(5, 1), stat(6, 5), stat(7, 6), stat(8, 1))}


def test_a_line_is_parsed():
    told = processes.parse_stat(STAT)
    assert (told.pid, told.name, told.parent, told.core) == (4658, "cat", 4604, 1)
    assert told.cpu_seconds == 400 * processes.TICK_SECONDS
    assert told.reaped_seconds == 30 * processes.TICK_SECONDS
    assert (told.threads, told.started_ticks, told.kernel) == (1, 213551, False)


def test_a_name_may_hold_blanks_and_parentheses():
    told = processes.parse_stat(STAT.replace("(cat)", "(a) R (b c)"))
    assert (told.name, told.parent) == ("a) R (b c", 4604)


def test_no_line_is_none():
    assert processes.parse_stat("") is None
    assert processes.parse_schedstat("") is None


def test_run_delay_is_seconds():
    assert processes.parse_schedstat("111036402 877991903 14\n") == (0.111036402, 0.877991903)


def test_descendants_are_the_whole_tree_below_and_not_oneself():
    assert processes.descendants(TREE, 5) == {6, 7}
    assert processes.descendants(TREE, 99) == set()


def test_ancestors_go_up_to_init():
    assert processes.ancestors(TREE, 7) == {7, 6, 5, 1}


def test_a_loop_of_parents_ends():
    looped = {2: stat(2, 3), 3: stat(3, 2)}
    assert processes.ancestors(looped, 2) == {2, 3}
    assert processes.descendants(looped, 2) == {3, 2}


def test_what_a_parent_inherits_is_the_time_since_the_reading_before():
    before = {5: stat(5, 1), 6: stat(6, 5)}
    after = {5: stat(5, 1)._replace(reaped_seconds=1.75)}
    assert processes.inherited_seconds(before, after) == {5: 0.75}


def test_a_whole_branch_that_ended_is_inherited_by_its_root():
    before = {5: stat(5, 1), 6: stat(6, 5), 7: stat(7, 6)._replace(reaped_seconds=2.0)}
    after = {5: stat(5, 1)._replace(reaped_seconds=4.5)}
    assert processes.inherited_seconds(before, after) == {5: 0.5}


def test_a_parent_that_does_not_wait_inherits_nothing():
    assert processes.inherited_seconds({5: stat(5, 1), 6: stat(6, 5)}, {5: stat(5, 1)}) == {}


def test_a_pid_that_was_given_again_is_one_that_ended():
    before = {5: stat(5, 1), 6: stat(6, 5)}
    after = {
        5: stat(5, 1)._replace(reaped_seconds=1.5),
        6: stat(6, 5)._replace(started_ticks=9),
    }
    assert processes.inherited_seconds(before, after) == {5: 0.5}


def test_a_real_child_is_seen_with_its_threads():
    code = "import threading; e = threading.Event(); threading.Thread(target=e.wait).start(); "
    code += "print(1, flush=True); input(); e.set()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        seen = processes.read_all()
        assert child.pid in processes.descendants(seen, os.getpid())
        assert len(processes.thread_times(seen[child.pid])) == 2
        child.stdin.write(b"\n")
        child.stdin.flush()


def test_a_process_that_ended_has_no_threads():
    assert processes.thread_times(stat(2**22 + 1, 0)) == []
