"""Records of a session file: one JSON object per line; damaged lines are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.request import Message
from xenoglot.tools.budget import RunSpend
from xenoglot.tools.result import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.backends.redaction import Redactor

VERSION = 1

_LATEST = 2.0**37
"""Unix seconds that every system has a date for."""

INTERRUPTED = "[interrupted: it is not known whether this was done]"
"""The result of a call that a crash left without one."""


class SessionStarted(Struct, frozen=True, kw_only=True, tag="begun"):
    """The first line: name and folder of the session, and its start time (Unix seconds)."""

    version: int
    id: str
    created: Annotated[float, Meta(ge=0, le=_LATEST)]
    workspace: str
    model: str | None = None


class Turns(Struct, frozen=True, kw_only=True, tag="turns"):
    """Turns added to the conversation."""

    messages: tuple[Message, ...]


class TranscriptReplaced(Struct, frozen=True, kw_only=True, tag="rewritten"):
    """The conversation from here on: the previous one was too long and was compacted."""

    messages: tuple[Message, ...]


class SessionSpend(Struct, frozen=True, kw_only=True, tag="account"):
    """Usage of the session up to here, over all its runs, and the outcome of the last run (`None` during a run)."""

    spent: RunSpend
    outcome: Outcome | None = None


Record: TypeAlias = SessionStarted | Turns | TranscriptReplaced | SessionSpend


class Session(Struct, frozen=True, kw_only=True):
    """A session read from its file, ready to be continued. `damaged` counts the lines that could not be read."""

    started: SessionStarted
    messages: tuple[Message, ...] = ()
    spent: RunSpend = RunSpend()
    outcome: str | None = None
    damaged: int = 0

    @property
    def title(self) -> str:
        """The first prompt."""
        said = (part.text for message in self.messages for part in message.content if isinstance(part, Text))
        return next(said, "")


_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def encode(record: Record, redactor: Redactor) -> bytes:
    """Return a record as a line, without secrets."""
    plain = msgspec.json.decode(msgspec.json.encode(record))
    return msgspec.json.encode(redactor.json(plain)) + b"\n"


def decode(lines: Iterable[bytes]) -> Session:
    """Return the session in the lines of a file. Unreadable lines, as a crash leaves them, are ignored.

    Raises:
        ConfigurationError: they are no session, or of a version that is not known here.
    """
    begun: SessionStarted | None = None
    messages: list[Message] = []
    account = SessionSpend(spent=RunSpend())
    damaged = 0
    for line in lines:
        try:
            record = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damaged += 1
            continue
        match record:
            case SessionStarted():
                begun = begun or record
            case Turns(messages=turns):
                messages += turns
            case TranscriptReplaced(messages=turns):
                messages = list(turns)
            case SessionSpend():
                account = record
    if begun is None or begun.version != VERSION:
        raise ConfigurationError("it is no session, or one of another version of xenoglot")
    return Session(
        started=begun,
        messages=tuple(repaired(messages)),
        spent=account.spent,
        outcome=account.outcome,
        damaged=damaged,
    )


def repaired(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield turns, each that calls tools followed by one result for each call; results of no call are left out."""
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "system":
            continue
        results = [part for part in message.content if isinstance(part, ToolResult)]
        if waiting and not results:
            yield _interrupted(waiting)
            waiting = {}
        kept = tuple(part for part in message.content if not isinstance(part, ToolResult) or part.call_id in waiting)
        for result in results:
            waiting.pop(result.call_id, None)
        waiting |= {part.id: part for part in kept if isinstance(part, ToolCall)}
        if kept:
            yield message if len(kept) == len(message.content) else msgspec.structs.replace(message, content=kept)
    if waiting:
        yield _interrupted(waiting)


def _interrupted(waiting: dict[str, ToolCall]) -> Message:
    results = tuple(
        ToolResult(call_id=call.id, content=(Text(text=INTERRUPTED),), is_error=True, name=call.name, kind=call.kind)
        for call in waiting.values()
    )
    return Message(role="tool", content=results)
