"""The section of both hosts' interfaces: what it shows, and that all facts survive a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from bottleneck.documents.hosts import interface_points, interface_text
from bottleneck.records import schema as report_schema
from bottleneck.report import report as reports
from bottleneck.report.report import Report
from probes.core.records import InterfaceFacts
from tests import stored_reports
from tests.stored_reports import diagnose

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


def links_report(client: InterfaceFacts, server: InterfaceFacts) -> Report:
    report = stored_reports.load(DATA / "report-v1-server-disk.json")
    assert report.client is not None and report.server is not None
    return replace(
        report,
        client=replace(report.client, interface=client),
        server=replace(report.server, interface=server),
    )


def test_every_fact_survives_a_report_and_its_schema() -> None:
    report = links_report(RADIO, EVERYTHING)
    text = reports.dumps(report, diagnose(report))
    Draft202012Validator(report_schema.schema()).validate(json.loads(text))
    again = reports.loads(text.encode())
    assert again.client is not None and again.client.interface == RADIO
    assert again.server is not None and again.server.interface == EVERYTHING


LINKS = (
    link(),
    link(duplex="half", rate_bits_per_second=10**8, autonegotiated=False),
    RADIO,
    link(pcie=SLOT),
    link("enx0", driver="r8152", usb_bits_per_second=480_000_000),
    link(pause={"receives": True, "sends": True}),
    link(pause={"receives": False, "sends": False}),
    link(offloads={"tcp_segmentation": False, "generic_receive": True}),
    link(qdisc="tbf", qdisc_rate_bytes_per_second=12_500_000),
    link(qdisc="fq_codel"),
    link(qdisc="netem"),
    link("wg0", kind="wireguard", virtual=True),
    link("v0", kind="veth", virtual=True, rate_bits_per_second=10**10),
)
PORTS = tuple(link(f"veth{index}", kind="veth", virtual=True) for index in range(40))
BRIDGE = link("br0", kind="bridge", virtual=True, lower=PORTS)


def test_an_interface_is_one_line_and_what_lies_below_is_listed_under_its_host(render, golden):
    """A bridge of many ports does not fill the screen."""
    lines = [f"- {interface_text(each)}" for each in LINKS]
    for server in (EVERYTHING, BRIDGE):
        lines += render(interface_points(links_report(link(), server)), 200).splitlines()
    golden("interfaces", "\n".join(lines) + "\n")


def test_without_facts_there_is_no_section(render):
    report = stored_reports.load(DATA / "report-v1-server-disk.json")
    assert render(interface_points(replace(report, client=None, server=None))) == ""
