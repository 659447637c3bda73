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

    def takes(self, known: bool | None) -> bool:  # noqa: FBT001  what is known of the server, if anything
        """Return whether something can be sent: what is not known to be refused goes home as it came."""
        return self.home if known is None else known
