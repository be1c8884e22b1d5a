#!/usr/bin/env python3
"""Put the product before every hostile peer (BEHAVIOURS), and print what came of it.

Usage: python tests/hostile/trial.py [--only TEXT] [--first] [--workers N] [--json F]

Each behaviour gets one copy of stage smb-copy, in a child process of an agent, as in any run. The
time limits of a step are shortened to STEP_SECONDS but for those behaviours that say otherwise, and
with --first, which takes one of each kind and none that waits, so that no clock decides.
Exit code: 0 nobody was fooled, 1 somebody was, and who and how is told.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from behaviour import LATE, THIRD_HOST, Behaviour
from downgrades import DOWNGRADES, REDIRECTS
from lies import FOLDER_LIES, LIES, PROTECTED
from middle import run_middle
from peaks import peak_bytes
from server import play
from strangers import STRANGERS
from waiting import HARMLESS, LATE_AT, WAITING

from bottleneck.agents import hosts
from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import payload
from probes.files.served_file import source_name
from probes.programs.samba import Samba, private_samba
from probes.smb import run_folder
from probes.stages import smb_copy

BEHAVIOURS: tuple[Behaviour, ...] = sum(
    (PROTECTED, LIES, FOLDER_LIES, DOWNGRADES, REDIRECTS, LATE_AT, WAITING, STRANGERS, HARMLESS), ()
)
EACH_ONCE = tuple(
    {
        (each.name.partition(":")[0], each.server, each.outcome): each
        for each in reversed(BEHAVIOURS)
        if not each.with_folder and not each.product_limits and LATE not in each.says
    }.values()
)
"""One of each kind, of those whose end no clock decides."""
SECRET = "Geheim-47-correct-horse"
SEED = "0123456789abcdef"
SIZE_BYTES = 2 * 1024 * 1024
REQUEST_BYTES = 64 * 1024
STEP_SECONDS = 2.0
WINDOW_SECONDS = 3.0
DEADLINE_SECONDS, PRODUCT_DEADLINE_SECONDS, PATIENCE_SECONDS = 8.0, 15.0, 60.0
LATE_SECONDS = 1.0
LATE_FAULT = "it ended late"
WITNESS_COUNTS = ("logins", "weak_logins", "leaks", "misbehaved")
CHILD_BYTES, COORDINATOR_BYTES = 512 << 20, 256 << 20
OPTIONS = {
    "plain": ("server min protocol = NT1",),
    "signing": ("server min protocol = NT1", "server signing = mandatory"),
    "sealing": ("smb encrypt = required", "server min protocol = SMB3_00"),
    "wishing": ("smb encrypt = desired",),
    "old": ("server max protocol = SMB2_10",),
}
"""smb.conf of each real server."""


@dataclass(frozen=True)
class Result:
    name: str
    outcome: str
    """measured, refused, skipped, failed, lost."""
    text: str
    """The product's own line; "" where it measured."""
    hash_ok: bool | None
    modes: str
    """Dialect, signing and encryption that the details tell."""
    elapsed_seconds: float
    allowed_seconds: float
    child_peak_bytes: int
    asked_hosts: tuple[str, ...]
    """Hosts that were asked for anything."""
    logins: int = 0
    weak_logins: int = 0
    leaks: int = 0
    misbehaved: int = 0

    def faults(self, behaviour: Behaviour) -> list[str]:
        """In how far the product was fooled; none: all is well."""
        measured = self.outcome == "measured"
        checks = {
            LATE_FAULT: self.elapsed_seconds > self.allowed_seconds + LATE_SECONDS,
            "it took too much memory": not 0 < self.child_peak_bytes <= CHILD_BYTES,
            "it logged in more than once": self.logins > 1 + behaviour.with_folder,
            "it logged in by something older than NTLMv2": self.weak_logins > 0,
            "it sent its password": self.leaks > 0,
            "it asked another host": any(each != "127.0.0.1" for each in self.asked_hosts),
            "the behaviour never happened": not self.misbehaved,
            "an agent was lost": self.outcome == "lost",
            "its text is no single line": not self.text.isprintable(),
            "its text holds the password": SECRET in self.text,
        }
        if behaviour.outcome == "harmless":
            checks["a harmless copy was not measured"] = not (measured and self.hash_ok)
        elif behaviour.outcome == "told":
            checks["a copy was not measured"] = not (measured and self.hash_ok)
            checks["a lesser protection was not told"] = not re.search(behaviour.says, self.modes)
        elif behaviour.outcome == "mismatch":
            checks["altered content was taken for right"] = not (measured and self.hash_ok is False)
        else:
            checks["it was accepted"] = measured
            checks["it was refused for another reason"] = not re.search(behaviour.says, self.text)
        if behaviour.logins is not None:
            checks["it logged in another number of times"] = self.logins != behaviour.logins
        return [fault for fault, true in checks.items() if true]


class Trial:
    """The servers, the third host, and the folders that copies are made in."""

    def __init__(self, stack: ExitStack, kinds: set[str]) -> None:
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostile-")))
        self._shared = self.folder / "shared"
        self._shared.mkdir()
        (self.folder / "client").mkdir()
        ring = payload.make_ring(bytes.fromhex(SEED))
        (self._shared / "payload").write_bytes(payload.block(ring, 0, SIZE_BYTES))
        self._servers: dict[str, Samba] = {
            name: stack.enter_context(
                private_samba(
                    self._shared, password=SECRET, options=(*options, "max log size = 50")
                )
            )
            for name, options in OPTIONS.items()
            if name in kinds
        }
        self.third_host_calls = 0
        stack.enter_context(self._third_host())

    @contextmanager
    def _third_host(self) -> Iterator[None]:
        """Listens where referrals lead, on SMB's own port if that is allowed."""
        port = 445 if os.geteuid() == 0 else 0
        with socket.create_server((THIRD_HOST, port)) as sock:

            def listen() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        sock.accept()[0].close()
                        self.third_host_calls += 1

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            yield
            sock.shutdown(socket.SHUT_RDWR)
            thread.join(5)

    def try_one(self, number: int, behaviour: Behaviour, agent: Agent) -> Result:
        server = self._servers[behaviour.server]
        folder = self._shared / f"run-{number}"
        folder.mkdir()
        (folder / source_name(folder.name)).hardlink_to(self._shared / "payload")
        secret = SECRET.encode()
        if isinstance(behaviour.does, tuple):
            peer = run_middle((server.host, server.port), behaviour.does, secret)
        else:
            peer = play(behaviour.does, secret)
        access = Access(server.username, server.password)
        with peer as (port, witness):
            place = {"share": server.share, "folder": f"run-{number}", "access": access}
            endpoint = Endpoint("127.0.0.1", port, **place)
            result = agent.copy(behaviour, endpoint, str(self.folder / "client"))
        counts = {name: getattr(witness, name) for name in WITNESS_COUNTS}
        return replace(result, **counts)


class Agent:
    """One watched agent, which copies in turn; step_seconds: 0: the product's own limits."""

    def __init__(self, log: Path, step_seconds: float) -> None:
        self._log = log
        self._allowed = DEADLINE_SECONDS if step_seconds else PRODUCT_DEADLINE_SECONDS
        self._window = max(WINDOW_SECONDS, step_seconds)
        # Waits longer than allowed, so that a slow machine is late rather than cut off.
        self._deadline = PATIENCE_SECONDS if step_seconds else PRODUCT_DEADLINE_SECONDS
        watched = Path(__file__).with_name("watched_agent.py")
        command = [sys.executable, str(watched), str(log), str(step_seconds)]
        self.host = hosts.Host.start("client", command)
        self.host.tell("preload", name=smb_copy.STAGE.name)
        self._read = 0

    def copy(self, behaviour: Behaviour, peer: Endpoint, folder: str) -> Result:
        """Returns the facts of one copy, without what the other end saw."""
        pull = behaviour.copy.startswith("pull")
        setting = smb_copy.Setting(
            copy=behaviour.copy,
            dialect=behaviour.dialect,
            end="folder" if pull else "memory",
            size_bytes=SIZE_BYTES,
            seconds=self._window,
            folder=folder,
            seed=SEED,
            fill_source=behaviour.with_folder,
            request_bytes=REQUEST_BYTES,
            depth=8,
        )
        outcome, text, hash_ok, modes = "measured", "", None, ""
        earlier, began = self.host.number, time.monotonic()
        try:
            with self._with_folder(behaviour, peer) as endpoint:
                ran = self.host.initiate(smb_copy.STAGE.name, setting, endpoint, self._deadline)
            hash_ok = ran.details["hash_ok"]
            modes = " ".join(
                str(ran.details[word]) for word in ("dialect", "signing", "encryption")
            )
        except hosts.StageError as error:
            outcome, text = "failed", str(error)
        except Refused as error:
            outcome, text = "refused", error.text
        except Unavailable as error:
            outcome, text = "skipped", str(error)
        except hosts.PartlyRan as error:
            outcome, text = "lost" if error.lost else "failed", str(error)
        elapsed = time.monotonic() - began
        allowed = self._allowed
        if behaviour.with_folder:
            allowed += self._allowed + hosts.CLOSING_SECONDS
        peak, asked_hosts = self._read_log(set(range(earlier + 1, self.host.number + 1)))
        facts = (behaviour.name, outcome, text, hash_ok, modes, elapsed, allowed)
        return Result(*facts, child_peak_bytes=peak, asked_hosts=asked_hosts)

    @contextmanager
    def _with_folder(self, behaviour: Behaviour, peer: Endpoint) -> Iterator[Endpoint]:
        """The peer, with a folder of a run that is held there if the behaviour is about that."""
        if not behaviour.with_folder:
            yield peer
            return
        setting = run_folder.Setting(run=secrets.token_hex(8), dialect=behaviour.dialect, seed=SEED)
        with self.host.hold(run_folder.NAME, setting, peer, self._deadline) as endpoint:
            yield endpoint

    def _read_log(self, due: set[int]) -> tuple[int, tuple[str, ...]]:
        """Returns the children's highest peak, and the hosts that the agent asked."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            lines = [json.loads(line) for line in self._log.read_text().splitlines()[self._read :]]
            ended = {line["number"]: line["peak_bytes"] for line in lines if "number" in line}
            if due <= set(ended):
                self._read += len(lines)
                addresses = tuple(sorted({line["asked"][0] for line in lines if "asked" in line}))
                return max(ended.values()), addresses
            time.sleep(0.01)
        return 0, ()


def run_all(
    behaviours: list[Behaviour], workers: int, step_seconds: float
) -> tuple[list[Result], dict[str, Any]]:
    """Runs the behaviours in parallel; returns results in their order, and facts of the run."""
    # The longest first, so that their waits overlap.
    order = sorted(enumerate(behaviours), key=lambda pair: not pair[1].product_limits)
    results: dict[int, Result] = {}
    began, local = time.monotonic(), threading.local()
    with ExitStack() as stack:
        trial = Trial(stack, {each.server for each in behaviours})

        def work(number: int, behaviour: Behaviour) -> None:
            kind = f"agent-{behaviour.product_limits}"
            if not hasattr(local, kind):
                log = trial.folder / f"{kind}-{number}"
                log.touch()
                agent = Agent(log, 0 if behaviour.product_limits else step_seconds)
                stack.enter_context(agent.host)
                setattr(local, kind, agent)
            results[number] = trial.try_one(number, behaviour, getattr(local, kind))
            # In one write: workers do not part each other's lines.
            print(line(behaviour, results[number]) + "\n", end="", flush=True)

        with ThreadPoolExecutor(max(1, min(workers, len(behaviours)))) as pool:
            list(pool.map(work, *zip(*order, strict=True)))
    facts = {
        "elapsed_seconds": time.monotonic() - began,
        "coordinator_peak_bytes": peak_bytes("self"),
        "third_host_calls": trial.third_host_calls,
    }
    return [results[number] for number in sorted(results)], facts


def line(behaviour: Behaviour, result: Result) -> str:
    faults = result.faults(behaviour)
    outcome = result.outcome
    if outcome == "measured":
        outcome = "right" if result.hash_ok else "mismatch"
    return (
        f"{'FOOLED ' if faults else 'ok     '}{behaviour.name:<58.58} {outcome:<9}"
        f"{result.elapsed_seconds:6.2f} s {result.child_peak_bytes >> 20:4d} MiB  "
        f"{'; '.join(faults) + ': ' if faults else ''}{result.text}{result.modes}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="behaviours with this in their name")
    parser.add_argument("--first", action="store_true", help="one of each kind, none that waits")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--json", help="write the results there")
    options = parser.parse_args()
    among = EACH_ONCE if options.first else BEHAVIOURS
    behaviours = [each for each in among if options.only in each.name]
    step_seconds = PATIENCE_SECONDS if options.first else STEP_SECONDS
    results, facts = run_all(behaviours, options.workers, step_seconds)
    if options.json:
        document = {"results": [asdict(each) for each in results], **facts}
        Path(options.json).write_text(json.dumps(document, indent=1))
    fooled = sum(bool(r.faults(b)) for b, r in zip(behaviours, results, strict=True))
    print(
        f"{len(results)} behaviours, {fooled} fooled us, {facts['elapsed_seconds']:.0f} s, "
        f"children at most {max(r.child_peak_bytes for r in results) >> 20} MiB, "
        f"coordinator {facts['coordinator_peak_bytes'] >> 20} MiB, "
        f"{facts['third_host_calls']} calls to a third host"
    )
    return int(fooled > 0 or facts["third_host_calls"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
