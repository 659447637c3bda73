"""Encodes the blocks of an answer as steps of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.interactions.citations import KEY
from xenoglot.dialects.interactions.content import CONTENTS
from xenoglot.dialects.interactions.extras import NAME
from xenoglot.dialects.interactions.finish import WHERE
from xenoglot.dialects.interactions.step_decoder import OUTPUT, THOUGHT, is_fragment
from xenoglot.dialects.interactions.step_encoder import PARAGRAPH, StepEncoder, joins, step_fields
from xenoglot.dialects.interactions.tool_calls import CALL
from xenoglot.model.content import Opaque, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, ReasoningDelta, TextDelta
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject

_BEFORE, _BETWEEN, _AFTER = b'{"event_type":"step.delta","index":', b',"delta":{"type":"text","text":', b"}}"

_LATE = ("arguments", "result", "is_error", "signature")
"""Fields of a step that its start does not hold: one delta does."""


class BlockEncoder:
    """Encodes blocks. `refusals` are those that were written: the status of the answer depends on them."""

    __slots__ = (
        "_before",
        "_folder",
        "_header",
        "_index",
        "_losses",
        "_open",
        "_parts",
        "_pieces",
        "_steps",
        "_summary",
        "refusals",
    )

    def __init__(self, losses: Losses) -> None:
        self.refusals: list[Refusal] = []
        self._losses = losses
        self._steps = StepEncoder(losses, home=False)
        self._index = -1  # of the last step
        self._open = ""  # the type of the step that has not stopped
        self._before: Part | None = None  # the last part
        self._parts = -1  # the number of the part that is open
        self._header: Part | None = None  # of the block that is open
        self._folder = Folder()  # of its parts
        self._pieces = 0  # written of the block's text
        self._summary: int | None = None  # which of a thought's grew last

    @property
    def _where(self) -> str:
        return f"{WHERE}.content[{self._parts}]"

    def begin(self, part: Part) -> Sequence[ServerSentEvent]:
        """Return the events of the start of a block."""
        self._parts += 1
        self._header = part
        self._pieces = 0
        self._folder = Folder()
        self._folder.feed(BlockStarted(part=part))
        match part:
            case Text() | Refusal():
                return (*self._output(part), *(self.text(TextDelta(text=part.text), own=True) if part.text else ()))
            case Reasoning():
                begun = self._step({"type": THOUGHT})
                texts = [text for text in (part.text, *(part.summary or ())) if text]
                self._summary = None if not part.summary else len(part.summary) - 1
                self._pieces = sum(map(len, texts))
                return (*begun, self._thought(PARAGRAPH.join(texts))) if texts else begun
            case ToolCall(kind="function"):
                call = {"type": CALL, "id": part.id, "name": self._steps.tool_name(part, self._where), "arguments": {}}
                begun = self._step(call)
                if part.arguments:
                    begun = (*begun, self._delta(type="arguments_delta", arguments=part.arguments))
                return begun
            case _:
                return ()

    def text(self, event: TextDelta, *, own: bool = False) -> Sequence[ServerSentEvent]:
        """Return the event of a piece of text; its words are kept where something else is about them."""
        if not own:
            self._folder.feed(event)
        if not isinstance(self._header, Text | Refusal):
            return ()
        self._pieces += len(event.text)
        data = b"%b%d%b%b%b" % (_BEFORE, self._index, _BETWEEN, encode_json(event.text), _AFTER)
        return (ServerSentEvent(data, "step.delta"),)

    def grow(self, event: Event) -> Sequence[ServerSentEvent]:
        """Return the events of a delta."""
        self._folder.feed(event)
        match event, self._header:
            case ReasoningDelta(text=text, summary=number), Reasoning() if text:
                apart = self._pieces and number != self._summary
                self._summary, self._pieces = number, self._pieces + len(text)
                return (self._thought(PARAGRAPH + text if apart else text),)
            case ArgumentsDelta(text=text), ToolCall(kind="function") if text:
                return (self._delta(type="arguments_delta", arguments=text),)
        return ()

    def end(self, whole: Part | None) -> Sequence[ServerSentEvent]:
        """Return the events of the end of a block, with what was not written of it."""
        self._folder.feed(BlockEnded(part=whole))
        (part,) = self._folder.response().candidates[0].content
        header, self._header = self._header, None
        match part:
            case Text() | Refusal() if isinstance(header, Text | Refusal):
                return self._end_text(part)
            case Reasoning() if isinstance(header, Reasoning):
                return self._end_thought(part)
            case ToolCall() if isinstance(header, ToolCall) and header.kind == "function":
                return self._end_call(part)
        return self._whole(part)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the step that is open."""
        if not self._open:
            return ()
        self._open = ""
        return (ServerSentEvent(encode_json({"event_type": "step.stop", "index": self._index}), "step.stop"),)

    def carry(self, data: JSONObject, name: str) -> ServerSentEvent:
        """Return an event that only this dialect knows; a delta is one of the last step."""
        kind = data.get("event_type")
        placed = {**data, "index": max(self._index, 0)} if kind == "step.delta" else data
        return ServerSentEvent(encode_json(placed), kind if isinstance(kind, str) else name)

    def _step(self, step: JSONObject) -> Sequence[ServerSentEvent]:
        stopped = self.close()
        self._index += 1
        self._open = step["type"]
        started = encode_json({"event_type": "step.start", "index": self._index, "step": step})
        return (*stopped, ServerSentEvent(started, "step.start"))

    def _delta(self, **delta: JSON) -> ServerSentEvent:
        data = encode_json({"event_type": "step.delta", "index": self._index, "delta": delta})
        return ServerSentEvent(data, "step.delta")

    def _thought(self, text: str) -> ServerSentEvent:
        return self._delta(type="thought_summary", content={"type": "text", "text": text})

    def _output(self, part: Part) -> Sequence[ServerSentEvent]:
        """Return the start of a step for a content, unless the last one continues."""
        texts = isinstance(part, Text | Refusal) and isinstance(self._before, Text | Refusal)
        if self._open == OUTPUT and joins(part, self._before) and not texts:
            return ()
        own = step_fields(part, self._where, self._losses)
        if isinstance(part, Opaque) and isinstance(part.data, dict) and is_fragment(part):
            own |= {key: value for key, value in part.data.items() if key not in ("type", "content")}
        return self._step({"type": OUTPUT, **own})

    def _end_text(self, part: Text | Refusal) -> Sequence[ServerSentEvent]:
        if isinstance(part, Refusal):
            self.refusals.append(part)
        (written,) = self._steps.contents(part, self._where)  # which reports what is lost of it
        self._before = part
        rest = part.text[self._pieces :]
        written_none = not part.text and KEY not in written
        events: list[ServerSentEvent] = [self._delta(type="text", text=rest)] if rest or written_none else []
        if KEY in written:
            events.append(self._delta(type="text_annotation_delta", annotations=written[KEY]))
        return events

    def _end_thought(self, part: Reasoning) -> Sequence[ServerSentEvent]:
        step = self._steps.step(part, self._where) or {}
        self._before = part
        late = {key: value for key, value in step.items() if key not in ("type", "summary", "signature")}
        events = (
            [self._delta(type="thought_signature", signature=step["signature"], **late)] if "signature" in step else []
        )
        return (*events, *self.close())

    def _end_call(self, part: ToolCall) -> Sequence[ServerSentEvent]:
        self._steps.step(part, self._where)  # which reports what is lost of it
        self._before = part
        return self.close()

    def _whole(self, part: Part) -> Sequence[ServerSentEvent]:
        """Return the events of a part that is written when it is complete."""
        if isinstance(part, CONTENTS) or is_fragment(part) or (isinstance(part, Opaque) and not _is_step(part)):
            return self._content(part)
        step = self._steps.step(part, self._where)
        if step is None:
            return ()
        self._before = part
        start, deltas = _apart(part, step)
        return (*self._step(start), *(self._delta(**delta) for delta in deltas), *self.close())

    def _content(self, part: Part) -> Sequence[ServerSentEvent]:
        contents = self._steps.contents(part, self._where)
        if not contents:
            return ()
        begun = self._output(part)
        self._before = part
        return (*begun, *(self._delta(**content) for content in contents))


def _apart(part: Part, step: JSONObject) -> tuple[JSONObject, list[JSONObject]]:
    """Return what a whole step starts with, and its deltas."""
    if step["type"] == OUTPUT:
        return {"type": OUTPUT}, step["content"]
    if isinstance(part, Opaque):
        return step, []
    if isinstance(part, ToolCall):
        arguments = encode_json(step["arguments"]).decode()
        return {**step, "arguments": {}}, [{"type": "arguments_delta", "arguments": arguments}]
    late = {key: value for key, value in step.items() if key in _LATE}
    start = {key: value for key, value in step.items() if key not in _LATE}
    return start, [{"type": step["type"], **late}]


def _is_step(part: Opaque) -> bool:
    return part.dialect == NAME and isinstance(part.data, dict)
