"""A server's own counters, as node_exporter and Samba print them, become its use of resources."""

import http.server
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bottleneck.agents import metrics, protocol
from bottleneck.agents.metrics import MetricsEndpoint, NoMetrics, parse
from bottleneck.login.target import MetricsUrl
from probes.core.stage import Refused
from probes.host.counters import Counters, usage

DATA = Path(__file__).parent.parent / "data"
BEFORE, AFTER = (DATA.joinpath(f"node-exporter-1.5-{n}.txt").read_text() for n in (1, 2))
SAMBA = """# TYPE smb_cpu_seconds_total counter
smb_cpu_seconds_total {{ share="",mode="user" }} {user}
smb_cpu_seconds_total {{ share="",mode="system" }} {system}
smb_cpu_seconds_total {{ share="media",mode="user" }} 9999.0
smb_smb2_request_inbytes {{ share="",operation="write" }} 12
"""
"""Text of source3/utils/smb_prometheus_endpoint.c."""
URL = MetricsUrl("127.0.0.1", 9100, "/metrics", is_secure=False)


MOVED = 200 << 20


def used(first, last, idle_cores=0.0, pushes=True, moved_bytes=MOVED):
    endpoint = MetricsEndpoint(URL, note=lambda text: None, idle_cores=idle_cores)
    readings = [parse(text, 10.0 + n) for n, text in enumerate((first, last))]
    pair = endpoint.counters(readings, moved_bytes, pushes)
    return usage(*(protocol.from_plain(Counters, each) for each in pair))


def grown(text, name, value):
    """The text with a sample's value changed."""
    lines = [line for line in text.splitlines() if not line.startswith(f"{name} ")]
    return "\n".join([*lines, f"{name} {value}", ""])


def test_of_a_real_node_exporter_cores_disk_and_memory_are_read():
    """In the second between, 200 MiB were written to vda; nothing else was at work."""
    load = used(BEFORE, AFTER)
    assert len(load.core_busy_ratios) == 2 and load.busiest_core_ratio < 0.05
    assert load.device_busy_ratio == pytest.approx(0.216)
    assert MOVED <= load.device_written_bytes < MOVED + (2 << 20)
    assert load.memory_total_bytes == 25276502016
    # Neither a quota nor a wait for a core shows.
    assert load.throttled_ratio is None and load.run_delay_seconds is None
    assert load.copy_cpu_seconds == pytest.approx(0.03) and load.other_cpu_seconds == 0


USER, IDLE = {"0": 10941.03, "1": 18606.85}, {"0": 19674.52, "1": 11353.57}


def busy(**seconds_by_core):
    """Both texts, the second with so many more seconds of cores' user time, of one second each."""
    last = BEFORE
    for core, user in USER.items():
        seconds = seconds_by_core.get(f"core{core}", 0.0)
        for mode, value in (("user", user + seconds), ("idle", IDLE[core] + 1 - seconds)):
            last = grown(last, f'node_cpu_seconds_total{{cpu="{core}",mode="{mode}"}}', value)
    return BEFORE, last


@pytest.mark.parametrize(
    ("seconds", "idle_cores", "copy", "others"),
    [
        ({"core0": 0.95}, 0.0, 0.95, 0.0),
        ({"core0": 0.95}, 0.1, 0.85, 0.1),
        ({"core0": 0.1, "core1": 0.05}, 0.0, 0.15, 0.0),
        ({"core0": 0.95, "core1": 0.95}, 0.0, 1.9, 0.0),
        ({"core0": 1.0, "core1": 0.0}, 1.0, 0.0, 1.0),
        # One thread that moved, or others' work that did: not known.
        ({"core0": 0.5, "core1": 0.5}, 0.0, None, None),
        ({"core0": 0.9, "core1": 0.6}, 0.6, None, None),
    ],
)
def test_what_others_used_before_is_theirs_and_the_rest_the_copys_if_it_is_of_one_core(
    seconds, idle_cores, copy, others
):
    load = used(*busy(**seconds), idle_cores)
    if copy is None:
        assert load.core_busy_ratios == ()
    else:
        assert load.core_busy_ratios
        assert load.copy_cpu_seconds == pytest.approx(copy)
        assert load.other_cpu_seconds == pytest.approx(others)


_, LATER = busy()


@pytest.mark.parametrize("seconds", [0.0, 1.5, 4.0])
def test_counters_of_another_moment_as_a_proxy_keeps_them_are_none(seconds):
    """The text is the same, or of a time that this host's clock does not show."""
    last = LATER.replace(f"{IDLE['0'] + 1}", f"{IDLE['0'] + seconds}")
    endpoint = MetricsEndpoint(URL, note=print)
    readings = [parse(text, 10.0 + n) for n, text in enumerate((BEFORE, last))]
    assert endpoint.counters(readings, MOVED, pushes=True) is None


def test_a_core_that_appears_between_has_no_time_since_its_start():
    added = AFTER + 'node_cpu_seconds_total{cpu="7",mode="user"} 900\n'
    load = used(BEFORE, added)
    assert len(load.core_busy_ratios) == 2 and load.copy_cpu_seconds < 0.1


def disks(**written):
    return "".join(
        f'node_disk_written_bytes_total{{device="{name}"}} {size << 20}\n'
        f'node_disk_io_time_seconds_total{{device="{name}"}} 3\n'
        for name, size in written.items()
    )


@pytest.mark.parametrize(
    ("first", "last", "written"),
    [
        # What a copy of 200 MiB cannot have written is another disk's, however busy that was.
        (disks(sda=0, sdb=0), disks(sda=210, sdb=20), 210),
        (disks(sda=0), disks(sda=100), None),
        (disks(sda=0), disks(sda=900), None),
        (disks(sda=0, sdb=0), disks(sda=210, sdb=900), 210),
        (disks(sda=0, sdb=0), disks(sda=210, sdb=300), None),
        (disks(sda=0, md0=0), disks(sda=215, md0=205), 215),
    ],
)
def test_the_disk_is_the_one_that_took_the_copys_bytes(first, last, written):
    load = used(BEFORE + first, LATER + last)
    assert load.device_written_bytes == (written and written << 20)
    assert used(BEFORE + first, LATER + last, pushes=False).device_written_bytes is None


@pytest.mark.parametrize(
    ("name", "received"), [("eth1", 205), ("lo", None), ("docker0", None), ("veth3", None)]
)
def test_the_network_card_is_the_one_that_carried_the_copys_bytes(name, received):
    sample = 'node_network_receive_bytes_total{{device="{}"}} {}\n'
    texts = [BEFORE + sample.format(name, 0), LATER + sample.format(name, 205 << 20)]
    assert used(*texts).interface_received_bytes == (received and received << 20)


@pytest.mark.parametrize(("idle_cores", "is_known"), [(0.0, True), (0.3, False)])
def test_of_samba_alone_the_time_of_its_processes_counts_if_nobody_else_uses_it(
    idle_cores, is_known
):
    first, last = (SAMBA.format(user=user, system=2.5) for user in (1.0, 1.75))
    load = used(first, last, idle_cores)
    assert load.core_busy_ratios == ((0.75,) if is_known else ())
    assert load.copy_cpu_seconds == pytest.approx(0.75 if is_known else 0)
    assert load.device_busy_ratio is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        'node_cpu_seconds_total{cpu="0",mode="user"} NaN\n',
        'node_cpu_seconds_total{cpu="0",mode="user"} 1e400\n',
        'node_cpu_seconds_total{cpu="0",mode="user"} -1e300\n',
        "\n".join(f'node_cpu_seconds_total{{cpu="{n}",mode="user"}} 1' for n in range(5000)),
        # Two hosts in one text; a number, and labels, that take long to be searched.
        BEFORE.replace("{cpu", '{instance="a",cpu') + BEFORE,
        "node_cpu_seconds_total " + "1" * 1_000_000 + "x",
        "node_cpu_seconds_total{" + "a" * 1_000_000 + "} 1",
    ],
)
def test_a_text_without_cpu_time_is_refused(text):
    with pytest.raises(NoMetrics):
        parse(text, 1.0)


@contextmanager
def served(texts, status=200):
    """An HTTP server that gives one text after the other; the URL of it."""
    waiting = list(texts)

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = waiting.pop(0).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield MetricsUrl("127.0.0.1", server.server_port, "/metrics", is_secure=False)
        server.shutdown()


def test_it_is_read_twice_before_the_run_and_at_both_ends_of_a_test(monkeypatch):
    monkeypatch.setattr(metrics, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(metrics, "CLOCK_SECONDS", 2.0)
    with served([BEFORE, BEFORE, BEFORE, AFTER, "lost"]) as url:
        notes = []
        endpoint = MetricsEndpoint(url, notes.append).connect()
        readings = [endpoint.tell("counters"), endpoint.tell("counters")]
        assert endpoint.counters(readings, MOVED, pushes=True) and not notes
        # A later failure is noted once, and no test has counters from then on.
        lost = endpoint.tell("counters") or endpoint.tell("counters")
        assert lost is None and endpoint.counters([readings[0], lost], MOVED, pushes=True) is None
    assert notes == [
        f"{url.name}: the server's metrics: no CPU time in its text; use node_exporter's "
        "/metrics, or Samba's; not read any more"
    ]


@pytest.mark.parametrize(
    ("texts", "status", "most_bytes", "reason"),
    [
        (["not found"], 404, 1 << 20, "HTTP 404"),
        ([BEFORE], 200, 1000, "more than 0 MiB"),
        (["<html>"], 200, 1 << 20, "no CPU time in its text"),
    ],
)
def test_an_address_without_counters_ends_the_run_with_a_remedy(
    monkeypatch, texts, status, most_bytes, reason
):
    monkeypatch.setattr(metrics, "MOST_BYTES", most_bytes)
    with served(texts, status) as url, pytest.raises(Refused) as refused:
        MetricsEndpoint(url, note=print).connect()
    assert refused.value.kind == "unreachable"
    assert reason in refused.value.text and refused.value.text.endswith("check --metrics")


def test_a_text_of_an_earlier_moment_is_refused_at_the_start(monkeypatch):
    monkeypatch.setattr(metrics, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(metrics, "CLOCK_SECONDS", -1.0)
    with served([BEFORE, BEFORE]) as url, pytest.raises(Refused, match="not those of that moment"):
        MetricsEndpoint(url, note=print).connect()


def test_an_answer_that_never_ends_is_given_up_and_not_received_any_more(monkeypatch):
    """A server that sends one interim reply after the other."""
    monkeypatch.setattr(metrics, "READ_SECONDS", 0.3)
    ended, fetch = threading.Event(), MetricsEndpoint._fetch

    def watched(*words):
        try:
            return fetch(*words)
        finally:
            ended.set()

    monkeypatch.setattr(MetricsEndpoint, "_fetch", watched)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def send():
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                while True:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

        threading.Thread(target=send, daemon=True).start()
        url = MetricsUrl("127.0.0.1", listener.getsockname()[1], "/", is_secure=False)
        with pytest.raises(Refused, match="no answer within"):
            MetricsEndpoint(url, note=print).connect()
        assert ended.wait(30)


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(metrics, "READ_SECONDS", 0.05)
    silent = threading.Event()
    monkeypatch.setattr(MetricsEndpoint, "_fetch", lambda *_: silent.wait() and "")
    with pytest.raises(Refused, match="no answer within"):
        MetricsEndpoint(URL, note=print).connect()
    silent.set()
