"""Summaries that stand for old turns: packed for clients that send them back, and opened for the model.

A server's own compaction goes back to servers of its dialect as it is. For any other it is opened: the turns that it
stands for are left out, and the summary is written as a turn of the user. A form that only another server can read
cannot be opened, and the request is refused.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, Origin, Text
from xenoglot.model.request import Message, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.context import ContextManagement

SEALED: Final = "xenoglot:summary:"
"""Prefix of a packed summary (base64 of a JSON list), for dialects with a field for encrypted content alone."""

HEADING: Final = "The conversation before this point was left out. This is a summary of it:\n\n"
"""What the model reads in front of a summary."""

_SYSTEM: Final = ("system", "developer")


class _Place(NamedTuple):
    message: int
    part: int


def seal(part: CompactedHistory) -> str:
    """Return the summary as one text that clients send back; it is packed, not encrypted."""
    origin = part.origin or Origin(dialect="")
    packed = [origin.dialect, origin.provider, part.text, part.signature, part.encrypted]
    return SEALED + b64encode(encode_json(packed)).decode()


def unseal(text: str, path: str) -> CompactedHistory | None:
    """Return what `seal` packed; `None` if `text` is anything else.

    Raises:
        WireError: it begins like a packed summary, and cannot be read.
    """
    if not text.startswith(SEALED):
        return None
    try:
        value = decode_json(b64decode(text.removeprefix(SEALED), validate=True))
    except (WireError, binascii.Error, ValueError):
        value = None
    match value:
        case [
            str() as dialect,
            str() | None as provider,
            str() | None as said,
            str() | None as signature,
            str() | None as encrypted,
        ]:
            origin = Origin(dialect=dialect, provider=provider) if dialect else None
            return CompactedHistory(text=said, signature=signature, encrypted=encrypted, origin=origin)
        case _:
            raise WireError(path, "the packed summary is damaged; send it back as it was received, or leave it out")


def is_of(part: CompactedHistory, dialect: str) -> bool:
    """Whether a server of `dialect` made the summary, so that one can read it."""
    return part.origin is not None and part.origin.dialect == dialect


def summary_of(messages: Sequence[Message]) -> CompactedHistory | None:
    """Return the summary that counts: the last one that is not a failed compaction."""
    place = _last(messages)
    if place is None:
        return None
    part = messages[place.message].content[place.part]
    return part if isinstance(part, CompactedHistory) else None


def open_history(request: Request, losses: Losses, dialect: str = "") -> tuple[Request, Losses]:
    """Return `request` for a server of `dialect`, its summary opened unless one made it, and the losses for it.

    Turns that the summary stands for are left out. Without a dialect every summary is opened.

    Raises:
        WireError: only another server can read the summary.
    """
    managed = request.context_management
    if managed is None or not managed.resumes:
        return request, losses
    messages, moved = open_turns(request.messages, losses, dialect)
    native = any(isinstance(part, CompactedHistory) for message in messages for part in message.content)
    opened = replace(request, messages=messages, context_management=_with_resumes(managed, resumes=native))
    return opened, moved


def open_turns(messages: Sequence[Message], losses: Losses, dialect: str = "") -> tuple[tuple[Message, ...], Losses]:
    """Return `messages` as `open_history` returns those of a request.

    Raises:
        WireError: only another server can read the summary.
    """
    place = _last(messages)
    turns = _Turns(losses, dialect)
    for index, message in enumerate(messages):
        if place is None or index > place.message:
            turns.keep(index, message)
        elif index == place.message:
            turns.open(place, message)
        elif message.role in _SYSTEM or (message.role == "user" and _keeps(messages, place)):
            turns.keep(index, message)
    return tuple(turns.messages), losses.moved(turns.moved)


def _last(messages: Sequence[Message]) -> _Place | None:
    for index in reversed(range(len(messages))):
        for at in reversed(range(len(messages[index].content))):
            part = messages[index].content[at]
            if isinstance(part, CompactedHistory) and (part.text or part.encrypted):
                return _Place(index, at)
    return None


def _keeps(messages: Sequence[Message], place: _Place) -> bool:
    part = messages[place.message].content[place.part]
    return isinstance(part, CompactedHistory) and part.replaces == "answers"


def _with_resumes(managed: ContextManagement, *, resumes: bool) -> ContextManagement | None:
    context = replace(managed, resumes=resumes)
    return context if context.edits or context.resumes or context.extra is not None else None


class _Turns:
    """Turns of a request as they are put together, with the paths that they and their parts had."""

    def __init__(self, losses: Losses, dialect: str) -> None:
        self._losses = losses
        self._dialect = dialect
        self.messages: list[Message] = []
        self.moved: dict[str, str | None] = {}

    def open(self, place: _Place, message: Message) -> None:
        """Add the turn with the summary at `place`: as it is for the server that made it, else opened.

        Raises:
            WireError: only another server can read it.
        """
        part, where = message.content[place.part], f"$.messages[{place.message}].content[{place.part}]"
        if not isinstance(part, CompactedHistory) or is_of(part, self._dialect):
            self.keep(place.message, message, range(place.part, len(message.content)))
            return
        if not part.text:
            raise WireError(
                where,
                "only the server that compacted the conversation can read this `compaction`; send the request there, "
                "or the conversation without it",
            )
        why = "its summary is written as a turn of the user, without the turns before it"
        self._losses.emulated(where, "compaction", why)
        self._note_fields(part, where)
        self._summary(where, Text(text=HEADING + part.text, cache=part.cache))
        self.keep(place.message, message, range(place.part + 1, len(message.content)))

    def keep(self, index: int, message: Message, places: Sequence[int] | None = None) -> None:
        """Add a turn: those of its parts that stand at `places`, or all; failed compactions are left out."""
        places = range(len(message.content)) if places is None else places
        kept = [at for at in places if not self._failed(message.content[at], f"$.messages[{index}].content[{at}]")]
        if not kept and message.content:
            return
        now = f"$.messages[{len(self.messages)}]"
        self.moved[now] = f"$.messages[{index}]"
        for to, at in enumerate(kept):
            self.moved[f"{now}.content[{to}]"] = f"$.messages[{index}].content[{at}]"
        content = tuple([message.content[at] for at in kept])
        self.messages.append(message if content == message.content else replace(message, content=content))

    def _summary(self, where: str, text: Text) -> None:
        now = f"$.messages[{len(self.messages)}]"
        self.moved |= {now: None, f"{now}.content[0]": where}
        self.messages.append(Message(role="user", content=(text,)))

    def _failed(self, part: Part, where: str) -> bool:
        """Whether a part is a failed compaction, which only its own dialect gets back."""
        if not isinstance(part, CompactedHistory) or part.text or part.encrypted or is_of(part, self._dialect):
            return False
        self._losses.dropped(where, "compaction", "it failed, and stands for nothing")
        self._note_fields(part, where)
        return True

    def _note_fields(self, part: CompactedHistory, where: str) -> None:
        for name in ("signature", "encrypted"):
            if getattr(part, name) is not None:
                self._losses.dropped(where, name, "only the server that made it can read it")
        self._losses.carry(part.extra, where, self._dialect)
