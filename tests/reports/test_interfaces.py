"""The section of both hosts' interfaces: what it shows, and that all facts survive a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bottleneck import report as reports
from bottleneck import report_schema
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report import Report
from bottleneck.reports.hosts import interface_points, interface_text
from probes.records import InterfaceFacts

DATA = Path(__file__).parent.parent / "data"
SLOT = {"lanes": 1.0, "transfers_per_second": 5e9, "bytes_per_second": 5e8}


def link(name: str = "enp3s0", **facts: Any) -> InterfaceFacts:
    plain: dict[str, Any] = {
        "address": "192.168.1.10",
        "rate_bits_per_second": 10**9,
        "duplex": "full",
        "mtu_bytes": 1500,
        "driver": "igb",
        "virtual": False,
        "kind": "ethernet",
    }
    return InterfaceFacts(name=name, **{**plain, **facts})


EVERYTHING = link(
    "bond0.7",
    kind="vlan",
    virtual=True,
    vlan_id=7,
    lower=(
        link(
            "bond0",
            kind="bond",
            bond_mode="802.3ad",
            virtual=True,
            lower=(
                link(
                    autonegotiated=True,
                    able_bits_per_second=10**10,
                    partner_bits_per_second=10**9,
                    pause={"autonegotiated": True, "receives": True, "sends": False},
                    offloads={"tcp_segmentation": True, "generic_receive": False},
                    coalescing={"receive_seconds": 3e-6, "receive_packets": 0.0},
                    adaptive={"receive": True},
                    rings={"receive_packets": 256, "able_receive_packets": 4096},
                    counts={"rx_missed_errors": 7},
                    pcie=SLOT,
                    qdisc="tbf",
                    qdisc_rate_bytes_per_second=12_500_000,
                ),
                link("enx0", usb_bits_per_second=480_000_000, usb_version="2.10"),
            ),
        ),
    ),
)
RADIO = link(
    "wlp2s0",
    kind="wifi",
    rate_bits_per_second=None,
    duplex=None,
    driver="iwlwifi",
    wifi={"bits_per_second": 433_300_000, "signal_dbm": -61},
)


def with_links(client: InterfaceFacts, server: InterfaceFacts) -> Report:
    told = reports.load(DATA / "report-v1-server-disk.json")
    assert told.client is not None and told.server is not None
    return replace(
        told,
        client=replace(told.client, interface=client),
        server=replace(told.server, interface=server),
    )


def test_every_fact_survives_a_report_and_its_schema() -> None:
    told = with_links(RADIO, EVERYTHING)
    text = reports.dumps(told, diagnose(told))
    Draft202012Validator(report_schema.schema()).validate(json.loads(text))
    again = reports.loads(text.encode())
    assert again.client is not None and again.client.interface == RADIO
    assert again.server is not None and again.server.interface == EVERYTHING


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (link(), "enp3s0 (igb), 1 Gbit/s full duplex, MTU 1500"),
        (
            link(duplex="half", rate_bits_per_second=10**8, autonegotiated=False),
            "enp3s0 (igb), 100 Mbit/s half duplex (set manually), MTU 1500",
        ),
        (RADIO, "wlp2s0 (Wi-Fi iwlwifi), 433 Mbit/s, -61 dBm, MTU 1500"),
        (
            link(pcie=SLOT),
            "enp3s0 (igb), 1 Gbit/s full duplex, MTU 1500, slot of 1 lane at 5 GT/s (500 MB/s)",
        ),
        (
            link("enx0", driver="r8152", usb_bits_per_second=480_000_000),
            "enx0 (r8152), 1 Gbit/s full duplex, MTU 1500, USB at 480 Mbit/s",
        ),
        (
            link(pause={"receives": True, "sends": True}),
            "enp3s0 (igb), 1 Gbit/s full duplex, MTU 1500, flow control receives and sends",
        ),
        (
            link(offloads={"tcp_segmentation": False, "generic_receive": True}),
            "enp3s0 (igb), 1 Gbit/s full duplex, MTU 1500, tcp segmentation offload off",
        ),
        (
            link(qdisc="tbf", qdisc_rate_bytes_per_second=12_500_000),
            "enp3s0 (igb), 1 Gbit/s full duplex, MTU 1500, shaped to 100 Mbit/s by tbf",
        ),
        (link(qdisc="fq_codel"), "enp3s0 (igb), 1 Gbit/s full duplex, MTU 1500"),
        (link("wg0", kind="wireguard", virtual=True), "wg0 (wireguard), MTU 1500"),
        (
            link("v0", kind="veth", virtual=True, rate_bits_per_second=10**10),
            "v0 (veth), MTU 1500",
        ),
    ],
)
def test_an_interface_is_one_line(facts: InterfaceFacts, text: str) -> None:
    assert interface_text(facts) == text


def test_what_lies_below_is_listed_under_its_host(shown):
    lines = shown(interface_points(with_links(link(), EVERYTHING)), 200).splitlines()
    assert lines[:2] == ["", "Interfaces"]
    assert lines[2].startswith("- client: enp3s0 (igb), 1 Gbit/s")
    assert lines[3].startswith("- server: bond0.7 (vlan 7), 1 Gbit/s full duplex")
    assert lines[4].startswith("- server: below bond0.7: bond0 (bond 802.3ad)")
    assert lines[5] == "- server: below bond0: enp3s0, enx0"


def test_a_bridge_of_many_ports_does_not_fill_the_screen(shown):
    ports = tuple(link(f"veth{at}", kind="veth", virtual=True) for at in range(40))
    bridge = link("br0", kind="bridge", virtual=True, lower=ports)
    told = shown(interface_points(with_links(link(), bridge)))
    assert len(told.splitlines()) < 12
    assert "36 more" in told


def test_without_facts_there_is_no_section(shown):
    told = reports.load(DATA / "report-v1-server-disk.json")
    assert shown(interface_points(replace(told, client=None, server=None))) == ""
