"""One request on its way out, as the functions that write its parts see it."""

from __future__ import annotations

from msgspec import Struct

from xenoglot.codec.dialect import Target
from xenoglot.codec.loss import Losses


class Crossing(Struct, frozen=True):
    """One request on its way out: what it loses, whom it is for, and whether it came in this dialect (`home`)."""

    losses: Losses
    target: Target
    home: bool
