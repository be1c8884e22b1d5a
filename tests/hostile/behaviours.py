"""All that a hostile peer does here."""

from __future__ import annotations

from behaviour import Behaviour
from downgrades import DOWNGRADES
from holding import HOLDING
from lies import LIES
from protected import PROTECTED
from redirects import REDIRECTS
from strangers import STRANGERS
from waiting import HARMLESS, WAITING

BEHAVIOURS: tuple[Behaviour, ...] = (
    *PROTECTED,
    *LIES,
    *HOLDING,
    *DOWNGRADES,
    *REDIRECTS,
    *WAITING,
    *STRANGERS,
    *HARMLESS,
)
