"""A server's own counters, as node_exporter and Samba print them, become its use of resources."""

import http.server
import re
import threading
from contextlib import contextmanager
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


def used(first, last, idle=None):
    endpoint = MetricsEndpoint(URL, note=lambda text: None, idle=idle or {})
    pair = endpoint.ends([parse(text, 10.0 + n) for n, text in enumerate((first, last))])
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
    assert 200 << 20 <= load.device_written_bytes < 202 << 20
    assert load.memory_total_bytes == 25276502016
    assert load.throttled_ratio is None  # a quota does not show
    assert load.copy_cpu_seconds == pytest.approx(0.03) and load.other_cpu_seconds == 0


def test_what_a_core_did_before_is_others_and_the_rest_the_copys():
    full = grown(BEFORE, 'node_cpu_seconds_total{cpu="0",mode="user"}', 10941.03 + 0.95)
    load = used(BEFORE, full)
    assert (load.copy_cpu_seconds, load.other_cpu_seconds) == (pytest.approx(0.95), 0)
    load = used(BEFORE, full, {0: 0.6, 1: 0.1})
    assert load.copy_cpu_seconds == pytest.approx(0.35)
    assert load.other_cpu_seconds == pytest.approx(0.7)


@pytest.mark.parametrize(("mode", "delay"), [("user", 0.5), ("idle", None), ("nice", None)])
def test_others_wait_for_a_core_only_where_all_are_full(mode, delay):
    text = grown(BEFORE, "node_pressure_cpu_waiting_seconds_total", 6700.947352 + 0.5)
    seconds = {"user": 10941.03, "idle": 19674.52, "nice": 295.93}[mode]
    text = grown(text, f'node_cpu_seconds_total{{cpu="0",mode="{mode}"}}', seconds + 1)
    first, last = (re.sub(r'(?m)^.*cpu="1".*$', "", each) for each in (BEFORE, text))
    assert used(first, last).run_delay_seconds == (delay and pytest.approx(delay))


def test_of_samba_alone_the_time_of_its_processes_is_read():
    first, last = (SAMBA.format(user=user, system=2.5) for user in (1.0, 1.75))
    load = used(first, last)
    assert load.core_busy_ratios == (0.75,) and load.copy_cpu_seconds == pytest.approx(0.75)
    assert load.device_busy_ratio is None


@pytest.mark.parametrize(
    "text", ["", "<html>", "node_load1 0.5\n", 'node_cpu_seconds_total{cpu="0",mode="user"} 1e+\n']
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


def test_it_is_read_at_the_start_before_the_first_test_and_at_both_ends(monkeypatch):
    monkeypatch.setattr(metrics, "IDLE_SECONDS", 0.0)
    with served([BEFORE, BEFORE, BEFORE, AFTER, "lost"]) as url:
        notes = []
        endpoint = MetricsEndpoint(url, notes.append).connect()
        assert endpoint.ends([endpoint.tell("counters"), endpoint.tell("counters")])
        assert endpoint.idle == {0: 0.0, 1: 0.0} and not notes
        # A later failure is noted, and that test has no counters.
        lost = endpoint.tell("counters")
        assert lost is None and endpoint.ends([parse(BEFORE, 1.0), lost]) is None
    assert notes == [
        f"{url.name}: the server's metrics: no CPU time in its text; use node_exporter's "
        "/metrics, or Samba's"
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


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(metrics, "READ_SECONDS", 0.05)
    silent = threading.Event()
    monkeypatch.setattr(MetricsEndpoint, "_fetch", lambda self: silent.wait() and "")
    with pytest.raises(Refused, match="no answer within"):
        MetricsEndpoint(URL, note=print).connect()
    silent.set()
