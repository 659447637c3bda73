"""Losses: what a translation could not carry, which losses are harmless, and their report.

Some of them occur in every request of a client (a coding agent marks its cache in each). Reports for people and headers
name them in a summary after the losses that matter, so that those are seen. `on_loss` does not distinguish the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, astuple

from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import LossError
from xenoglot.model.short_repr import described, short_repr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSON, JSONObject


PARTIAL: Final = "partial"
"""In the form of an `Extra`: the names of its `fields` that are objects of which a part was read. Losses name the rest
field by field (`generationConfig.speechConfig`)."""

INLINED: Final = "inlined"
"""In the form of a part's `Extra`: the part named a stored file, whose content replaces the name."""

TOLERATED: Final = "tolerated"
"""In the form of a candidate's `Extra`: fields that the server did not write as its dialect defines them and that were
read all the same, with how. Each is a loss."""

REPORTED: Final = "reported"
"""In the form of a candidate's `Extra`: losses that the server itself reports of the request, as triples of what, how
and why."""

SHARED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "container": "a container means something to its own provider only",
        "diagnostics": "why a cache was not read is not translated",
        "input_transformations": "each entry is a loss of the answer",
        "moderation": "results of moderation have another form in each dialect",
        "prompt_cache_diagnostics": "why a cache was not read is not translated",
        "safetyRatings": "results of moderation have another form in each dialect",
    }
)
"""Fields that several dialects have and that are not translated: the reason of their losses."""

How: TypeAlias = Literal["dropped", "approximated", "emulated"]

_PART = re.compile(r"\$\.messages\[\d+\]\.content\[\d+\]")
_TURN = re.compile(r"\$\.messages\[\d+\]")


class Loss(Struct, frozen=True, order=True):
    """A feature that a translation could not carry over.

    Args:
        where: The path of an existing value in the canonical request or response: `$.messages[3].content[0]`.
        what: A field of that value, its kind, or a field that only its own dialect has.
        how: `"dropped"`, `"approximated"` (translated to a similar value) or `"emulated"` (same effect by other means).
        why: The reason.

    Example:
        >>> import xenoglot
        >>> losses = xenoglot.Losses()
        >>> body = {"messages": [{"role": "user", "content": "Hi"}], "model": "m", "seed": 3}
        >>> _ = xenoglot.translate_request(body, "chat", "messages", losses)
        >>> [(loss.where, loss.what, loss.how) for loss in losses]
        [('$.sampling', 'max_tokens', 'approximated'), ('$.sampling', 'seed', 'dropped')]
    """

    where: str
    what: str
    how: How
    why: str

    __repr__ = short_repr

    def __str__(self) -> str:
        """Return one line of ASCII for a header or a log: paths and names, never contents.

        Names of unknown fields are the client's: whatever they contain, the line stays one (RFC 9110 section 5.5).
        """
        return ascii(f"{self.where} {self.what} {self.how} ({self.why})")[1:-1]


class Losses:
    """The losses of one translation, in order, without duplicates. It is iterable and has a length.

    Args:
        strict: Whether `settle` raises `LossError` for any loss. Default: `False`.

    Raises:
        LossError: In `settle`: something was lost, and `strict` is set.

    Example:
        >>> import xenoglot
        >>> losses = xenoglot.Losses(strict=True)
        >>> body = {"messages": [{"role": "user", "content": "Hi"}], "model": "m", "seed": 3, "max_tokens": 9}
        >>> try:
        ...     xenoglot.translate_request(body, "chat", "messages", losses)
        ... except xenoglot.LossError as error:
        ...     print(error.losses)
        ('$.sampling seed dropped (the dialect has no such field)',)
    """

    __slots__ = ("_dropped", "_moved", "_seen", "strict")

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._seen: dict[Loss, bool] = {}
        """Each with whether it is a field that only its own dialect knows."""
        self._dropped: set[tuple[str, str]] = set()
        """Where each dropped thing stood, and what it was: nothing is dropped twice, whatever the reasons."""
        self._moved: tuple[Mapping[str, str | None], ...] = ()
        """The moves of parts and turns, the last first."""

    def __repr__(self) -> str:
        return described(self, losses=tuple(self._seen), strict=self.strict or None)

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

    def extend(self, losses: Iterable[Loss]) -> None:
        """Record the losses of a translation that was made before."""
        for loss in losses:
            self._note(loss.where, loss.what, loss.how, loss.why)

    def moved(self, places: Mapping[str, str | None]) -> Losses:
        """Return these same losses, for a request whose parts or turns stand elsewhere than they did.

        `places` are paths of parts and turns as they are now, with the paths that they had; `None` is for a part that
        did not exist: its losses are not recorded.
        """
        view = Losses(strict=self.strict)
        view._seen, view._dropped, view._moved = self._seen, self._dropped, (places, *self._moved)
        return view

    def _note(self, where: str, what: str, how: How, why: str, *, unknown: bool = False) -> None:
        stood = self.origin(where)
        if stood is None:
            return
        where = stood
        if how == "dropped":
            if (where, what) in self._dropped:
                return
            self._dropped.add((where, what))
        self._seen[Loss(where, what, how, why)] = unknown

    def origin(self, where: str) -> str | None:
        """Return the path that `where` had before all moves; `None` if its part or turn did not exist."""
        path: str | None = where
        for places in self._moved:
            if path is None:
                return None
            path = _stood(path, places)
        return path

    def has_dropped(self, where: str, what: str) -> bool:
        """Return whether `what`, at this path of the request as it is now, was not translated at all."""
        return (self.origin(where), what) in self._dropped

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
                    why = SHARED.get(name) or f"only {extra.dialect} has it"
                    self._note(where, what, "dropped", why, unknown=True)
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


class HarmlessLoss(Struct, frozen=True):
    """A kind of harmless loss, with its `reason`. `why` restricts it to losses with that reason."""

    what: str
    how: How
    reason: str
    why: str | None = None


HARMLESS = (
    HarmlessLoss("cache", "dropped", "cache marks change the price and the time of an answer, not its words"),
    HarmlessLoss("header anthropic-beta", "dropped", "the fields that a beta allows have losses of their own"),
    HarmlessLoss("defer_loading", "emulated", "the tool is described at once instead of after a search"),
    HarmlessLoss("tool_search", "emulated", "all tools are described at once instead of after a search"),
    HarmlessLoss("namespace.description", "dropped", "each tool of a namespace has a description of its own"),
    HarmlessLoss("name", "emulated", "the model reads a fitted name; the client gets its own name back"),
    HarmlessLoss("id", "emulated", "ids connect a call with its result; both are fitted alike"),
    HarmlessLoss("id", "dropped", "the model never reads the id of a turn or of reasoning"),
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


HEADINGS = ("where", "what", "how", "why")


def lines(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield one line for each loss."""
    for loss in losses:
        yield f"loss: {loss}"


def table(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield a table of the losses, and how many there are of each kind. It is ASCII, as `str(loss)` is."""
    told = list(losses)
    if not told:
        yield "no losses"
        return
    rows = [HEADINGS, *(tuple(ascii(said)[1:-1] for said in astuple(loss)) for loss in told)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    counts = ", ".join(f"{count} {how}" for how, count in sorted(Counter(loss.how for loss in told).items()))
    yield f"{len(told)} {'loss' if len(told) == 1 else 'losses'}: {counts}"


def json_lines(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield one JSON object for each loss: its four fields."""
    for loss in losses:
        yield encode_json(asdict(loss)).decode()
