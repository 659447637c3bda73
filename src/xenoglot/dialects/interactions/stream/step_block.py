"""Decodes one step of a stream: the blocks of its contents, or the one block that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.interactions.citations import KEY, decode_citations, is_citation
from xenoglot.dialects.interactions.content import CONTENTS, decode_content
from xenoglot.dialects.interactions.extras import NAME, STEP
from xenoglot.dialects.interactions.hosted import is_hosted
from xenoglot.dialects.interactions.step_decoder import OUTPUT, THOUGHT, decode_step, is_fragment, signed
from xenoglot.dialects.interactions.tool_calls import CALL
from xenoglot.model.content import Audio, Extra, Opaque, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    OpaqueDelta,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.model.fold import grown_part, unfold_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject


class StepBlock:
    """One step while it grows; `before` is the part that it follows, `last` its last part when it has stopped."""

    __slots__ = (
        "_answer_id",
        "_citations",
        "_grown",
        "_kind",
        "_open",
        "_pieces",
        "_signature",
        "_step",
        "_texts",
        "before",
        "index",
        "last",
    )

    def __init__(self, step: JSONObject, before: Part | None, answer_id: str, index: int | None = None) -> None:
        self._step = step
        self._kind = Reader(step, "$.step").need("type", str)
        self._answer_id = answer_id
        self._open: Part | None = None  # the block that grows
        self._texts: list[str] = []  # of it
        self._citations: list[JSON] = []  # of it
        self._pieces: list[str] = []  # of arguments
        self._grown: list[Event] = []  # what a thought grew by
        self._signature: str | None = None  # of a thought
        self.index = index
        self.before = before
        self.last: Part | None = None

    @property
    def is_call(self) -> bool:
        """Whether it ends at its `step.stop` alone, however many other steps start before that."""
        return self._kind not in (OUTPUT, THOUGHT, "")

    def has(self, index: int | None) -> bool:
        """Return whether an event with this index is of this step; one without an index is of the open one."""
        return index is None or self.index is None or index == self.index

    def start(self) -> Sequence[Event]:
        """Return the events of the start."""
        if self._kind == OUTPUT:
            return self._contents(self._step)
        if self._kind == THOUGHT:
            return self._thought()
        if self._kind == CALL:
            return self._call()
        return ()

    def grow(self, delta: JSONObject) -> Sequence[Event]:
        """Return the events of a delta."""
        kind = delta.get("type")
        if self._kind == OUTPUT:
            return self._content_delta(delta, kind)
        if self._kind == THOUGHT and kind in ("thought_summary", "thought_signature", "text"):
            return self._thought_delta(delta, kind)
        if kind == "arguments_delta":
            return self._arguments(delta)
        if is_hosted(self._kind) or kind == self._kind or not isinstance(self._open, Reasoning | ToolCall):
            self._step = {**self._step, **{key: value for key, value in delta.items() if key != "type"}}
            return ()
        return (OpaqueDelta(dialect=NAME, data={"event_type": "step.delta", "delta": delta}, name="step.delta"),)

    def stop(self) -> Sequence[Event]:
        """Return the events of the end."""
        if self._kind in (OUTPUT, THOUGHT, CALL):
            return self._end()
        if self._pieces:
            self._step = {**self._step, "arguments": _object("".join(self._pieces))}
        events: list[Event] = []
        for part in decode_step(self._step, "$.step", self.before, self._answer_id):
            events += unfold_part(part)
            self.last = part
        return events

    def _end(self) -> Sequence[Event]:
        if self._open is None:
            return ()
        if isinstance(self._open, Reasoning):
            return self._end_thought(self._open)
        events: list[Event] = []
        if isinstance(self._open, Text) and self._citations:
            text = "".join(self._texts)
            known = [item for item in self._citations if is_citation(item)]
            events += [CitationDelta(citation=citation) for citation in decode_citations(known, text)]
        if isinstance(self._open, ToolCall) and not self._pieces and self._open.arguments == "":
            arguments = self._step.get("arguments")
            if isinstance(arguments, dict):
                events += self._arguments_of(self._step)
        self._texts, self._citations, self._pieces = [], [], []
        self.last = self.before = self._open
        self._open = None
        return [*events, BlockEnded()]

    def _contents(self, step: JSONObject) -> Sequence[Event]:
        """Return the events of the contents that a step starts with, all but the last of which are complete."""
        content = step.get("content")
        events: list[Event] = []
        for part in decode_step(step, "$.step", self.before) if isinstance(content, list) and content else ():
            events += [*self._end(), *self._begin_with(part)]
        return events

    def _begin_with(self, part: Part) -> Sequence[Event]:
        """Open a block that may grow with the text that it has."""
        self._open = part
        if isinstance(part, Text):
            self._texts.append(part.text)
        return [event for event in unfold_part(part) if type(event) is not BlockEnded]

    def _content_delta(self, delta: JSONObject, kind: JSON) -> Sequence[Event]:
        match kind:
            case "text":
                text = Reader(delta, "$.delta").need("text", str)
                return self._text(text)
            case "text_annotation_delta":
                return self._annotations(delta)
            case "audio" if isinstance(self._open, Audio) and isinstance(delta.get("data"), str):
                return (AudioDelta(data=delta["data"]),)
            case _:
                return (*self._end(), *self._begin_with(self._first(decode_content(delta, "$.delta"))))

    def _text(self, text: str) -> Sequence[Event]:
        events: Sequence[Event] = ()
        if not isinstance(self._open, Text):
            events = (*self._end(), *self._begin_with(self._first(Text(text=""))))
        self._texts.append(text)
        return (*events, TextDelta(text=text)) if text else events

    def _first(self, part: Part) -> Part:
        """Return a content as one that begins its step, if it does."""
        if self.last is not None:
            return _inside(part)
        step = {key: value for key, value in self._step.items() if key not in ("type", "content")}
        if isinstance(part, Opaque):
            return replace(part, data={"type": OUTPUT, **step, "content": [part.data]})
        fields = {f"{STEP}{key}": value for key, value in step.items()}
        follows = isinstance(self.before, CONTENTS) or is_fragment(self.before)
        if not fields and not follows:
            return part
        extra = getattr(part, "extra", None) or Extra(dialect=NAME)
        marked = replace(extra, fields={**extra.fields, **fields}, form={**extra.form, "step": True})
        return replace(part, extra=marked)

    def _annotations(self, delta: JSONObject) -> Sequence[Event]:
        found = delta.get(KEY)
        events: Sequence[Event] = () if isinstance(self._open, Text) else self._text("")
        listed = found if isinstance(found, list) else []
        self._citations += listed
        others = [item for item in listed if not is_citation(item)]
        if not others:
            return events
        data: JSONObject = {"event_type": "step.delta", "delta": {**delta, KEY: others}}
        return (*events, OpaqueDelta(dialect=NAME, data=data, name="step.delta"))

    def _thought(self) -> Sequence[Event]:
        bare = {key: value for key, value in self._step.items() if key != "signature"}
        (part,) = decode_step(bare, "$.step", self.before)
        if not isinstance(part, Reasoning):
            self._kind = ""  # a summary of more than texts: known when the step stops
            return ()
        given = self._step.get("signature")
        self._signature = given if isinstance(given, str) else None
        self._open = part
        started = [event for event in unfold_part(part) if type(event) is not BlockEnded]
        self._grown += started[1:]
        return started

    def _end_thought(self, header: Reasoning) -> Sequence[Event]:
        whole = grown_part(header, self._grown)
        if self._signature is None or not isinstance(whole, Reasoning):
            self.last, self._open = whole, None
            return (BlockEnded(),)
        form: JSONObject = {}
        found = signed(whole, self._signature, form)
        if form:
            extra = found.extra or Extra(dialect=NAME)
            found = replace(found, extra=replace(extra, form={**extra.form, **form}))
        self.last, self._open = found, None
        return (BlockEnded(part=found),)

    def _thought_delta(self, delta: JSONObject, kind: JSON) -> Sequence[Event]:
        if kind == "thought_signature":
            self._signature = Reader(delta, "$.delta").take("signature", str) or self._signature
            return ()
        content = delta if kind == "text" else delta.get("content")
        text = content.get("text") if isinstance(content, dict) and content.get("type", "text") == "text" else None
        if isinstance(text, str):
            grown = ReasoningDelta(text=text, summary=0)
            self._grown.append(grown)
            return (grown,)
        return (OpaqueDelta(dialect=NAME, data={"event_type": "step.delta", "delta": delta}, name="step.delta"),)

    def _call(self) -> Sequence[Event]:
        bare = {key: value for key, value in self._step.items() if key != "arguments"}
        (part,) = decode_step({**bare, "arguments": {}}, "$.step", self.before, self._answer_id)
        self._open = replace(part, arguments="") if isinstance(part, ToolCall) else part
        return (BlockStarted(part=self._open),)

    def _arguments(self, delta: JSONObject) -> Sequence[Event]:
        text = Reader(delta, "$.delta").take("arguments", str) or ""
        self._pieces.append(text)
        return (ArgumentsDelta(text=text),) if text and isinstance(self._open, ToolCall) else ()

    def _arguments_of(self, step: JSONObject) -> Sequence[Event]:
        """Return the arguments of a call that came whole with its start."""
        (part,) = decode_step(step, "$.step", self.before, self._answer_id)
        return (ArgumentsDelta(text=part.arguments),) if isinstance(part, ToolCall) and part.arguments else ()


def _inside(part: Part) -> Part:
    """Return a content after the first of its step."""
    return replace(part, data={"type": OUTPUT, "content": [part.data]}) if isinstance(part, Opaque) else part


def _object(text: str) -> JSONObject:
    found = input_of(text)
    return {RAW_ARGUMENTS: text} if found is None else found
