"""Each moment of a connection is the turn of whoever had to act in it."""

import struct
from itertools import islice

import pytest

from bottleneck.captures import figures
from bottleneck.captures.connection import Connection
from bottleneck.captures.packets import Packet
from bottleneck.captures.segments import SYN, datagram_of, segment_of
from bottleneck.captures.turns import TURNS, Course, blocks_of_a_file
from tests.captures.packet_files import CLIENT, SERVER, frame

REPLY_BYTES, SEGMENT_BYTES = 60_084, 1448
HEADER = b"\xfeSMB" + struct.pack("<HHIHHI", 64, 0, 0, 8, 1, 0)


class Play:
    """A connection whose packets are given one by one, at this point's time."""

    def __init__(self, to_server=0.0, to_client=0.0, window=500):
        self.connection, self.now, self.window = Connection(blocks_of_a_file()), 1.0, window
        self.to_client = to_client
        self.seq = {True: 1, False: 1}
        self.number = 0
        self.send(True, flags=SYN, options=b"\x03\x03\x07")
        self.wait(to_server)
        self.send(False, flags=SYN | 16, options=b"\x03\x03\x07")
        self.wait(to_client)
        self.send(True)

    def wait(self, seconds):
        self.now += seconds

    def send(self, from_client, data=b"", size=0, flags=16, options=b"", lost_bytes=0):
        """A packet now; size: payload on the wire; lost_bytes: those that the capture cut off."""
        ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
        content = data + bytes(max(0, size - len(data)))
        seq, ack = self.seq[from_client], self.seq[not from_client]
        packet = frame(*ends, content, seq, ack, flags, self.window, options)
        captured = Packet(self.now, 1, len(packet), packet[: len(packet) - lost_bytes])
        segment = segment_of(captured, datagram_of(captured))
        self.connection.add(segment, from_client)
        self.seq[from_client] += len(content) + bool(flags & SYN)

    def ask(self, credits=0):
        """A READ of 60,000 bytes; with credits: the capture kept its header, and not its length."""
        self.number += 1
        header = HEADER[:6] + struct.pack("<H", credits) + HEADER[8:]
        body = struct.pack("<IQ", 0, self.number) + bytes(32)
        body += struct.pack("<HBBI", 49, 0, 0, 60_000) + bytes(41)
        message = struct.pack(">I", len(header + body)) + header + body
        self.send(True, message, lost_bytes=len(message) - 62 if credits else 0)

    def answer(self, pause_at=0, pause_seconds=0.0):
        """Its reply, back to back but for a pause before one of its segments, acknowledged."""
        head = struct.pack(">I", REPLY_BYTES - 4) + HEADER + struct.pack("<IQ", 0, self.number)
        for index in range(REPLY_BYTES // SEGMENT_BYTES + 1):
            if index == pause_at:
                self.wait(pause_seconds)
            rest = REPLY_BYTES - index * SEGMENT_BYTES
            self.send(False, b"" if index else head, size=min(SEGMENT_BYTES, rest))
            self.wait(1e-5)
            if not self.to_client:
                self.send(True)
        self.wait(self.to_client)
        self.send(True)

    def seconds(self):
        """Seconds of each turn since the first data, but for the instants of packets in a row."""
        bins = range(10, 10 + int(self.now * 10))
        seconds = {turn: sum(self.connection.course.values(turn, bins)) for turn in TURNS}
        return {turn: round(each, 2) for turn, each in seconds.items() if each > 0.005}


def test_a_server_that_answers_late_has_that_time():
    play = Play()
    for _ in range(3):
        play.ask()
        play.send(False)
        play.wait(0.1)
        play.answer()
    assert play.seconds() == {"server": 0.2}
    assert play.connection.requests.service["READ"].count == 3


def test_a_client_that_asks_late_has_that_time():
    play = Play()
    for _ in range(3):
        play.ask()
        play.answer()
        play.wait(0.1)
    play.ask()
    assert play.seconds() == {"client": 0.3}


def test_a_pause_within_a_reply_that_was_all_acknowledged_is_the_server_s():
    play = Play()
    play.ask()
    play.answer(pause_at=9, pause_seconds=0.2)
    assert play.seconds() == {"server": 0.2}
    play.wait(50)
    play.send(True)
    copy = figures.copy_of(play.connection)
    assert figures.turn_ratios(copy, figures.bins_of(copy))["server_ratio"] > 0.6, (
        "idle time counts"
    )


@pytest.mark.parametrize(("to_server", "to_client"), [(0.04, 0.0), (0.0, 0.04), (0.02, 0.02)])
def test_the_way_of_a_request_is_no_host_s_wherever_it_is_captured(to_server, to_client):
    play = Play(to_server, to_client)
    for _ in range(5):
        play.ask()
        play.wait(to_server)
        play.answer()
    play.ask()
    times = play.seconds()
    # The first request at the client passes before the first data.
    assert times["trip"] == pytest.approx(5 * 0.04, abs=0.045)
    assert not times.keys() & {"client", "server"}


def test_a_packet_that_was_captured_twice_counts_once():
    packet, connection = Packet(1.0, 1, 63, frame(data=bytes(9), id=7)), Play().connection
    for _ in range(2):
        connection.add(segment_of(packet, datagram_of(packet)), from_client=True)
    assert connection.requests.upward.segments == 1


def test_a_sender_that_fills_the_window_waits_for_the_receiver():
    play = Play(to_client=0.05, window=100)
    play.ask()
    head = struct.pack(">I", REPLY_BYTES - 4) + HEADER + struct.pack("<IQ", 0, play.number)
    for index in range(3):
        for part in range(8):
            play.send(False, head if not index + part else b"", size=1600)
        play.wait(0.05)
        play.send(True)
    assert play.seconds()["window"] == pytest.approx(0.15, abs=0.06)


def test_a_hole_that_is_filled_late_was_lost_before_this_point():
    play = Play(to_client=0.01)
    play.ask()
    play.answer()
    downward = play.connection.requests.downward
    missing = play.seq[False]
    play.seq[False] += 1448
    play.send(False, size=1448)
    play.wait(0.1)
    play.seq[False] = missing
    play.send(False, size=1448)
    assert (downward.late_fills, downward.sent_again) == (1, 0)
    assert sum(play.connection.course.values("down lost", range(10, 20))) == 1


def test_bytes_that_are_acknowledged_and_were_never_seen_are_the_capture_s_loss():
    play = Play()
    play.ask()
    play.answer()
    play.seq[False] += 5000
    play.send(True)
    downward = play.connection.requests.downward
    assert (downward.unseen_bytes, downward.late_fills) == (5000, 0)


@pytest.mark.parametrize(("credits", "size"), [(0, 60_000), (3, 3 << 16)])
def test_what_is_asked_for_at_once_is_the_sum_of_all_requests_and_rests_of_replies(credits, size):
    play = Play()
    play.ask(credits)
    play.ask(credits)
    assert play.connection.requests.asked_bytes.values.tolist() == [size, 2 * size]
    play.answer()
    play.ask(credits)
    assert play.connection.requests.asked_bytes.values[2] == pytest.approx(2 * size, abs=400)


def test_a_read_without_a_reply_is_a_copy_that_hangs_unless_a_pipe_s():
    play = Play()
    play.ask()
    play.send(False)
    play.connection.end(play.now + 2)
    assert figures.copy_of(play.connection) is None
    play.connection.end(play.now + 5)
    assert figures.figures_of(figures.copy_of(play.connection), None)["is_unanswered"]


@pytest.mark.parametrize(("to_server", "turn"), [(0.0, "server"), (0.04, "loss")])
def test_a_reply_that_never_came_was_not_sent_if_the_capture_is_the_server_s(to_server, turn):
    play = Play(to_server)
    play.ask()
    play.wait(to_server)
    play.send(False)
    play.connection.end(play.now + 5)
    assert play.connection.is_unanswered
    play.now += 5
    assert play.seconds() == {turn: pytest.approx(5, abs=0.1)}


def test_a_closed_connection_does_not_hang():
    play = Play()
    play.ask()
    play.send(True, flags=4)
    play.connection.end(play.now + 60)
    assert figures.copy_of(play.connection) is None


def test_edges_are_thinned_evenly_over_a_long_path():
    downward = Play().connection.requests.downward
    for number in range(20_000):
        downward.acknowledge(1 + number * 1e-5, 1 + number, 500)
    acked, _ = downward.known_to_sender(1.1)
    assert downward.acked_offset - acked == pytest.approx(10_000, rel=0.02)


def test_a_course_without_blocks_for_all_of_its_copy_is_a_part_of_it():
    play = Play()
    play.connection.course = Course(islice(blocks_of_a_file(), 1))
    play.ask()
    play.answer()
    play.wait(14)
    play.send(True)
    assert not figures.figures_of(figures.copy_of(play.connection), None)["is_cut"], "it had ended"
    play.ask()
    play.answer()
    assert figures.figures_of(figures.copy_of(play.connection), None)["is_cut"]
