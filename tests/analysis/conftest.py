"""Builds reports with planted caps, to show where each rule is right and where it is silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Named, Rung
from bottleneck.estimate.observations import SCHEMA, loads
from bottleneck.estimate.supplied_report import report_of
from bottleneck.report.report import Report, Step
from bottleneck.text.units import rate_text
from probes.core import typed
from probes.core.records import (
    SIDES,
    Failed,
    FolderFacts,
    HostFacts,
    InterfaceFacts,
    Measured,
    Outcome,
    Sample,
    Skipped,
    Usage,
)

MB = 1e6
RUN_SECONDS = 4.0


def usage(**changes: Any) -> Usage:
    """A host of two cores that is mostly idle."""
    load: dict[str, Any] = {
        "wall_seconds": RUN_SECONDS,
        "core_busy_ratios": (0.12, 0.08),
        "softirq_ratio": 0.01,
        "steal_ratio": 0.0,
        "busiest_process_ratio": 0.07,
        "other_cpu_seconds": 0.05,
        "run_delay_seconds": 0.01,
        "memory_total_bytes": 8 << 30,
        "memory_used_bytes": 1200 << 20,
        "memory_dirty_bytes": 12 << 20,
    }
    load.update(changes)
    busy_seconds = sum(load["core_busy_ratios"]) * load["wall_seconds"]
    load.setdefault("copy_cpu_seconds", max(0.0, 0.9 * busy_seconds - load["other_cpu_seconds"]))
    load.setdefault("busiest_core_ratio", max(load["core_busy_ratios"], default=0.0))
    return typed.record(Usage, {**load, "core_busy_ratios": [*load["core_busy_ratios"]]}, "usage")


def host(side: str, **changes: Any) -> HostFacts:
    """Facts of a plain host on a wired network."""
    interface: dict[str, Any] = {
        "name": "enp3s0",
        "address": "192.168.1.20" if side == "client" else "192.168.1.10",
        "rate_bits_per_second": 1_000_000_000,
        "duplex": "full",
        "mtu_bytes": 1500,
        "driver": "r8169",
        "virtual": False,
    }
    interface.update(changes)
    return HostFacts(
        name="desk" if side == "client" else "nas",
        system="Linux 6.1.0-18-amd64",
        distribution="Debian GNU/Linux 12 (bookworm)",
        python="3.11.2",
        cores=2,
        quota_cores=None,
        memory_total_bytes=8 << 30,
        virtual=None,
        privileged=side == "server",
        interface=InterfaceFacts(**interface),
        congestion_control="cubic",
        socket_buffers={"net.core.rmem_max": "212992", "net.ipv4.tcp_rmem": "4096 131072 6291456"},
        folder=FolderFacts(
            path="/home/ann/media" if side == "client" else "/srv/media",
            filesystem="ext4",
            mount_options="rw,relatime",
            device="nvme0n1p2" if side == "client" else "sda1",
            rotational=side == "server",
            total_bytes=500 << 30,
            free_bytes=210 << 30,
        ),
        tools={"fio": "3.33"},
    )


def runs_of(rates: tuple[float, ...], load: Usage, peer: Usage | None, details: Any) -> Measured:
    """Returns runs of the planted rates, in bytes per second."""
    runs = tuple(
        tuple(Sample(RUN_SECONDS * n / 4, int(rate * RUN_SECONDS * n / 4)) for n in range(5))
        for rate in rates
    )
    return Measured(runs, load, peer, details)


class World:
    """A run in the making; every rate in MB/s, as `rate` or as (low, median, high)."""

    def __init__(self, agent: bool = True) -> None:
        self.agent = agent
        self.entries: list[tuple[Step, Outcome]] = []
        self.client: HostFacts | None = host("client")
        self.server: HostFacts | None = host("server") if agent else None
        self.status = "complete"
        self.busy: dict[str, dict[str, Any]] = {"client": {}, "server": {}}
        self.target_rate: float | None = None
        self.target: dict[str, Any] = {
            **{"share": "//nas/media", "dialect": "3.1.1"},
            **{"signing": "aes-gmac", "encryption": None},
        }

    def add(
        self,
        stage: str,
        initiator: str,
        setting: dict[str, Any],
        rate: float | tuple[float, ...],
        details: dict[str, Any],
        **loads: dict[str, Any],
    ) -> int:
        """A measured step; `client=` and `server=` change what its hosts were busy with."""
        rates = tuple(each * MB for each in (rate if isinstance(rate, tuple) else (rate,)))
        usages: dict[str, Usage | None] = {
            side: usage(**{**self.busy[side], **loads.get(side, {})}) for side in SIDES
        }
        other = "server" if initiator == "client" else "client"
        if not self.agent or stage in ("disk", "loopback"):
            usages[other] = None
        load = usages[initiator]
        assert load is not None
        return self.put(stage, initiator, setting, runs_of(rates, load, usages[other], details))

    def put(self, stage: str, initiator: str, setting: dict[str, Any], outcome: Outcome) -> int:
        """Adds a step with a given outcome; returns its index."""
        self.entries.append((Step(stage, setting, initiator), outcome))
        return len(self.entries) - 1

    def loopback(self, side: str, rate: float, **loads: dict[str, Any]) -> int:
        """Adds TCP within one host, which fills a core as the real one does."""
        full = {"core_busy_ratios": (1.0, 0.9), "busiest_process_ratio": 0.99}
        load = {side: {**full, **loads.get(side, {})}}
        setting = {"verb": "push", "streams": 1, "buffer_bytes": 262144, "seconds": 0.8}
        return self.add("loopback", side, setting, rate, {}, **load)

    def tcp(
        self,
        verb: str,
        rate: Any,
        streams: int = 1,
        by: str = "network",
        limits: dict[str, Any] | None = None,
        **loads: Any,
    ) -> int:
        """A transfer between the hosts; limits: more figures of its connection."""
        self._widen(rate)
        setting = {"verb": verb, "streams": streams, "buffer_bytes": 262144, "seconds": 2.0}
        control = (limits or {}).get("congestion_control", "cubic")
        details = {"limits": {"by": by, **(limits or {})}, "congestion_control": control}
        return self.add("tcp", "client", setting, rate, details, **loads)

    def change_interface(self, side: str, **facts: Any) -> None:
        host = getattr(self, side)
        setattr(self, side, replace(host, interface=replace(host.interface, **facts)))

    def _widen(self, rate: Any) -> None:
        """Gives both hosts links that carry what was moved: no rate here is beyond physics."""
        bits = max(rate if isinstance(rate, tuple) else (rate,)) * MB * 8 / 0.94
        for side in ("client", "server"):
            facts = getattr(self, side)
            if facts is not None and facts.interface is not None:
                claimed = facts.interface.rate_bits_per_second
                if claimed is not None and claimed < bits * 0.98:
                    faster = replace(facts.interface, rate_bits_per_second=100_000_000_000)
                    setattr(self, side, replace(facts, interface=faster))

    def disk(
        self,
        side: str,
        verb: str,
        rate: Any,
        cache: str = "uncached",
        proven: bool = True,
        **loads: Any,
    ) -> int:
        setting = {"side": side, "verb": verb, "cache": cache, "folder": "/srv"}
        proof = {"side": side, "requested": cache, "proven": proven, "cached_ratio_before": 0.0}
        details = {"cache": proof, "fio_version": "3.33"} if verb == "read" else {}
        return self.add("disk", side, setting, rate, details, **loads)

    def copy(
        self,
        name: str,
        rate: Any,
        memory: Any = None,
        dialect: str = "3.1.1",
        initiator: str = "client",
        proven: bool = True,
        details: dict[str, Any] | None = None,
        engine: str | None = None,
        **loads: Any,
    ) -> int:
        """A copy to or from a folder; with `memory`, before it the same without the disk."""
        self._widen(rate)
        setting: dict[str, Any] = {
            "copy": name,
            "dialect": dialect,
            "signing": "aes-gmac",
            "encryption": None,
            "size_bytes": 256 << 20,
            "request_bytes": 1 << 20,
            "depth": 8,
        }
        if engine is not None:
            setting["engine"] = engine
        if memory is not None:
            self.add("smb-copy", initiator, {**setting, "end": "memory"}, memory, {}, **loads)
        cache = name.rsplit(".", 1)[-1]
        sender = "client" if "push" in name else "server"
        fields = {
            "cache": {
                "side": sender,
                "requested": cache,
                "proven": proven,
                "cached_ratio_before": 1.0 if cache == "cached" else 0.0,
            },
            "hash_ok": True,
            **(details or {}),
        }
        return self.add("smb-copy", initiator, {**setting, "end": "folder"}, rate, fields, **loads)

    def matrix(
        self,
        verb: str,
        cells: dict[tuple[int, int], float],
        rtt_seconds: float,
        fit: tuple[float | None, float | None] | None = None,
        details: dict[str, Any] | None = None,
    ) -> int:
        """Request sizes and depths with their rates in MB/s; fit: ceiling in MB/s, seconds."""
        fields: dict[str, Any] = {
            "cells": [
                {
                    "request_bytes": size,
                    "depth": depth,
                    "in_flight_bytes": size * depth,
                    "bytes_per_second": rate * MB,
                    "request_seconds_median": size * depth / rate / MB,
                }
                for (size, depth), rate in cells.items()
            ],
            "rtt_seconds": rtt_seconds,
            "rtt_low_seconds": 0.9 * rtt_seconds,
            "dialect": "3.1.1",
            "hash_ok": True,
        }
        if fit is not None:
            ceiling, trip = fit
            fields["fit"] = {
                "ceiling_bytes_per_second": ceiling and ceiling * MB,
                "rtt_seconds": trip,
                "worst_residual_ratio": 0.1,
            }
        setting = {"verb": verb, "dialect": "3.1.1", "size_bytes": 64 << 20, "security": ""}
        fields.update(details or {})
        return self.add("smb-matrix", "client", setting, max(cells.values()), fields)

    def tax(self, verb: str, security: str, rate: Any, **loads: Any) -> int:
        self._widen(rate)
        setting = {"verb": verb, "dialect": "3.1.1", "security": security, "size_bytes": 64 << 20}
        details = {
            "signing": "aes-gmac" if security == "signed" else None,
            "encryption": "aes-128-gcm" if security == "encrypted" else None,
            "hash_ok": loads.pop("hash_ok", True),
        }
        return self.add("smb-tax", "client", setting, rate, details, **loads)

    def small_files(
        self,
        verb: str,
        seconds_per_file: float,
        rtt_seconds: float | None,
        round_trips: float = 3.0,
        hash_ok: bool = True,
        **loads: Any,
    ) -> int:
        """Files of 16 KiB, one after the other."""
        setting = {"verb": verb, "files": 500, "file_bytes": 16384, "dialect": "3.1.1"}
        details = {
            "files": 400,
            "seconds_per_file": seconds_per_file,
            "seconds_per_file_low": 0.9 * seconds_per_file,
            "seconds_per_file_high": 1.2 * seconds_per_file,
            "round_trips_per_file": round_trips,
            "rtt_seconds": rtt_seconds,
            "hash_ok": hash_ok,
        }
        rate = 16384 / seconds_per_file / MB
        return self.add("small-files", "client", setting, rate, details, **loads)

    def native(
        self, name: str, rate: Any, options: str = "rw,vers=3.1.1,cache=strict", **extra: Any
    ) -> int:
        """The system's own copy through a mount."""
        setting = {"copy": name, "folder": "/home/ann/media", "target_folder": "/mnt/nas"}
        cache = name.rsplit(".", 1)[-1]
        mount = {"filesystem": extra.pop("filesystem", "cifs"), "options": options}
        details = {
            "program": "cp",
            "command": extra.pop("command", False),
            "cache": {
                "side": "client" if "push" in name else "server",
                "requested": cache,
                "proven": extra.pop("proven", True),
                "cached_ratio_before": 1.0 if cache == "cached" else 0.0,
            },
            "mount": mount,
            "hash_ok": extra.pop("hash_ok", True),
        }
        return self.add("native-copy", "client", setting, rate, details, **extra)

    def skip(self, name: str, reason: str, dialect: str = "3.1.1") -> int:
        setting = {"copy": name, "dialect": dialect, "end": "folder"}
        return self.put("smb-copy", "client", setting, Skipped(reason))

    def fail(self, name: str, error: str) -> int:
        setting = {"copy": name, "dialect": "3.1.1", "end": "folder"}
        samples = (Sample(0.0, 0), Sample(1.5, 30_000_000))
        return self.put("smb-copy", "client", setting, Failed(error, samples))

    def forget(self, stage: str | None = None, **setting: Any) -> None:
        self.entries = [
            (step, outcome)
            for step, outcome in self.entries
            if stage not in (None, step.stage)
            or any(step.setting.get(name) != value for name, value in setting.items())
        ]

    def diagnosis_of(self, copy: int | str = 0) -> CopyDiagnosis:
        copies = diagnose(self.report()).copies
        if isinstance(copy, int):
            return copies[copy]
        return next(each for each in copies if each.copy == copy)

    def verdict_key(self, copy: int | str = 0) -> Named:
        return self.diagnosis_of(copy).verdict.key

    def ceilings(self, copy: int | str = 0) -> list[Named]:
        """Keys of a copy's ceilings, lowest first."""
        return [each.key for each in self.diagnosis_of(copy).ceilings]

    def report(self, **changes: Any) -> Report:
        fields: dict[str, Any] = {
            "status": self.status,
            "tool": {"version": "0.1.0", "python": "3.11.2", "fio": "3.33"},
            "started": "2026-11-20T23:45:00+00:00",
            "elapsed_seconds": 41.3,
            "target": dict(self.target),
            "target_rate_bytes_per_second": self.target_rate,
            "client": self.client,
            "server": self.server,
            "entries": tuple(self.entries),
            "notes": (),
        }
        fields.update(changes)
        return Report(**fields)


def seen_sockets(**changes: Any) -> dict[str, Any]:
    """A connection over 16 ms and 100 Mbit/s that fills the link, as both its ends saw it."""
    fields: dict[str, Any] = {
        "by": "network",
        "congestion_control": "cubic",
        "sender_seen": True,
        "receiver_seen": True,
        "glimpses": 180,
        "busy_ratio": 1.0,
        "receive_window_limited_ratio": 0.01,
        "send_buffer_limited_ratio": 0.0,
        "unsent_bytes_median": 769_376,
        "in_flight_bytes_median": 399_648,
        "in_flight_bytes_high": 419_920,
        "rtt_seconds_median": 0.0334,
        "rtt_seconds_high": 0.036,
        "min_rtt_seconds": 0.0162,
        "peer_window_bytes_median": 3_475_456,
        "congestion_window_bytes_median": 402_544,
        "segment_bytes": 1448,
        "retransmitted_segments": 70,
        "sent_bytes": 47_000_000,
        "retransmitted_bytes": 101_360,
        "loss_ratio": 0.0021,
        "rto_seconds": 0.0,
        "reduced_ratio": 0.02,
        "path_mtu_bytes": 1500,
        "unread_bytes_median": 0,
        "full_ratio": 0.0,
        "out_of_order_segments": 475,
        "own_window_bytes_median": 3_475_456,
        "send_buffer_bytes": 1_700_352,
        "receive_buffer_bytes": 5_232_871,
        "process": "smbd",
    }
    fields.update(changes)
    return {name: value for name, value in fields.items() if value is not None}


@pytest.fixture(name="usage")
def usage_of() -> Callable[..., Usage]:
    """Makes the usage of a host that is mostly idle: `usage(throttled_ratio=0.9)`."""
    return usage


@pytest.fixture
def sockets() -> Callable[..., dict[str, Any]]:
    """Makes details["sockets"]: `sockets(unread_bytes_median=None)` leaves one out."""
    return seen_sockets


@pytest.fixture
def empty_world() -> Callable[..., World]:
    """Makes a world without a step: `empty_world(agent=False)`."""
    return World


@pytest.fixture
def pull_of(empty_world: Callable[..., World]) -> Callable[..., World]:
    """Makes a world with one pull: `pull_of(70, disk=41, server=...)`; None: not measured."""

    def make_world(
        rate: Any, *, link: Any = 117.6, disk: Any = 500, agent: bool = True, **copy: Any
    ) -> World:
        world = empty_world(agent)
        if link is not None:
            world.tcp("pull", link)
        if disk is not None:
            world.disk("client", "write", disk)
        world.copy("pull.cached", rate, **copy)
        return world

    return make_world


@pytest.fixture
def world() -> World:
    """Two hosts on a gigabit link with disks that are faster; no copy yet."""
    lan = World()
    lan.loopback("client", 2100)
    lan.loopback("server", 1700)
    lan.tcp("push", 117.6)
    lan.tcp("pull", 117.5)
    lan.disk("client", "read", (1480, 1500, 1510))
    lan.disk("client", "write", (890, 900, 915))
    lan.disk("server", "read", (205, 210, 214))
    lan.disk("server", "write", (185, 190, 193))
    return lan


@pytest.fixture
def two_hosts(empty_world: Callable[..., Any]) -> Callable[..., Any]:
    """Makes two hosts whose disks have one rate, and the path between them another.

    one, several: rate of one stream of TCP, and of four; limits: of their connections."""

    def make(
        one: Any = 117.6, several: Any = None, disk: Any = 400, limits: Any = None, **extra: Any
    ) -> Any:
        world = empty_world()
        for verb in ("pull", "push"):
            world.tcp(verb, one, limits=limits)
            if several is not None:
                world.tcp(verb, several, streams=4, limits=extra.get("limits_of_several"))
        for side in ("client", "server"):
            for verb in ("read", "write"):
                world.disk(side, verb, disk)
        return world

    return make


@pytest.fixture
def load_toml() -> Callable[[str], Report]:
    head = f'schema = "{SCHEMA}"\ntitle = "A ticket"\ndate = "2026-11-20"\n'
    return lambda text: report_of(loads((head + text).encode()))


def ceiling_text(ceiling: Ceiling) -> str:
    rate = rate_text(ceiling.bytes_per_second)
    steps = " ".join(map(str, ceiling.steps))
    return f"{ceiling.words} {rate} {ceiling.standing} [{steps}]"


def rung_text(limit: Rung) -> str:
    """Returns the next limit, and the low, median and high rate that are expected by then."""
    band, rate = limit.predicted_bytes_per_second, rate_text(limit.ceiling_bytes_per_second)
    rates = (band.low, band.median, band.high) if band else ()
    return f"{limit.words} {rate} ({', '.join(map(rate_text, rates))})"


@pytest.fixture
def expect(golden: Callable[[str], None]) -> Callable[..., None]:
    """Asserts the copies' verdicts in turn, and compares all sentences with the golden file."""

    def assert_named(world: Any, *expected: str, **target: Any) -> None:
        report = world if isinstance(world, Report) else world.report()
        report.target.update(target)
        copies = diagnose(report).copies
        for each in copies:
            verdict = each.verdict
            golden(f"{verdict.words} {verdict.confidence} {verdict.detail}".rstrip())
            golden(f"  {each.verdict.sentence}")
            golden(f"  {'; '.join(map(ceiling_text, each.ceilings))}")
            if each.ladder[1:]:
                golden(f"  then {'; '.join(map(rung_text, each.ladder[1:]))}")
            for line in (*each.evidence, *each.advice):
                if "% likely: " not in line:  # these figures have their own test
                    golden(f"  - {line}")
        assert tuple(each.verdict.words for each in copies[: len(expected)]) == expected

    return assert_named
