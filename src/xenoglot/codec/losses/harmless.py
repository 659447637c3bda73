"""Losses that change nothing in what the model reads or answers: a table, and their summary.

Some of them occur in every request of a client (a coding agent marks its cache in each). Reports for people and headers
name them in a summary after the losses that matter, so that those are seen. `on_loss` does not distinguish the two.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.loss import How, Loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class HarmlessLoss(Struct, frozen=True):
    """A kind of harmless loss, with its `reason`. `why` restricts it to losses with that reason."""

    what: str
    how: How
    reason: str
    why: str | None = None


HARMLESS = (
    HarmlessLoss("cache", "dropped", "cache marks change the price and the time of an answer, not its words"),
    HarmlessLoss("header anthropic-beta", "dropped", "the fields that a beta allows have losses of their own"),
    HarmlessLoss("defer_loading", "dropped", "the tool is described at once instead of after a search"),
    HarmlessLoss("namespace.description", "dropped", "each tool of a namespace has a description of its own"),
    HarmlessLoss("name", "emulated", "the model reads a fitted name; the client gets its own name back"),
    HarmlessLoss("id", "emulated", "ids connect a call with its result; both are fitted alike"),
    HarmlessLoss("id", "dropped", "the model never reads the id of a turn or a thought"),
    HarmlessLoss("system_fingerprint", "dropped", "it names the server's build, of which the model knows nothing"),
    HarmlessLoss("signature", "emulated", "the signature is wrapped, and unwrapped when the client sends it back"),
    HarmlessLoss("turn", "approximated", "neighbouring turns of one role read as one turn"),
    HarmlessLoss("content", "approximated", "the model reads the same words as one text", "its texts are joined"),
)
"""Every kind of harmless loss."""

_KINDS: Mapping[tuple[str, str], HarmlessLoss] = {(kind.what, kind.how): kind for kind in HARMLESS}


def is_harmless(loss: Loss) -> bool:
    """Whether `loss` changes nothing in what the model reads or answers."""
    kind = _KINDS.get((loss.what, loss.how))
    return kind is not None and (kind.why is None or kind.why == loss.why)


def divide(losses: Iterable[Loss]) -> tuple[list[Loss], list[Loss]]:
    """Return the losses that matter and the harmless ones, each in their order."""
    matter: list[Loss] = []
    harmless: list[Loss] = []
    for loss in losses:
        (harmless if is_harmless(loss) else matter).append(loss)
    return matter, harmless


def summary(harmless: Iterable[Loss]) -> str:
    """Return one short phrase for harmless losses, `3 harmless: cache (2), header anthropic-beta`; `""` for none.

    It names kinds alone, so its length is bounded by that of the table.
    """
    counts = Counter(loss.what for loss in harmless)
    if not counts:
        return ""
    named = (what if count == 1 else f"{what} ({count})" for what, count in counts.items())
    return f"{counts.total()} harmless: {', '.join(named)}"
