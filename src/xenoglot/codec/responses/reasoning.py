"""Reasoning in answers: removed if the client did not request it, and encrypted reasoning of other dialects.

In some dialects reasoning is returned on request only, and clients that did not request it read the first block as the
answer (`message.content[0].text`). Its tokens stay counted, and whatever stores answers for later turns sees them
before this filter.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import REPORTED
from xenoglot.errors import WireError
from xenoglot.model.content import Origin, Reasoning
from xenoglot.model.events import BlockEnded, BlockStarted, ReasoningDelta, SignatureDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response


def reported_changes(removed: Sequence[JSON], kept: Sequence[JSON] = ()) -> JSONObject:
    """Return the form of an answer whose server reports what became of reasoning in the request.

    `removed` are the reasons why reasoning was removed, `kept` those why it should have been; a reason is the
    provider's word.
    """
    losses = [
        ["reasoning of the request", how, f"{told} {len(reasons)}: {', '.join(dict.fromkeys(map(_reason, reasons)))}"]
        for reasons, how, told in (
            (removed, "dropped", "parts that the server removed:"),
            (kept, "approximated", "parts that do not belong to the conversation, and that the server kept:"),
        )
        if reasons
    ]
    return {REPORTED: losses} if losses else {}


def _reason(word: JSON) -> str:
    return word[:_LONGEST_REASON] if isinstance(word, str) else "no reason"


_LONGEST_REASON = 64

_NOT_REQUESTED = "the client did not ask for it"


class ReasoningFilter:
    """A stage that drops reasoning events. `active` is called at each block of reasoning.

    A delta of a removed block finds no open block in the encoder, so the encoder has no frame ready for it
    (`codec.framing.stream_writer`) and it arrives here.
    """

    __slots__ = ("_active", "_losses", "_removed")

    def __init__(self, losses: Losses, active: Callable[[], bool] | None = None) -> None:
        self._losses = losses
        self._active = active
        self._removed: set[int] = set()
        """Candidates inside a block of reasoning."""

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event, or nothing where it belongs to reasoning."""
        if isinstance(event, BlockStarted):
            if not isinstance(event.part, Reasoning) or not self._applies():
                return (event,)
            self._removed.add(event.candidate)
            self._report(event.candidate)
            return ()
        if self._removed and isinstance(event, ReasoningDelta | SignatureDelta | BlockEnded):
            if event.candidate not in self._removed:
                return (event,)
            if isinstance(event, BlockEnded):
                self._removed.discard(event.candidate)
            return ()
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return nothing: nothing is buffered."""
        return ()

    def response(self, response: Response) -> Response:
        """Return a whole answer without its reasoning."""
        thoughtful = [
            index
            for index, candidate in enumerate(response.candidates)
            if any(isinstance(part, Reasoning) for part in candidate.content)
        ]
        if not thoughtful or not self._applies():
            return response
        candidates = list(response.candidates)
        for index in thoughtful:
            self._report(index)
            content = tuple(part for part in candidates[index].content if not isinstance(part, Reasoning))
            candidates[index] = replace(candidates[index], content=content)
        return replace(response, candidates=tuple(candidates))

    def _applies(self) -> bool:
        return self._active is None or self._active()

    def _report(self, candidate: int) -> None:
        self._losses.dropped(f"$.candidates[{candidate}]", "reasoning", _NOT_REQUESTED)


def reasoning_filter(dialect: Dialect, request: Request, losses: Losses) -> ReasoningFilter | None:
    """Return what removes the reasoning from the answer to `request` of a client of `dialect`.

    `None` if the client requested reasoning, or where its dialect always returns it.
    """
    requested = dialect.reasoning_requested
    return None if requested is None or requested(request) else ReasoningFilter(losses)


SEALED = "xenoglot:sealed:"
"""Prefix of a signature that wraps another's (base64 of a JSON list), for dialects with one field for them."""


class Seal(Struct, frozen=True, kw_only=True):
    """Wrapped reasoning: the dialect that signed it, and the two forms of a signature."""

    origin: Origin
    signature: str | None = None
    encrypted: str | None = None


def pack(part: Reasoning) -> str:
    """Return the signature of `part` as text that clients send back."""
    origin = part.origin or Origin(dialect="")
    packed = encode_json([origin.dialect, origin.provider, part.signature, part.encrypted])
    return SEALED + b64encode(packed).decode()


def unpack(text: str) -> Seal | None:
    """Return what `pack` wrapped; `None` if `text` is anything else."""
    if not text.startswith(SEALED):
        return None
    try:
        value = decode_json(b64decode(text.removeprefix(SEALED), validate=True))
    except (WireError, binascii.Error, ValueError):
        return None
    match value:
        case [str() as dialect, str() | None as provider, str() | None as signature, str() | None as encrypted]:
            return Seal(origin=Origin(dialect=dialect, provider=provider), signature=signature, encrypted=encrypted)
        case _:
            return None
