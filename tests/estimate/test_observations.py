"""An observations file: read strictly, one line of complaint, and a report like any other."""

from __future__ import annotations

import json

import jsonschema
import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.cli.loading import load
from bottleneck.estimate import observations, supplied_report
from bottleneck.estimate.observations import SCHEMA
from bottleneck.records import schema as report_schema
from bottleneck.report import report
from bottleneck.report.report import ReportError
from probes.core.records import Measured, Skipped, rates
from probes.core.stage import Refused

HEAD = {"schema": SCHEMA, "title": "A ticket", "date": "2026-11-20"}


def report_with(**tables):
    document = {**HEAD, **tables}
    assert observations.is_observations(document)
    return supplied_report.report_of(observations.loads(json.dumps(document).encode()))


def test_toml_and_json_say_the_same():
    text = f"""# a comment
    schema = '{SCHEMA}'
    title = "A ticket"
    date = "2026-11-20"
    [[copy]]
    copy = "pull.cached"
    rate = "11 MB/s"
    """.encode()
    assert observations.is_toml(text)
    example = supplied_report.report_of(observations.loads(text))
    assert example == report_with(copy=[{"copy": "pull.cached", "rate": "11 MB/s"}])


@pytest.mark.parametrize("name", ["a.toml", "a.json"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path, name):
    copy = {"copy": "pull.cached", "rate": "11 MB/s"}
    text = json.dumps({**HEAD, "copy": [copy]})
    if name == "a.toml":
        lines = [f"{key} = {json.dumps(each)}" for key, each in HEAD.items()]
        text = "\n".join([*lines, "[[copy]]", 'copy = "pull.cached"', 'rate = "11 MB/s"'])
    path = tmp_path / name
    path.write_text(text, encoding="utf-8-sig")
    assert load(path) == report_with(copy=[copy])
    path.write_bytes(text.encode("utf-16"))
    assert load(path) == report_with(copy=[copy])
    path.write_bytes(b"")
    with pytest.raises(Refused, match="empty"):
        load(path)


@pytest.mark.parametrize(
    ("text", "rate"), [("11 MB/s", 11e6), ("11 MiB/s", 11 << 20), ("940 Mbit/s", 117.5e6)]
)
def test_rates_come_in_as_bytes_per_second(text, rate):
    ((_, outcome),) = report_with(copy=[{"copy": "pull.cached", "rate": text}]).entries
    assert isinstance(outcome, Measured)
    assert rates(outcome).median == pytest.approx(rate)
    assert outcome.details["told_by"] == "a person"


def test_nothing_that_was_not_told_is_claimed():
    example = report_with(
        client={"link": "1 Gbit/s"}, copy=[{"copy": "push.cached", "rate": "11 MB/s"}]
    )
    assert example.server is None and example.client is not None
    assert example.client.memory_total_bytes is None and example.client.interface.mtu_bytes is None
    ((_, outcome),) = example.entries
    assert outcome.initiator.core_busy_ratios == () and outcome.responder is None
    assert outcome.initiator.memory_used_bytes is None
    assert "cache" not in outcome.details


def test_a_copy_without_a_rate_is_not_measured():
    ((step, outcome),) = report_with(copy=[{"copy": "server.push.cached", "streams": 4}]).entries
    assert step.initiator == "server" and isinstance(outcome, Skipped)


def test_facts_of_a_host_are_those_of_the_file():
    host = {"name": "nas", "system": "Linux 2.4", "cores": 2, "memory": "4GiB", "duplex": "half"}
    host |= {"mtu": 9000, "tcp_rmem": "1 2 3", "tcp_wmem": "4 5 6", "congestion_control": "reno"}
    facts = report_with(server=host, copy=[{"copy": "pull.cached"}]).server
    assert facts.name == "nas" and facts.memory_total_bytes == 4 << 30 and facts.cores == 2
    assert facts.interface.duplex == "half" and facts.interface.rate_bits_per_second is None
    assert facts.socket_buffers["net.ipv4.tcp_rmem"] == "1 2 3"
    assert report_with(server={}, copy=[{"copy": "pull.cached"}]).server.interface is None


def test_its_report_fits_the_schema_and_means_the_same_when_it_is_loaded_again():
    example = report_with(
        client={"link": "1 Gbit/s", "mtu": 1500},
        path={"rtt": "2 ms", "loss": 0.001},
        tcp=[{"sender": "client", "rate": "250 Mbit/s", "window": "64KiB", "client": "desk"}],
        disk=[{"side": "server", "verb": "write", "rate": "20 MB/s"}],
        latency=[
            {
                "connection": "warm",
                "table": [{"message": "1kB", "round_trips": 1, "time": "2.1 ms"}],
            }
        ],
        copy=[{"copy": "push.cached", "rate": "19 MB/s", "dialect": "3.1.1", "tool": "robocopy"}],
        start=[{"sender": "client", "better": "sender", "words": "twice as fast"}],
        notes=["as the user says"],
        source="a ticket",
    )
    diagnosis = diagnose(example)
    document = report.to_json(example, diagnosis)
    jsonschema.validate(document, report_schema.schema())
    again = report.loads(json.dumps(document).encode())
    assert diagnose(again) == diagnosis
    assert not observations.is_observations(document)


def test_the_extremes_that_are_read_make_a_report_that_loads_again():
    rates = ["0.001 B/s", "1000 TB/s"]
    example = report_with(
        path={"rtt": "0.001us", "loss": 1e-12},
        client={"link": rates[0], "memory": "1000000TB"},
        tcp=[{"sender": "client", "rate": rate, "window": "1B"} for rate in rates],
        disk=[{"side": "server", "verb": "read", "rate": rate} for rate in rates],
        copy=[{"copy": "pull.cached", "rate": rate, "size": "1000000TB"} for rate in rates],
        latency=[{"connection": "warm", "table": [{**TRIP, "round_trips": 1}]}],
    )
    diagnosis = diagnose(example)
    assert diagnose(report.loads(report.dumps(example, diagnosis).encode())) == diagnosis


@pytest.mark.parametrize(("rate", "by"), [("250 Mbit/s", "receive-window"), ("90 Mbit/s", None)])
def test_a_transfer_near_what_its_window_carries_was_held_by_it(rate, by):
    example = report_with(
        path={"rtt": "2 ms"}, tcp=[{"sender": "client", "rate": rate, "window": "64KiB"}]
    )
    ((_, outcome),) = example.entries
    assert outcome.details.get("limits", {}).get("by") == by


def test_a_disk_of_zones_moves_what_its_best_zone_does():
    zones = [{"at": 0, "rate": "200 MB/s"}, {"at": 1, "rate": "80 MB/s"}]
    ((_, outcome),) = report_with(disk=[{"side": "client", "verb": "read", "zones": zones}]).entries
    assert rates(outcome).median == pytest.approx(200e6)


def test_times_that_do_not_grow_have_no_fit():
    row = {"round_trips": 1, "time": "1 ms"}
    table = [{"message": "1kB", **row}, {"message": "2kB", **row}]
    ((_, outcome),) = report_with(latency=[{"connection": "cold", "table": table}]).entries
    assert "refused" in outcome.details["fit"]


COPY = {"copy": [{"copy": "pull.cached", "rate": "11 MB/s"}]}
TRIP = {"message": "1kB", "round_trips": 2, "time": "1 ms"}
AT_ONCE = {"message": "1000TB", "round_trips": 1, "time": "0.1 ms"}


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({}, "have no tcp, latency, disk or copy"),
        ({"copies": []}, "unknown key 'copies'"),
        ({"date": "yesterday", **COPY}, "date 'yesterday' is not YYYY-MM-DD"),
        ({"date": 20261120, **COPY}, "observations.date must be text"),
        ({"copy": [{"copy": "download"}]}, "copy[0].copy: 'download' must be one of pull.cached"),
        ({"copy": [{"copy": "pull.cached", "rate": "11M"}]}, "copy[0].rate: '11M' can be read"),
        ({"copy": [{"copy": "pull.cached", "speed": "1 MB/s"}]}, "unknown key 'speed'"),
        ({"copy": [{"copy": "pull.cached", "dialect": "smb2"}]}, "copy[0].dialect: 'smb2'"),
        ({"copy": [{"copy": "pull.cached", "from_place": 2}]}, "from_place: 2 is not between"),
        ({"tcp": [{"sender": "moon", "rate": "1 MB/s"}]}, "tcp[0].sender: 'moon'"),
        ({"tcp": [{"sender": "client"}]}, "tcp[0].rate is missing"),
        ({"disk": [{"side": "client", "verb": "read"}]}, "neither a rate nor zones"),
        ({"disk": [{"side": "client", "verb": "seek", "rate": "1 MB/s"}]}, "disk[0].verb: 'seek'"),
        ({"path": {"rtt": "149"}, **COPY}, "path.rtt: '149' is not a time"),
        ({"path": {"rtt": "0 ms"}, **COPY}, "path.rtt: '0 ms' is out of range"),
        ({"path": {"rtt": f"0.{305 * '0'}1us"}, **COPY}, "00000' is out of range"),
        ({"tcp": [{"sender": "client", "rate": f"0.{310 * '0'}1B/s"}]}, "00' is out of range"),
        ({"copy": [{"copy": "pull.cached", "rate": "1000000000GB/s"}]}, "is out of range"),
        ({"latency": [{"connection": "warm", "table": [AT_ONCE]}]}, "too short a time"),
        ({"path": {"loss": 3}, **COPY}, "path.loss: 3 is not between"),
        ({"latency": [{"connection": "hot", "table": [TRIP]}]}, "latency[0].connection: 'hot'"),
        ({"latency": [{"connection": "cold", "table": [TRIP]}]}, "no message with one round trip"),
        ({"start": [{"sender": "client", "better": "me"}], **COPY}, "start[0].better: 'me'"),
        ({"client": {"link": "fast"}, **COPY}, "client.link: 'fast' is not a rate"),
        ({"client": {"mtu": -1}, **COPY}, "client.mtu is out of range"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tables, complaint):
    with pytest.raises(ReportError) as refused:
        report_with(**tables)
    assert complaint in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"schema = 'copy-bottleneck/observations/2'", "this program reads"),
        (b"schema = 'copy-bottleneck/observations/1'\nrate = ", "not TOML"),
        (b"a = " + b"[" * 5000, "not TOML: nested too deep"),
        (b"a." * 60_000 + b"a = 1", "not TOML: a line has more than 200 dots"),
        (b"a." * 200 + b"a = 1", "unknown key 'a'"),
        (b"schema = 0x" + b"f" * 6000, "schema is int, this program reads"),
        (b'{"schema": ', "not JSON"),
        (b'{"schema": 1' + b"0" * 6000 + b"}", "a number of 6001 characters"),
        (b'{"a": ' + b"[" * 5000, "nested more than 64 levels deep"),
        (b"#" * (256 << 10) + b"#", "larger than 262144 bytes"),
    ],
)
def test_content_that_is_no_observations_file_is_refused_in_one_line(content, complaint):
    with pytest.raises(ReportError) as refused:
        observations.loads(content)
    assert complaint in str(refused.value) and "\n" not in str(refused.value)


def test_a_report_is_no_observations_file():
    assert not observations.is_observations({"schema": "copy-bottleneck/report/1"})
    assert not observations.is_observations({"tool": {"schema": SCHEMA}})
    assert not observations.is_observations({"schema": 10**6000})
    assert not observations.is_toml(b'{\n"schema" = "copy-bottleneck/observations/1"}')


@pytest.mark.parametrize("indent", [None, 1])
def test_json_is_chosen_by_its_own_schema_wherever_that_key_stands(tmp_path, indent):
    """Also minified, and where a key of that name inside says something else."""
    document = {**COPY, "title": "A ticket", "date": "2026-11-20", "schema": SCHEMA}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(document, indent=indent))
    assert load(file).tool["observations"] == SCHEMA
    content = report.to_json(report_with(**COPY), diagnose(report_with(**COPY)))
    content["target"]["schema"] = SCHEMA
    file.write_text(json.dumps(content, indent=indent))
    assert load(file).target["schema"] == SCHEMA
