"""One target under atheris (libFuzzer), in a process of its own: `loop.py TARGET ARGUMENT...`.

What a target lets out is written down once a place and does not end the loop; a hang or a lack of
memory ends it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import random
import shlex
import sys
import time
import traceback
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
PRODUCT = ["bottleneck", "probes"]
BUSY_SECONDS = 5.0
"""Time of the processor, and not of the clock: a full machine is no finding."""


def place(error: BaseException) -> str:
    """Returns the error's type and line, which inputs that find one fault share."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {last.filename}:{last.lineno}"


def main() -> None:
    name = sys.argv.pop(1)
    # libFuzzer starts itself anew to merge, by a line for the shell that begins with this
    sys.argv[0] = shlex.join([sys.executable, __file__, name])
    places: set[str] = set()
    with atheris.instrument_imports(include=PRODUCT):
        target = importlib.import_module(name)

        def save(kind: str, where: str, data: bytes) -> None:
            if where not in places:
                places.add(where)
                digest = hashlib.sha1(where.encode()).hexdigest()[:8]
                (HERE / "crashes" / f"{name}-{kind}-{digest}").write_bytes(data)
                print(f"FOUND {where}\n{traceback.format_exc()}", file=sys.stderr)

        def one(data: bytes) -> None:
            started_seconds = time.process_time()
            try:
                target.one_input(data)
            except Exception as error:
                save("crash", place(error), data)
            if time.process_time() - started_seconds > BUSY_SECONDS:
                save("slow", "slow", data)

        mutated = getattr(target, "mutated", None)

        def mutate(data: bytes, longest: int, seed: int) -> bytes:
            chance = random.Random(seed)
            # what is no document of its kind, or became one that cannot be written
            with contextlib.suppress(ValueError, OverflowError, RecursionError):
                if chance.random() < 0.5 and len(changed := mutated(data, chance)) <= longest:
                    return changed
            return atheris.Mutate(data, longest)

        for each in sorted((HERE / "corpus" / name).iterdir()):
            # imports what is imported late: to instrument that takes seconds
            with contextlib.suppress(Exception):
                target.one_input(each.read_bytes())
        atheris.Setup(sys.argv, one, custom_mutator=mutate if mutated else None)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
