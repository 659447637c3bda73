"""Decodes one item of a stream to its blocks, one after the other.

A message makes a block for each of its contents; any other item is one block. The end of an item contains the
whole of it, so a block is closed by it; only a content that another follows is closed by that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.responses.client_calls import CALLS, opened_call
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.hosted.decoder import KINDS, LISTING, MCP, unfinished
from xenoglot.dialects.responses.item_decoder import BODIES, COMPACTION, JOINT, decode_item
from xenoglot.dialects.responses.output_text import decode_annotation, decode_logprobs
from xenoglot.dialects.responses.stream.block_decoder import BlockDecoder
from xenoglot.dialects.responses.tool_search import SEARCH_CALL, SearchPairs
from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, HostedCall, Inline, Opaque, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    CitationDelta,
    HostedProgress,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.model.fold import unfold_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject

OPENINGS = {
    "response.content_part.added": "message",
    "response.output_text.delta": "message",
    "response.output_text.done": "message",
    "response.refusal.delta": "message",
    "response.refusal.done": "message",
    "response.reasoning_summary_part.added": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning.delta": "reasoning",
}
"""Events that imply an item: if it was never added, they open it."""

_ENVELOPE = frozenset(
    {"type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "obfuscation", "part"}
)
"""Fields that only locate an event (pitfall-115)."""

_HOSTED = tuple(KINDS)

_STEPS = ("in_progress", "completed", "failed")
_RUNS = ("searching", "interpreting", "generating")
"""The steps of a tool of the server: those that follow from its item, and those that report that it runs."""

_WORDS = {"output_text": "text", "refusal": "refusal"}
"""The contents of a message that grow, and where each keeps its words."""

_NOTHING: JSONObject = {"type": "output_text", "text": ""}
"""Stands for the contents before the one that begins."""


class _Pieces(list[str]):
    """The pieces of a text; their total length is known without joining them."""

    __slots__ = ("_counted", "_length")

    def __init__(self) -> None:
        super().__init__()
        self._length = self._counted = 0

    def length(self) -> int:
        """Return how many characters there are by now."""
        self._length += sum(map(len, self[self._counted :]))
        self._counted = len(self)
        return self._length


class ItemDecoder:
    """The item `item`, which was added at `index`."""

    __slots__ = (
        "_answer_id",
        "_block",
        "_contents",
        "_item",
        "_known",
        "_places",
        "_searches",
        "_summaries",
        "_texts",
        "_told",
        "index",
        "item_id",
        "kind",
        "parts",
    )

    def __init__(self, item: JSONObject, index: int | None, answer_id: str, searches: SearchPairs) -> None:
        self._searches = searches
        self.index = index
        self.kind: JSON = item.get("type", "message" if "role" in item else None)
        named = item.get("id")
        self.item_id = named if isinstance(named, str) else None
        self.parts: list[Part] = []  # those that are over
        self._answer_id = answer_id
        self._item = _unspoken(item)
        self._places: list[int | None] = []  # of the contents of a message so far, as the wire counts them
        self._known: set[int] = set()  # of these
        self._told = False  # whether the end of the last content has been told
        self._block: BlockDecoder | None = None
        self._texts: dict[tuple[str, int], _Pieces] = {}  # of a thought
        self._summaries: dict[int, int] = {}  # of a thought, as the wire counts them
        self._contents = 0  # of a thought, those of which the end has been told

    @property
    def state(self) -> tuple[object, int]:
        """The open block, and for reasoning the number of its finished contents."""
        return self._block, self._contents

    def taker(self, kind: str, summary: JSON) -> Callable[[str], Event] | None:
        """Return the decoder of further events of a `kind` that was decoded; `None` for other events."""
        block, what = self._block, kind.removeprefix("response.").removesuffix(".delta")
        if block is None or not kind.endswith(".delta"):
            return None
        if self.kind == "reasoning":
            return self._thinker(block, what, summary)
        if self.kind in _HOSTED:
            return block.taker(ArgumentsDelta) if self.kind == MCP else None
        return block.taker(ArgumentsDelta if self.kind in BODIES else TextDelta)

    def _thinker(self, block: BlockDecoder, what: str, summary: JSON) -> Callable[[str], Event]:
        at = self._summary_at(summary or 0) if what.startswith("reasoning_summary") else None
        known = self._texts["text" if at is None else "summary", self._contents if at is None else at]
        take = block.taker(ReasoningDelta if at is None else partial(ReasoningDelta, summary=at))

        def think(text: str) -> Event:
            known.append(text)
            return take(text)

        return think

    def begin(self) -> list[Event]:
        """Return the events of the start of the item: none for a message, which has no content yet."""
        if self.kind == "message":
            return []
        opened = opened_call(self._item) if isinstance(self.kind, str) and self.kind in CALLS else None
        (header,) = self._decoded(self._item) if opened is None else (opened,)
        if type(header) is Opaque or isinstance(header, (ToolCall, HostedCall, Reasoning, CompactedHistory)):
            self._block = BlockDecoder(header)
            return self._block.begin()
        return []

    def grow(self, event: Reader, kind: str, data: JSONObject) -> list[Event]:
        """Return the events of an event of this item.

        Raises:
            WireError: a field of it is missing or of a wrong type.
        """
        what, _, step = kind.removeprefix("response.").rpartition(".")
        events: list[Event] | None = None
        if self.kind == "message":
            events = self._grow_message(event, what, step)
        elif self.kind == "reasoning":
            events = self._grow_thought(event, what, step)
        elif self.kind in BODIES:
            events = self._grow_call(event, what, step)
        elif self.kind in _HOSTED:
            events = self._grow_hosted(event, what, step)
        elif self.kind == LISTING and what == LISTING:
            events = []  # told again by whoever writes the item
        elif self.kind == COMPACTION and what == "compaction" and step == "compacting":
            events = [Ping()]  # it says that the summary is being written, and nothing of it
        if events is None:
            return [OpaqueDelta(dialect=NAME, data=data, name=kind)]
        unknown = [key for key, value in event.rest().items() if key not in _ENVELOPE and value is not None]
        if unknown and step == "delta":
            return [*events, OpaqueDelta(dialect=NAME, data={**data, "delta": ""}, name=kind)]
        return events

    def end(self, whole: JSONObject | None) -> list[Event]:
        """Return the end of the item, given the complete item if the server sent it."""
        if whole is not None and self.item_id is not None:
            whole = {**whole, "id": self.item_id}  # an item has one id, whatever its server thinks
        told = () if whole is None else self._decoded(whole)
        place = max(len(self._places) - 1, 0)
        events = self._close(told[place] if place < len(told) else None) if self._block is not None else []
        for part in told[len(self.parts) :]:
            self.parts.append(part)
            events += unfold_part(part)
        return events

    def _decoded(self, item: JSONObject) -> tuple[Part, ...]:
        return self._searches.paired(decode_item(item, f"$.output[{self.index or 0}]", self._answer_id))

    def _close(self, whole: Part | None = None) -> list[Event]:
        block, self._block = self._block, None
        if block is None:
            return []
        self.parts.append(block.header if whole is None else whole)
        return block.end(whole)

    def _add(self, delta: Event) -> list[Event]:
        return [] if self._block is None else self._block.add(delta)

    # Messages

    def _grow_message(self, event: Reader, what: str, step: str) -> list[Event] | None:
        index = event.take("content_index", int)
        match what, step:
            case "content_part", "added":
                return self._content_added(event.take("part", dict), index)
            case "content_part", "done":
                event.take("part", dict)
                self._told = True
                return []
            case (("output_text" | "refusal"), ("delta" | "done")):
                return [*self._content_at(index, what), *self._grow_words(event, what, step)]
            case "output_text.annotation", "added":
                return [*self._content_at(index, "output_text"), *self._cite(event.object("annotation"))]
            case _:
                return None

    def _grow_words(self, event: Reader, kind: str, step: str) -> list[Event]:
        if step == "delta":
            logprobs = decode_logprobs(event, "logprobs")
            text = event.need("delta", str)
            return self._add(TextDelta(text=text, logprobs=logprobs)) if text or logprobs else [Ping()]
        self._told = True
        return self._rest_of_words(event.take(_WORDS[kind], str))

    def _cite(self, annotation: Reader | None) -> list[Event]:
        return [] if annotation is None else self._add(CitationDelta(citation=decode_annotation(annotation)))

    def _content_added(self, part: JSONObject | None, index: int | None) -> list[Event]:
        """Begin the content at `index`, which closes the one before it; nothing if it is open already."""
        if part is None or (index is not None and index in self._known):
            return []
        events = self._close()
        kind = part.get("type")
        word = _WORDS.get(kind) if isinstance(kind, str) else None
        words = part.get(word) if word is not None else None
        said = isinstance(words, str) and bool(words)
        begun = part if word is None or not said else part | {word: ""}
        before = [_NOTHING] if self._places else []  # the first content alone tells of the message itself
        self._places.append(index)
        if index is not None:
            self._known.add(index)
        self._told = False
        self._block = BlockDecoder(self._decoded({**self._item, "content": [*before, begun]})[-1])
        return [*events, *self._block.begin(), *(self._add(TextDelta(text=str(words))) if said else ())]

    def _content_at(self, index: int | None, kind: str) -> list[Event]:
        """Begin a content if none is open that may grow: servers leave `content_part.added` out, and count on."""
        if index is not None and index in self._known and index != self._places[-1]:
            raise WireError("$.content_index", "a content grows that is over")
        is_last = bool(self._places) and index in (None, self._places[-1])
        if self._block is None or (self._told and not is_last):
            empty: JSONObject = {"type": kind, _WORDS[kind]: ""}
            return self._content_added(empty if kind == "refusal" else empty | {"annotations": []}, index)
        if type(self._block.header) is not (Refusal if kind == "refusal" else Text):
            raise WireError("$.type", f"no `{kind}` grows there")
        return []

    def _rest_of_words(self, text: str | None) -> list[Event]:
        """Return the text at its end that its deltas did not have."""
        rest = self._block.rest(text) if self._block is not None and text else ""
        return self._add(TextDelta(text=rest)) if rest else []

    # Thoughts

    def _grow_thought(self, event: Reader, what: str, step: str) -> list[Event] | None:
        if what.startswith("reasoning_summary"):
            side, index = "summary", self._summary_at(event.take("summary_index", int) or 0)
        else:  # counted by what was told to be over: vLLM counts every delta
            side, index = "text", self._contents
            event.take("content_index", int)
        match what, step:
            case (("reasoning_summary_part" | "reasoning_part" | "content_part"), ("added" | "done")):
                part = event.object("part")
                text = None if part is None else part.take_if("text", str)
                return [] if step == "done" else self._rest_of_thought(side, index, text)
            case (("reasoning_summary_text" | "reasoning_summary" | "reasoning_text" | "reasoning"), "delta"):
                return self._think(side, index, event.need("delta", str))
            case (("reasoning_summary_text" | "reasoning_summary" | "reasoning_text" | "reasoning"), "done"):
                self._contents += side == "text"
                return self._rest_of_thought(side, index, event.take("text", str))
            case _:
                return None

    def _summary_at(self, place: int) -> int:
        """Return which summary stands at `place` of the wire: they are counted as they come."""
        return self._summaries.setdefault(place, len(self._summaries))

    def _think(self, side: str, index: int, text: str) -> list[Event]:
        if not text:
            return [Ping()]
        known = self._texts.setdefault((side, index), _Pieces())
        begins = not known
        known.append(text)
        if side == "summary":
            return self._add(ReasoningDelta(text=text, summary=index))
        return self._add(ReasoningDelta(text=JOINT + text if index and begins else text))

    def _rest_of_thought(self, side: str, index: int, text: str | None) -> list[Event]:
        pieces = self._texts.get((side, index), _Pieces())
        if text is None or len(text) <= pieces.length():
            return []
        known = "".join(pieces)
        rest = text[len(known) :] if text.startswith(known) else ""
        return self._think(side, index, rest) if rest else []

    # Calls

    def _grow_call(self, event: Reader, what: str, step: str) -> list[Event] | None:
        if what not in ("function_call_arguments", "custom_tool_call_input"):
            return None
        if step == "delta":
            text = event.need("delta", str)
            return self._add(ArgumentsDelta(text=text)) if text else [Ping()]
        text = event.take(BODIES[self.kind], str) or ""
        event.take("name", str)
        rest = self._block.rest(text) if self._block is not None else ""
        return self._add(ArgumentsDelta(text=rest)) if rest else []

    # Tools of the server

    def _grow_hosted(self, event: Reader, what: str, step: str) -> list[Event] | None:
        """Return what becomes of a call: more of its arguments, or that its tool runs by now."""
        if self._block is None or not isinstance(self._block.header, HostedCall):
            return None
        if what != self.kind:
            text = self._more_arguments(self._block, event, what, step)
            return None if text is None else self._add(ArgumentsDelta(text=text)) if text else []
        if step in _STEPS:
            return []
        preview: Inline | None = None
        if step == "partial_image":
            preview = Inline(data=event.need("partial_image_b64", str))
        elif step not in _RUNS:
            return None
        return [HostedProgress(preview=preview, index=event.take("partial_image_index", int))]

    def _more_arguments(self, block: BlockDecoder, event: Reader, what: str, step: str) -> str | None:
        """Return what the arguments of a call grow by; `None` for an event that we do not know."""
        match what, step:
            case "mcp_call_arguments", "delta":
                return event.need("delta", str)
            case "mcp_call_arguments", "done":
                return block.rest(event.take("arguments", str) or "")
            case "code_interpreter_call_code", "delta":
                return ("" if block.length() else CODE_TEXT) + _quoted(event.need("delta", str))
            case "code_interpreter_call_code", "done":
                return ""  # the end of the item tells all of it
            case _:
                return None


CODE_TEXT = '{"code":"'
"""What stands before the code in the arguments of its call."""


def _quoted(text: str) -> str:
    return encode_json(text)[1:-1].decode()


def _unspoken(item: JSONObject) -> JSONObject:
    """Return an item at its start: its status and encrypted content come with its end."""
    kind = item.get("type")
    bare = dict(item)
    if isinstance(item.get("status"), str):
        bare["status"] = "completed"
    if kind == "reasoning":
        bare = {key: value for key, value in bare.items() if key not in ("content", "encrypted_content")}
        bare["summary"] = []
    elif isinstance(kind, str) and kind in BODIES:
        bare[BODIES[kind]] = ""
    elif kind in _HOSTED:
        known = not any(isinstance(part, Opaque) for part in decode_item(item, "$", ""))
        return unfinished(bare) if known else item
    elif kind == SEARCH_CALL:
        bare["arguments"] = {}
    elif kind == COMPACTION:
        bare["encrypted_content"] = ""
    elif kind != "message" and not (isinstance(kind, str) and kind in CALLS):
        return item
    return bare
