"""Decodes one block of a stream: how it begins, its deltas, and the complete block.

Source: `ContentBlockStart` and `ContentBlockDelta` in the published model of the API.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.names import read_id
from xenoglot.codec.responses.reasoning import unpack
from xenoglot.dialects.converse.citations import decode_citation
from xenoglot.dialects.converse.extras import NAME
from xenoglot.dialects.converse.parts.decoder import decode_block, derived_id, sealed
from xenoglot.errors import WireError
from xenoglot.model.content import Origin, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    ReasoningDelta,
    SignatureDelta,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

_KINDS: Final = ("text", "toolUse", "reasoningContent", "citation", "toolResult", "image")
_REASONED: Final = ("text", "signature", "redactedContent")


def kind_of_delta(delta: JSONObject) -> str | None:
    """Return what a delta is of: the field of the union, or `redactedContent`; `None` if it is not known."""
    kind = next((name for name in _KINDS if delta.get(name) is not None), None)
    if kind != "reasoningContent":
        return kind
    inner = delta[kind]
    if not isinstance(inner, dict) or all(inner.get(name) is None for name in _REASONED):
        return None
    return "redactedContent" if inner.get("redactedContent") is not None else kind


class BlockDecoder:
    """The open block at `index`. One without a `header` is given out as a whole at its end."""

    __slots__ = ("_content", "_pieces", "_signature", "header", "index")

    def __init__(self, index: int, header: Part | None, content: JSONObject | None = None) -> None:
        self.index = index
        self.header = header
        self._content = content or {}  # of a block that is given out at its end: its kind, and the object of it
        self._pieces: list[str] = []  # of reasoning, of the JSON of a call, and of bytes in base64
        self._signature = ""

    @classmethod
    def started(cls, index: int, start: Reader) -> BlockDecoder:
        """Return the block that a `contentBlockStart` opens."""
        call = start.peek("toolUse")
        if not isinstance(call, dict) or call.get("type") is not None:
            return cls(index, None, start.rest())
        reader = Reader(call, start.at("toolUse"))
        call_id = reader.take("toolUseId", str)
        path = f"$.output.message.content[{index}]"
        header = ToolCall(
            id=derived_id(path) if call_id is None else read_id(call_id),
            name=reader.need("name", str),
            extra=reader.extra(NAME),
        )
        return cls(index, header)

    @classmethod
    def of_delta(cls, index: int, kind: str) -> BlockDecoder:
        """Return the block that a first delta of this kind opens.

        Raises:
            WireError: such a block begins with a `contentBlockStart`.
        """
        match kind:
            case "text" | "citation":
                return cls(index, Text(text=""))
            case "reasoningContent":
                return cls(index, Reasoning(text="", origin=Origin(dialect=NAME)))
            case "toolUse":
                raise WireError("$.contentBlockIndex", "a tool call grows that did not begin")
            case _:
                return cls(index, None)

    @property
    def is_call(self) -> bool:
        """Whether it ends at its `contentBlockStop` alone, however many other blocks begin before that."""
        return self.header is None or isinstance(self.header, ToolCall)

    def grows_by(self, kind: str) -> bool:
        """Return whether a delta of this kind belongs to it."""
        match self.header:
            case Text():
                return kind in ("text", "citation")
            case Reasoning():
                return kind == "reasoningContent"
            case ToolCall():
                return kind == "toolUse"
            case _:
                return kind in ("image", "toolResult", "redactedContent") or kind in self._content

    def first(self) -> Sequence[Event]:
        """Return the start of the block."""
        return () if self.header is None else (BlockStarted(part=self.header),)

    def grow(self, kind: str, delta: JSONObject) -> Sequence[Event]:
        """Return what a delta adds."""
        reader = Reader(delta, "$.delta")
        match kind:
            case "text":
                text = reader.need("text", str)
                return (TextDelta(text=text),) if text else ()
            case "citation":
                return (CitationDelta(citation=decode_citation(reader.need("citation", dict), "$.delta.citation")),)
            case "reasoningContent":
                return self._reason(Reader(reader.need(kind, dict), reader.at(kind)))
            case "toolUse":
                inner = Reader(reader.need(kind, dict), reader.at(kind))
                return self._argue(inner.take("input", str) or "")
            case _:
                self._note(kind, reader)
                return ()

    def _reason(self, inner: Reader) -> Sequence[Event]:
        self._signature += inner.take("signature", str) or ""
        text = inner.take("text", str)
        if not text:
            return ()
        self._pieces.append(text)
        return (ReasoningDelta(text=text),)

    def _argue(self, text: str) -> Sequence[Event]:
        if not text:
            return ()
        self._pieces.append(text)
        return () if self.header is None else (ArgumentsDelta(text=text),)

    def _note(self, kind: str, delta: Reader) -> None:
        """Remember the growth of a block that is given out at its end."""
        if kind == "redactedContent":
            inner = delta.need("reasoningContent", dict)
            self._content["reasoningContent"] = {**self._content.get("reasoningContent", {}), **inner}
            self._hold(inner.get(kind))
        elif kind == "toolResult":
            self._content.setdefault(kind, {}).setdefault("content", []).extend(delta.need(kind, list))
        else:
            value = delta.need(kind, dict)
            self._content[kind] = {**self._content.get(kind, {}), **value}
            source = value.get("source")
            self._hold(source.get("bytes") if isinstance(source, dict) else None)

    def _hold(self, data: JSON) -> None:
        """Remember a piece of the bytes of an image or of redacted reasoning."""
        if isinstance(data, str):
            self._pieces.append(data)

    def end(self) -> Sequence[Event]:
        """Return the end of the block, or all of it."""
        if self.header is None:
            part = decode_block(self._whole(), f"$.output.message.content[{self.index}]")
            return (BlockStarted(part=part), BlockEnded())
        if isinstance(self.header, Reasoning) and self._signature:
            if unpack(self._signature) is None:
                return (SignatureDelta(signature=self._signature), BlockEnded())
            whole = replace(self.header, text="".join(self._pieces))
            return (BlockEnded(part=sealed(whole, self._signature)),)
        return (BlockEnded(),)

    def _whole(self) -> JSONObject:
        content = self._content
        if "toolUse" in content:
            return {"toolUse": {**content["toolUse"], "input": _value("".join(self._pieces))}}
        if len(self._pieces) > 1:
            whole = _joined(self._pieces)
            for kind, inner in content.items():
                held = {"redactedContent": whole} if kind == "reasoningContent" else {"source": {"bytes": whole}}
                content[kind] = {**inner, **held}
        return content


def _value(text: str) -> JSON:
    try:
        return decode_json(text) if text else {}
    except WireError:
        return text


def _joined(pieces: Sequence[str]) -> str:
    """Return the base64 of the bytes whose pieces came in base64."""
    try:
        return b64encode(b"".join([b64decode(piece, validate=True) for piece in pieces])).decode()
    except ValueError:
        raise WireError("$.delta", "expected base64") from None
