"""The udp stage: paced by the caller, counted by the receiver, deaf and dumb to strangers."""

import math
import socket
import subprocess
import threading
from dataclasses import asdict, replace
from functools import partial

import pytest

from probes.core.stage import Unavailable
from probes.net import datagrams, paced, port
from probes.stages import udp
from tests import living

LOCAL = udp.Setting("push", 2e6, seconds=0.4, address="127.0.0.1")


@pytest.fixture
def run(run_stage, monkeypatch):
    """One run of the stage: a sender's time passes as it waits, and a receiver waits for all."""
    monkeypatch.setattr(paced, "CLOCK", living.FakeClock())
    monkeypatch.setattr(paced, "SILENCE_SECONDS", living.GENEROUS_SECONDS)
    return partial(run_stage, udp)


@pytest.fixture
def run_over(run, respond_at):
    """The stage over a path, its responder at the far end."""

    def measured(path, setting, prepare=lambda up: None):
        setting = replace(setting, address=path.server.address)
        prepare(path)
        with respond_at(udp, path.server, setting) as peer, path.client.entered():
            return run(setting, peer)

    return measured


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("verb", udp.VERBS)
def test_each_direction_is_counted_by_the_receiver_and_all_datagrams_are_accounted_for(
    run, verb, address
):
    setting = replace(LOCAL, verb=verb, address=address)
    with udp.respond(setting) as peer:
        samples, details = run(setting, peer)
    assert details["payload_bytes"] == 1448
    received = details["received_datagrams"]
    assert samples[-1].moved_bytes == 1448 * (received - 1)
    assert details["sent_datagrams"] == setting.pace.planned_datagrams(1448)
    assert details["pace_ratio"] <= 1.001
    outcome = received + details["lost_datagrams"] + details["receiver_dropped_datagrams"]
    assert details["sent_datagrams"] == outcome
    assert details["loss_ratio"] == 0
    assert details["longest_gap_datagrams"] == 0
    assert details["receive_buffer_bytes"] > 0


class LateClock(living.FakeClock):
    """The clock of a host that wakes whoever waits too late."""

    def sleep(self, seconds):
        self.time += max(seconds, 0.005)


@pytest.mark.parametrize("verb", udp.VERBS)
def test_the_callers_pace_is_never_exceeded_and_falling_behind_it_is_told(run, verb, monkeypatch):
    monkeypatch.setattr(paced, "MOST_BURST_SECONDS", 1e-6)
    monkeypatch.setattr(paced, "CLOCK", LateClock())
    setting = replace(LOCAL, verb=verb)
    with udp.respond(setting) as peer:
        samples, details = run(setting, peer)
    assert details["pace_ratio"] < 0.6
    assert details["sent_datagrams"] < setting.pace.planned_datagrams(1448)
    assert details["loss_ratio"] == 0
    assert details["received_datagrams"] == details["sent_datagrams"]


def test_what_the_receiver_was_too_slow_for_is_its_own_drop_and_not_loss(run, monkeypatch):
    prompt, send, sent = datagrams.receive, paced.Sender.run, threading.Event()

    def late(sock, buffer):
        assert sent.wait(living.GENEROUS_SECONDS)
        return prompt(sock, buffer)

    def told_when_all_are_sent(sender):
        outcome = send(sender)
        sent.set()
        return outcome

    monkeypatch.setattr(datagrams, "RECEIVE_BUFFER_BYTES", 20_000)
    monkeypatch.setattr(datagrams, "receive", late)
    monkeypatch.setattr(paced.Sender, "run", told_when_all_are_sent)
    monkeypatch.setattr(paced, "SILENCE_SECONDS", 0.05)
    with udp.respond(LOCAL) as peer:
        _, details = run(LOCAL, peer)
    assert details["receiver_dropped_datagrams"] > 0
    assert details["lost_datagrams"] == 0
    assert details["loss_ratio"] == 0
    assert "longest_gap_datagrams" not in details


@pytest.mark.parametrize(
    "other",
    [{"bytes_per_second": 4e6}, {"seconds": 9.0}, {"verb": "pull"}, {"payload_bytes": 1000}],
    ids=lambda each: next(iter(each)),
)
def test_a_session_serves_the_run_that_it_was_opened_for_and_no_other(run, other):
    with udp.respond(LOCAL) as peer, pytest.raises(RuntimeError, match="another run"):
        run(replace(LOCAL, **other), peer)


def ask_port(peer, setting, token):
    """Asks the session for its port, with its nonce; returns the meeting and the UDP port."""
    meeting = port.meet(peer, {**asdict(setting), "token": token.hex()}, 0)
    return meeting, meeting.hear(living.GENEROUS_SECONDS)["port"]


def test_nothing_is_sent_to_a_guess_nor_to_another_address_than_the_sessions(monkeypatch):
    monkeypatch.setattr(udp, "HELLO_SECONDS", 0.1)
    setting, token = replace(LOCAL, verb="pull"), b"t" * 16
    with udp.respond(setting) as peer:
        meeting, where = ask_port(peer, setting, token)
        with (
            socket.socket(type=socket.SOCK_DGRAM) as guess,
            socket.socket(type=socket.SOCK_DGRAM) as elsewhere,
        ):
            elsewhere.bind(("127.0.0.2", 0))
            for _ in range(3):
                guess.sendto(datagrams.hello(b"x" * 16), ("127.0.0.1", where))
                elsewhere.sendto(datagrams.hello(token), ("127.0.0.1", where))
            assert meeting.hear(living.GENEROUS_SECONDS) == {"heard": False}
            for each in (guess, elsewhere):
                with pytest.raises(BlockingIOError):
                    each.recv(1, socket.MSG_DONTWAIT)
        meeting.close()


def test_the_sender_stops_when_the_control_connection_closes(monkeypatch):
    send, why = paced.Sender.run, []

    def noted(sender):
        try:
            return send(sender)
        except EOFError as error:
            why.append(str(error))
            raise

    monkeypatch.setattr(paced.Sender, "run", noted)
    setting, token = replace(LOCAL, verb="pull", seconds=60.0), b"t" * 16
    with udp.respond(setting) as peer:
        meeting, where = ask_port(peer, setting, token)
        with socket.socket(type=socket.SOCK_DGRAM) as receiving:
            receiving.connect(("127.0.0.1", where))
            receiving.send(datagrams.hello(token))
            assert meeting.hear(living.GENEROUS_SECONDS)["heard"]
            meeting.tell({"ready": True})
            receiving.settimeout(living.GENEROUS_SECONDS)
            receiving.recv(2048)
            meeting.close()
            assert living.until(lambda: why == ["closed"])


def test_a_receiver_whose_sender_is_gone_fails_and_tells_no_figure(run):
    def serve(meeting):
        with datagrams.open_beside(meeting.control) as sock:
            meeting.tell({"port": sock.getsockname()[1]})
            token = bytes.fromhex(meeting.request["token"])
            assert datagrams.hear_hello(sock, meeting.control, token, living.GENEROUS_SECONDS)
            meeting.tell({"heard": True, "planned": 100, "payload_bytes": 1448})
            meeting.hear(living.GENEROUS_SECONDS)

    setting = replace(LOCAL, verb="pull")
    with port.listen("127.0.0.1", serve) as peer, pytest.raises(RuntimeError, match="too early"):
        run(setting, peer)


@pytest.mark.long
@pytest.mark.parametrize("verb", udp.VERBS)
def test_a_planted_loss_is_found_within_the_bounds_of_chance(run_over, lab_path, verb, monkeypatch):
    monkeypatch.undo()  # by the real clock: at its pace no queue on the path is ever full
    chance = 0.02
    setting = udp.Setting(verb, 4e6, seconds=1.5)
    with lab_path(0.002, loss_ratio=chance, mtu_bytes=1500) as up:
        samples, details = run_over(up, setting)
    sent = details["sent_datagrams"]
    assert sent > 1000
    assert details["receiver_dropped_datagrams"] == 0
    doubt = 5 * math.sqrt(sent * chance * (1 - chance))
    assert abs(details["lost_datagrams"] - sent * chance) <= doubt
    assert 0 < details["longest_gap_datagrams"] < 20
    assert samples[-1].moved_bytes == 1448 * (details["received_datagrams"] - 1)


def test_what_the_senders_own_queue_refuses_is_not_sent_and_not_lost(run_over, lab_path):
    shaper = "tc qdisc add dev delay0 root tbf rate 2mbit burst 16384 limit 20000"

    def shape(up):
        subprocess.run([*up.client.prefix, *shaper.split()], check=True)

    with lab_path(0.001, mtu_bytes=1500) as up:
        _, details = run_over(up, LOCAL, shape)
    assert details["sent_datagrams"] < LOCAL.pace.planned_datagrams(details["payload_bytes"])
    assert details["lost_datagrams"] == 0


def test_datagrams_fit_the_senders_mtu(run_over, lab_path):
    with lab_path(0.001, mtu_bytes=1200) as up:
        _, details = run_over(up, replace(LOCAL, address=""))
    assert details["payload_bytes"] == 1200 - 28
    assert details["loss_ratio"] == 0


@pytest.mark.parametrize("verb", udp.VERBS)
def test_a_path_that_drops_long_packets_is_told_as_such(run_over, lab_path, verb, monkeypatch):
    monkeypatch.setattr(paced, "SILENCE_SECONDS", 0.1)
    with (
        lab_path(0.001, mtu_bytes=1500, largest_bytes=1000) as up,
        pytest.raises(RuntimeError, match="the path drops larger ones"),
    ):
        run_over(up, replace(LOCAL, verb=verb))


@pytest.mark.parametrize(
    ("verb", "side"), [("push", "server"), ("pull", "client")], ids=["its", "ours"]
)
def test_a_firewall_that_blocks_udp_is_the_reason(run_over, lab_path, verb, side, monkeypatch):
    monkeypatch.setattr(udp, "HELLO_SECONDS", 0.1)
    monkeypatch.setattr(paced, "SILENCE_SECONDS", 0.1)

    def block(up):
        for rule in (
            "add table inet wall",
            "add chain inet wall in { type filter hook input priority 0; }",
            "add rule inet wall in meta l4proto udp drop",
        ):
            subprocess.run([*getattr(up, side).prefix, "nft", rule], check=True)

    with lab_path(0.001) as up, pytest.raises(Unavailable, match="a firewall blocks UDP"):
        run_over(up, replace(LOCAL, verb=verb), block)
