"""selectors, for descriptors of pipes."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import time
from selectors import *  # noqa: F403
from selectors import SelectSelector as _SelectSelector
from typing import Any, Optional

from probes.system.windows import select


class DefaultSelector(_SelectSelector):
    """Selector of sockets or of pipes; _select() gets only numbers and looks up their files."""

    def _select(self, readers: Any, writers: Any, _: Any, timeout: Optional[float] = None) -> Any:
        if not readers and not writers:  # Windows' select refuses empty lists
            time.sleep(timeout or 0)
            return [], [], []
        files = {key.fd: key.fileobj for key in self.get_map().values()}
        objects = [[files[fd] for fd in each] for each in (readers, writers)]
        # A connection that failed is among the third.
        readable, writable, failed = select.select(*objects, objects[1], timeout)
        numbers = {id(files[fd]): fd for fd in files}
        return [[numbers[id(each)] for each in part] for part in (readable, writable + failed, [])]
