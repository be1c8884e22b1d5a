"""Examines the path between two hosts: round trip, routers, packet sizes, queues under load.

It needs the file server's port only; measurements from the server's end need an agent there. It
sends no payload: this stage has no rate.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Callable, Dict, Iterator, Optional, TypeVar

from probes.core.field_types import Port, Seconds, Text
from probes.core.records import DROPS, Details, Endpoint, Sample
from probes.core.stage import Last, RunFacts, Running, Stage, Turn, Unavailable
from probes.net import black_hole, icmp, peers, port, rtt, transfer
from probes.net.black_hole import Trial
from probes.net.port import Meeting
from probes.system.child import NoAnswer, call_until

T = TypeVar("T")

STAGE = Stage(
    "path",
    measures="packet loss and MTU of the path",
    usual_seconds=3.2,
    needs=("server",),
    by_agent=True,
    speaks_of=("network/mtu", "network/loss", "network/delay"),
)
GRACE_SECONDS = 40.0
"""Additional time for a path on which packets vanish: their size is searched, losses awaited."""
VERBS = ("push", "pull")

HANDSHAKES = 20
PACE_SECONDS = 0.015
FIRST_TRIES, FIRST_SECONDS = 3, 1.5
HANDSHAKES_RATIO = 0.3
"""Longest share of the stage's time; handshakes take a tenth where the round trip is short."""
HOPS_RATIO = 0.3
MTU_RATIO = 0.2
LEAST_RTT_SECONDS, LEAST_HOPS_SECONDS = 1.0, 0.5
PATIENCE_SECONDS = 0.3
"""Wait for full segments, plus PATIENCE_ROUND_TRIPS: the first retransmission is after 0.2 s."""
PATIENCE_ROUND_TRIPS = 4.0
LATE_SECONDS, LATEST_SECONDS = 20.0, 35.0
"""Times after the stage's end when no further attempt begins, and when those under way are
abandoned: where round trips take seconds, or packets vanish, each attempt does."""
LEAST_LOAD_SECONDS, MOST_LOAD_SECONDS = 0.5, 1.5
NOT_ASKED_FOR = "out of time (use a larger --budget)"
NEEDS_AGENT = "needs an agent on the server"
PATH_MTU, LOAD = "path-mtu", "load"
"""Requests to the far end, beside taking and giving segments."""


@dataclass(frozen=True)
class Setting:
    """The path, and the time to examine it."""

    host: Text
    """The share's host as the client reaches it, an IP address."""
    port: Port
    seconds: Seconds = 3.0
    """Whole time where no packets vanish; else it takes longer."""
    load: bool = True
    """Whether to fill the path as well, which takes most of the time."""


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a turn from the client to the share's port, and back where an agent is there.

    A short run leaves out the load: the copies need its time.
    """
    load = facts.is_only or facts.budget_seconds >= STAGE.least_budget_seconds
    yield Turn(
        STAGE.name,
        Setting(facts.address, facts.port, load=load),
        Setting.seconds,
        least_seconds=1.0,
        most_seconds=5.0,
        peer="agent" if facts.agent else "",
        grace_seconds=GRACE_SECONDS,
    )


def fit_setting(setting: Setting, facts: RunFacts) -> Setting:
    """Returns the setting unchanged. Raises Unavailable where the server's address is unknown."""
    if not facts.address:
        raise Unavailable("the server's address is unknown (use //host/share as TARGET)")
    return setting


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Serves at the server's end: takes and gives segments and load, measures the path back."""
    with ExitStack() as stack:
        yield stack.enter_context(port.listen(setting.host, _Serving(setting, stack).serve))


@dataclass
class _Serving:
    """The responder of one session."""

    setting: Setting
    stack: ExitStack
    load: Optional[Endpoint] = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, meeting: Meeting) -> None:
        """Answers one request of the initiator."""
        do = meeting.request["do"]
        if do == LOAD:
            with self.lock:
                if self.load is None:
                    opened = transfer.respond(self.setting.host, MOST_LOAD_SECONDS)
                    self.load = self.stack.enter_context(opened)
            meeting.tell({"port": self.load.port, "nonce": self.load.nonce})
        elif do == PATH_MTU:
            client = peers.peer_address(meeting.control)
            seconds = min(float(meeting.request["seconds"]), self.setting.seconds)
            meeting.tell(icmp.path_mtu(client, float(meeting.request["rtt_seconds"]), seconds))
        elif do in (black_hole.TAKE, black_hole.GIVE):
            black_hole.serve(meeting)
        else:
            raise ValueError("the path test does not know this")


def _describe_silence(where: Setting, late: int) -> str:
    """Returns why no round trip is known."""
    what = f"{where.host} port {where.port}"
    if late:
        return (
            f"{what} answers only retransmitted packets: the RTT is a second or more, or "
            "packets are lost"
        )
    return f"{what} does not answer within {FIRST_SECONDS:.1f} s"


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Examines the path to the share's port, and from the agent's end back to here.

    peer: the responder's port and nonce; without a port there is no agent on the server.

    Returns:
        rtt: {handshake: {low_seconds, median_seconds, high_seconds, count, lost}} of TCP
        handshakes with the share's port.
        hops: [{ttl, address, rtt_seconds}], None for both where a router did not answer;
        hops_complete: whether the last one is the server.
        push, pull: the path to the server and the one back, each with those that are known of
            path_mtu_bytes: the sending kernel's path MTU, size of an IP packet;
            path_mtu_confirmed: whether the other host answered one of that size;
            full_packet_bytes: IP packet with a full segment, as TCP cuts them there;
            black_hole: None where those pass, or {passes_bytes, stalls_bytes}: sizes of IP
            packets of which the first came through and the second vanished repeatedly;
            loaded: round trips while one stream filled the path that way; see rtt.measure_loaded.
        not_measured: by name ("hops", "push.loaded" ...), the reason.

    Raises Unavailable where the share's port does not answer.
    """
    began = time.monotonic()
    yield Sample(0.0, 0)
    look = _Look(setting, replace(peer, host=setting.host), began + setting.seconds)
    look.measure_rtt()
    look.measure_mtu()
    look.trace_hops()
    look.find_black_holes()
    look.load()
    yield Last(time.monotonic() - began, 0)
    return look.details()


@dataclass
class _Look:
    """The examination of a path, and its figures so far."""

    setting: Setting
    peer: Endpoint
    until: float
    """End of its time, by the monotonic clock."""
    figures: Details = field(default_factory=dict)
    ways: Dict[str, Details] = field(default_factory=lambda: {verb: {} for verb in VERBS})
    missing: Dict[str, str] = field(default_factory=dict)

    @property
    def rtt_seconds(self) -> float:
        """Median of the unloaded handshakes."""
        return float(self.figures["rtt"]["handshake"]["median_seconds"])

    @property
    def patience_seconds(self) -> float:
        """Wait for full segments to come through."""
        high = float(self.figures["rtt"]["handshake"]["high_seconds"])
        return PATIENCE_SECONDS + PATIENCE_ROUND_TRIPS * high

    def details(self) -> Details:
        """Returns all figures, in plain values."""
        values = {**self.figures, **{verb: way for verb, way in self.ways.items() if way}}
        return {**values, "not_measured": self.missing} if self.missing else values

    def measure_rtt(self) -> None:
        """Measures round trips by handshakes with the share's port."""
        setting = self.setting
        # The first packet to a neighbour waits for its hardware address, and would seem slow.
        late = 0
        for _ in range(FIRST_TRIES):
            first = rtt.measure_handshakes(setting.host, setting.port, 1, 0.0, FIRST_SECONDS)
            late += first.late
            if first.seconds:
                break
        series = rtt.measure_handshakes(
            setting.host,
            setting.port,
            HANDSHAKES,
            PACE_SECONDS,
            max(LEAST_RTT_SECONDS, HANDSHAKES_RATIO * setting.seconds),
        )
        if not series.seconds:
            raise Unavailable(_describe_silence(setting, late + series.late))
        self.figures["rtt"] = {"handshake": series.spread()}

    def trace_hops(self) -> None:
        """Traces the routers on the way to the server."""
        setting = self.setting
        seconds = max(LEAST_HOPS_SECONDS, HOPS_RATIO * setting.seconds)
        try:
            route = icmp.trace(setting.host, setting.port, self.rtt_seconds, seconds)
        except Unavailable as error:
            self.missing["hops"] = str(error)
            return
        self.figures["hops"] = route.hops()
        self.figures["hops_complete"] = route.end is not None

    def measure_mtu(self) -> None:
        """Measures the path MTU of each kernel."""
        seconds = MTU_RATIO * self.setting.seconds
        try:
            self.ways["push"].update(icmp.path_mtu(self.setting.host, self.rtt_seconds, seconds))
        except Unavailable as error:
            self.missing["push.path_mtu_bytes"] = str(error)
        try:
            reply = self._ask({"do": PATH_MTU, "rtt_seconds": self.rtt_seconds}, seconds)
            self.ways["pull"].update(reply)
        except Unavailable as error:
            # The far end does not help: this leaves out all that needs it.
            self.missing["pull"] = str(error)
            self.missing["push.loaded"] = str(error)
        except RuntimeError as error:
            self.missing["pull.path_mtu_bytes"] = str(error)

    def find_black_holes(self) -> None:
        """Finds out whether full segments pass, to the server and back."""
        ways = {"push": self._push, "pull": self._pull}
        verbs = [verb for verb in VERBS if verb not in self.missing]
        with ThreadPoolExecutor(len(verbs)) as pool:
            list(pool.map(lambda verb: self._find(verb, ways[verb]), verbs))

    def load(self) -> None:
        """Measures round trips while a stream fills the path, to the server and then back."""
        verbs = [verb for verb in VERBS if self._can_load(verb)]
        for remaining, verb in zip(range(len(verbs), 0, -1), verbs):
            share = (self.until - time.monotonic()) / remaining
            seconds = min(MOST_LOAD_SECONDS, max(LEAST_LOAD_SECONDS, share))
            try:
                self.ways[verb]["loaded"] = self._in_time(
                    "a stream that fills the path", partial(self._measure_loaded, verb, seconds)
                )
            except (Unavailable, RuntimeError, NoAnswer) as error:
                self.missing[f"{verb}.loaded"] = str(error)

    def _measure_loaded(self, verb: str, seconds: float) -> Details:
        reply = self._ask({"do": LOAD}, port.CONNECT_SECONDS)
        stream = Endpoint(self.setting.host, int(reply["port"]), str(reply["nonce"]))
        return rtt.measure_loaded(verb, stream, seconds, self.rtt_seconds)

    def _in_time(self, what: str, work: Callable[[], T]) -> T:
        """Returns work()'s result. Raises NoAnswer when it is abandoned, Unavailable if late."""
        if time.monotonic() >= self.until + LATE_SECONDS:
            raise Unavailable("out of time, because earlier checks waited for packets")
        return call_until(what, self.until + LATEST_SECONDS, work)

    def _can_load(self, verb: str) -> bool:
        if verb in self.missing or f"{verb}.loaded" in self.missing:
            return False
        if not self.setting.load:
            self.missing[f"{verb}.loaded"] = NOT_ASKED_FOR
            return False
        if self.ways[verb].get("black_hole"):
            self.missing[f"{verb}.loaded"] = f"{DROPS} in that direction"
            return False
        return True

    def _find(self, verb: str, attempt: black_hole.Attempt) -> None:
        search = partial(black_hole.find, attempt, self.until + LATE_SECONDS)
        try:
            full, hole = self._in_time("full-size packets", search)
            self.ways[verb].update({"full_packet_bytes": full, "black_hole": hole})
        except (Unavailable, NoAnswer) as error:
            self.missing[f"{verb}.black_hole"] = str(error)

    def _push(self, size: Optional[int]) -> Trial:
        if "pull" in self.missing:
            setting = self.setting
            return black_hole.push_unasked(setting.host, setting.port, size, self.patience_seconds)
        return black_hole.push(self.peer, size, self.patience_seconds)

    def _pull(self, size: Optional[int]) -> Trial:
        return black_hole.pull(self.peer, size, self.patience_seconds)

    def _ask(self, request: Details, seconds: float) -> Details:
        if not self.peer.port:
            raise Unavailable(NEEDS_AGENT)
        meeting = port.meet(self.peer, {**request, "seconds": seconds}, 0)
        try:
            return meeting.hear(seconds + port.CONNECT_SECONDS)
        except (EOFError, OSError):
            raise RuntimeError("the server's end did not answer in time") from None
        finally:
            meeting.close()
