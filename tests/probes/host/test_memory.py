"""Memory: used is without the page cache."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="union-attr"

from pathlib import Path

from probes.host import cgroup, memory

RECORDED = (Path(__file__).parent / "recorded" / "meminfo.txt").read_text()
KIB = 1024


def test_the_page_cache_is_told_apart_from_what_is_in_use():
    told = memory.parse_meminfo(RECORDED)
    free = int(RECORDED.partition("MemFree:")[2].split()[0]) * KIB
    assert told.total_bytes == told.used_bytes + told.cached_bytes + free
    assert told.dirty_bytes == int(RECORDED.partition("Dirty:")[2].split()[0]) * KIB


def test_a_text_without_the_lines_tells_nothing():
    assert memory.parse_meminfo("MemTotal: 5 kB\n") is None


def test_a_containers_limit_replaces_the_hosts_memory(monkeypatch):
    limit = cgroup.MemoryLimit(1 << 20, 1000, 2000, 3000)
    monkeypatch.setattr(cgroup, "memory_limit", lambda pid: limit)
    assert memory.read_memory() == (1 << 20, 1000, 2000, 3000)


def test_a_limit_above_the_hosts_memory_is_none(monkeypatch):
    limit = cgroup.MemoryLimit(1 << 59, 1000, 2000, 3000)
    monkeypatch.setattr(cgroup, "memory_limit", lambda pid: limit)
    assert memory.read_memory().total_bytes < 1 << 59
