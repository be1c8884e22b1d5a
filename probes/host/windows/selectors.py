"""selectors, for descriptors of pipes."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

from selectors import *  # noqa: F403
from selectors import SelectSelector as _SelectSelector
from typing import Any, Optional

from probes.host.windows import select


class DefaultSelector(_SelectSelector):
    """Of sockets or of pipes; it is told their numbers alone, so it is asked what they are."""

    def _select(self, readers: Any, writers: Any, _: Any, timeout: Optional[float] = None) -> Any:
        known = {key.fd: key.fileobj for key in self.get_map().values()}
        objects = [[known[fd] for fd in each] for each in (readers, writers)]
        found = select.select(objects[0], objects[1], [], timeout)
        numbers = {id(known[fd]): fd for fd in known}
        return [[numbers[id(each)] for each in part] for part in found[:2]] + [[]]
