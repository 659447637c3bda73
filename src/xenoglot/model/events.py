"""The events of a stream, and the table of which event may follow which.

Theory of operation. A stream is started once. Then, for each candidate, blocks open, grow and close, one at a time;
a block is a part of the answer in the making. A candidate is finished when no block of it is open. Usage is a
snapshot, never a difference: the last one counts. `Failed` ends the stream from any state, and nothing follows it.
`GRAMMAR` and `GROWTH` are the same as data: `codec.grammar` asserts it, the property tests draw valid streams from it.

The three deltas that are pieces of text come once for every token of every answer: they are the cheapest structs there
are (`gc=False`: nothing in them can refer back to them).
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from xenoglot.model.content import (
    Audio,
    Citation,
    CompactedHistory,
    Extra,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Logprob,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON
from xenoglot.model.response import Finish, Usage


class Started(Struct, frozen=True, kw_only=True):
    """The answer begins; the fields are those of `Response`."""

    id: str | None = None
    model: str | None = None
    created: int | None = None
    service_tier: str | None = None
    extra: Extra | None = None


class BlockStarted(Struct, frozen=True, kw_only=True):
    """A block opens; `part` is what is known of it, and the deltas that follow are added to it."""

    part: Part
    candidate: int = 0


class TextDelta(Struct, frozen=True, gc=False):
    """More words of a `Text` or a `Refusal`."""

    text: str
    logprobs: tuple[Logprob, ...] = ()
    candidate: int = 0


class CitationDelta(Struct, frozen=True, kw_only=True):
    """One more citation of a `Text`."""

    citation: Citation
    candidate: int = 0


class ReasoningDelta(Struct, frozen=True, gc=False):
    """More thinking; `summary` is the index of the summary that grows, or `None` for the thinking itself."""

    text: str
    summary: int | None = None
    candidate: int = 0


class SignatureDelta(Struct, frozen=True, kw_only=True):
    """The signature of a `Reasoning`; a second one replaces the first (as the official accumulators do)."""

    signature: str
    candidate: int = 0


class ArgumentsDelta(Struct, frozen=True, gc=False):
    """More text of a tool call's arguments, cut anywhere, even inside an escape."""

    text: str
    candidate: int = 0


class AudioDelta(Struct, frozen=True, kw_only=True):
    """More sound (base64) and more of its transcript."""

    data: str = ""
    transcript: str = ""
    candidate: int = 0


class HostedProgress(Struct, frozen=True, kw_only=True):
    """The tool of the open `HostedCall` runs; `preview` is preliminary image number `index`."""

    preview: Inline | None = None
    index: int | None = None
    candidate: int = 0


class OpaqueDelta(Struct, frozen=True, kw_only=True):
    """A wire event that only its own dialect understands: an `Opaque` block grows, or an event of a new kind."""

    dialect: str
    data: JSON
    name: str | None = None
    candidate: int = 0


class BlockEnded(Struct, frozen=True, kw_only=True):
    """The open block is complete; `part` is all of it, if the wire had more than the sum of the deltas."""

    part: Part | None = None
    candidate: int = 0


class UsageReported(Struct, frozen=True, kw_only=True):
    """A snapshot of the usage so far; fields that it leaves out keep their last value."""

    usage: Usage


class Finished(Struct, frozen=True, kw_only=True):
    """A candidate is complete."""

    finish: Finish
    candidate: int = 0
    extra: Extra | None = None


class Failed(Struct, frozen=True, kw_only=True):
    """The stream is broken: what came is all there is, and it is not an answer."""

    failure: Failure


class Ping(Struct, frozen=True, kw_only=True):
    """The other side lives."""


Event: TypeAlias = (
    Started
    | BlockStarted
    | TextDelta
    | CitationDelta
    | ReasoningDelta
    | SignatureDelta
    | ArgumentsDelta
    | AudioDelta
    | HostedProgress
    | OpaqueDelta
    | BlockEnded
    | UsageReported
    | Finished
    | Failed
    | Ping
)

PIECES = (TextDelta, ReasoningDelta, ArgumentsDelta)
"""What an answer mostly grows by; `Piece` is one of them."""

Piece: TypeAlias = TextDelta | ReasoningDelta | ArgumentsDelta

IDLE = "idle"
BETWEEN = "between"
INSIDE = "inside"
DONE = "done"

GRAMMAR: dict[str, dict[type[Event], str]] = {
    IDLE: {Started: BETWEEN, Ping: IDLE, OpaqueDelta: IDLE},
    BETWEEN: {BlockStarted: INSIDE, UsageReported: BETWEEN, Finished: DONE, OpaqueDelta: BETWEEN, Ping: BETWEEN},
    INSIDE: {
        TextDelta: INSIDE,
        CitationDelta: INSIDE,
        ReasoningDelta: INSIDE,
        SignatureDelta: INSIDE,
        ArgumentsDelta: INSIDE,
        AudioDelta: INSIDE,
        HostedProgress: INSIDE,
        OpaqueDelta: INSIDE,
        BlockEnded: BETWEEN,
        UsageReported: INSIDE,
        Ping: INSIDE,
    },
    DONE: {UsageReported: DONE, OpaqueDelta: DONE, Ping: DONE},
}
"""State of a candidate -> event -> next state. `Failed` is allowed in every state and ends the stream."""

GROWTH: dict[type[Part], tuple[type[Event], ...]] = {
    Text: (TextDelta, CitationDelta),
    Refusal: (TextDelta,),
    Reasoning: (ReasoningDelta, SignatureDelta),
    ToolCall: (ArgumentsDelta,),
    Audio: (AudioDelta,),
    Image: (),
    Video: (),
    File: (),
    ToolResult: (),
    HostedCall: (ArgumentsDelta, HostedProgress),
    HostedResult: (),
    CompactedHistory: (),
    Opaque: (),
}
"""Part -> the deltas it grows by. An `OpaqueDelta` may stand in any block."""
