"""Losses of a translation: what the target cannot express, where it stood, and what was done about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from xenoglot.errors import LossError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSON, JSONObject

PARTIAL: Final = "partial"
"""In the form of an `Extra`: the names of its `fields` that are objects of which a part was read. Losses name the rest
field by field (`generationConfig.speechConfig`)."""

TOLERATED: Final = "tolerated"
"""In the form of a candidate's `Extra`: fields that the server did not write as its dialect defines them and that were
read all the same, with how. Each is a loss."""

How: TypeAlias = Literal["dropped", "approximated", "emulated"]

_PART = re.compile(r"\$\.messages\[\d+\]\.content\[\d+\]")
_TURN = re.compile(r"\$\.messages\[\d+\]")


class Loss(Struct, frozen=True, order=True):
    """`where` is a path in the canonical request or response, `what` names the value, `how` and `why` its outcome.

    A path is `$` with steps to an existing value: `$.messages[3].content[0]`, `$.candidates[0].finish`.
    `what` is a field of that, the kind of thing it was, or a field that only its own dialect knows.
    """

    where: str
    what: str
    how: How
    why: str

    def __str__(self) -> str:
        """Return one line of ASCII for a header or a log: paths and names, never contents.

        Names of unknown fields are the client's: whatever they contain, the line stays one (RFC 9110 section 5.5).
        """
        return ascii(f"{self.where} {self.what} {self.how} ({self.why})")[1:-1]


class Losses:
    """The losses of one translation, in order, without duplicates. If `strict`, `settle` raises for any loss."""

    __slots__ = ("_dropped", "_moved", "_seen", "strict")

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._seen: dict[Loss, bool] = {}
        """Each with whether it is a field that only its own dialect knows."""
        self._dropped: set[tuple[str, str]] = set()
        """Where each dropped thing stood, and what it was: nothing is dropped twice, whatever the reasons."""
        self._moved: tuple[Mapping[str, str | None], ...] = ()
        """The moves of parts and turns, the last first."""

    def __iter__(self) -> Iterator[Loss]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def dropped(self, where: str, what: str, why: str) -> None:
        """Record a value that was not translated at all."""
        self._note(where, what, "dropped", why)

    def approximated(self, where: str, what: str, why: str) -> None:
        """Record a value that was translated to a similar one."""
        self._note(where, what, "approximated", why)

    def emulated(self, where: str, what: str, why: str) -> None:
        """Record a value that was translated by other means, with the same effect."""
        self._note(where, what, "emulated", why)

    def moved(self, places: Mapping[str, str | None]) -> Losses:
        """Return these same losses, for a request whose parts or turns stand elsewhere than they did.

        `places` are paths of parts and turns as they are now, with the paths that they had; `None` is for a part that
        did not exist: its losses are not recorded.
        """
        view = Losses(strict=self.strict)
        view._seen, view._dropped, view._moved = self._seen, self._dropped, (places, *self._moved)
        return view

    def _note(self, where: str, what: str, how: How, why: str, *, unknown: bool = False) -> None:
        for places in self._moved:
            stood = _stood(where, places)
            if stood is None:
                return
            where = stood
        if how == "dropped":
            if (where, what) in self._dropped:
                return
            self._dropped.add((where, what))
        self._seen[Loss(where, what, how, why)] = unknown

    def rewind(self, count: int) -> None:
        """Forget all but the first `count`, after the translation with the others was abandoned."""
        for loss in tuple(self._seen)[count:]:
            del self._seen[loss]
            if loss.how == "dropped":
                self._dropped.discard((loss.where, loss.what))

    def settle(self) -> None:
        """End the encoding of the request; call it before anything is sent.

        Raises:
            LossError: something was lost, and the policy is strict.
        """
        if self.strict and self._seen:
            unknown = tuple(f"{loss.where}.{loss.what}" for loss, unknown in self._seen.items() if unknown)
            raise LossError(tuple(str(loss) for loss in self._seen), unknown)

    def carry(self, extra: Extra | None, where: str, dialect: str) -> JSONObject:
        """Return the fields of `extra` that `dialect` can write: its own. Another dialect's are recorded as dropped."""
        if extra is None:
            return {}
        if extra.dialect == dialect:
            return extra.fields
        for name, value in extra.fields.items():
            if value is not None:
                for what in _names(name, value, extra):
                    self._note(where, what, "dropped", f"only {extra.dialect} has it", unknown=True)
        return {}


def _names(name: str, value: JSON, extra: Extra) -> list[str]:
    """Return the names of what is lost with the field `name` of `extra`."""
    if not isinstance(value, dict) or name not in extra.form.get(PARTIAL, ()):
        return [name]
    return [f"{name}.{key}" for key, inner in value.items() if inner is not None]


def _stood(where: str, places: Mapping[str, str | None]) -> str | None:
    """Return the path that `where` had before a move; `None` if its part did not exist."""
    for pattern in (_PART, _TURN):
        found = pattern.match(where)
        if found is not None and found[0] in places:
            stood = places[found[0]]
            return None if stood is None else stood + where[found.end() :]
    return where


def form_of(extra: Extra | None, dialect: str) -> JSONObject:
    """Return how `dialect` spelled the object that `extra` belongs to; empty if another dialect did."""
    return extra.form if extra is not None and extra.dialect == dialect else {}
