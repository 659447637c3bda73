"""Decodes reasoning in a stream: strings and lists with the same reasoning give it once.

OpenRouter sends reasoning in a string and a list at once; others send it in a string and, when it is complete, again in
a list, with its signature. Then the open block gets its signature at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.reasoning import FIELDS, LISTS, STRINGS, decode_detail, said
from xenoglot.model.content import Extra, Opaque, Reasoning
from xenoglot.model.events import BlockEnded, Event, ReasoningDelta, SignatureDelta

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from xenoglot.codec.blocks import Blocks
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON

_THOUGHT = Reasoning(text="")


class ReasoningDecoder:
    """Decodes the reasoning of one candidate; its events come out of its `blocks`."""

    __slots__ = ("_blocks", "_candidate", "_count", "_pieces", "_whole", "fields", "is_open")

    def __init__(self, blocks: Blocks, candidate: int) -> None:
        self._blocks = blocks
        self._candidate = candidate
        self._count = 0
        self._pieces: list[str] = []  # of the open thought
        self._whole: Reasoning | None = None  # the open thought with its seal
        self.fields: set[str] = set()  # that ever said anything
        self.is_open = False  # whether the open block is a thought that was said in strings

    def say(self, text: str, fields: list[str]) -> Sequence[Event]:
        """Decode a piece of reasoning in the string fields `fields`."""
        delta = ReasoningDelta(text=text, candidate=self._candidate)
        if self.is_open and self._whole is None:
            self._pieces.append(text)
            return self._blocks.grow(("thought", self._count), delta)
        self._count += 1
        self.fields.update(fields)
        header = _THOUGHT
        if fields != ["reasoning_content"]:
            header = replace(_THOUGHT, extra=Extra(dialect=NAME, form={"fields": fields}))
        events = self.settle(self._blocks.grow(("thought", self._count), delta, header))
        self._pieces = [text]
        self.is_open = True
        return events

    def more(self, text: str) -> Event:
        """Decode a piece of the open reasoning block, whose complete text is not known."""
        self._pieces.append(text)
        return ReasoningDelta(text, None, self._candidate)

    def settle(self, events: list[Event]) -> list[Event]:
        """Return events of the blocks; if the first of them ends the open block, it has the signature."""
        if not self.is_open or not events or type(events[0]) is not BlockEnded:
            return events
        ended = BlockEnded(part=self._whole, candidate=self._candidate)
        self.is_open, self._whole = False, None
        return [ended, *events[1:]]

    def feed(self, delta: Reader) -> list[Event]:
        """Decode the reasoning of a delta; what a list and a string both have is taken from the list.

        Raises:
            WireError: a field is of a wrong type.
        """
        if FIELDS.isdisjoint(delta.rest()):
            return []
        texts = {key: delta.take(key, str) or "" for key in STRINGS if isinstance(delta.peek(key), str)}
        spoken = [key for key, text in texts.items() if text]
        same = [key for key in spoken if texts[key] == texts[spoken[0]]]
        events: list[Event] = []
        for key in LISTS:
            items = [(item, f"{delta.at(key)}[{place}]") for place, item in enumerate(delta.take_if(key, list) or ())]
            parts = [decode_detail(item, path, key) for item, path in items]
            if any(isinstance(part, Reasoning) and (part.text or part.summary) for part in parts):
                self.fields.update(spoken)
                fields, same = same, []
            else:
                fields = []
            for place, part in enumerate(parts):
                events += self._detail(part, self._key(key, place, items[place][0]), fields)
        return [*self.say(texts[same[0]], same), *events] if same else events

    def _key(self, key: str, place: int, item: JSON) -> tuple[Hashable, ...]:
        index = item.get("index")
        return (key, index if isinstance(index, int) else place, str(item.get("type")))

    def _detail(self, part: Reasoning | Opaque, key: tuple[Hashable, ...], fields: list[str]) -> list[Event]:
        """Return the events of one entry of a list."""
        if isinstance(part, Opaque):
            self._count += 1
            return self.settle(self._blocks.open((*key, self._count), part))
        if self.is_open and self._whole is None and said(part) and said(part) == "".join(self._pieces):
            self._whole = _with_fields(part, sorted(self.fields, key=STRINGS.index))
            return []
        if fields:
            part = _with_fields(part, fields)
        header = replace(
            part,
            text=None if part.text is None else "",
            summary=None if part.summary is None else (),
            signature=None,
        )
        deltas = self._deltas(part)
        if not deltas:
            return self.settle(self._blocks.open(key, header)) if part.encrypted is not None else []
        return [event for delta in deltas for event in self.settle(self._blocks.grow(key, delta, header))]

    def _deltas(self, part: Reasoning) -> list[Event]:
        deltas: list[Event] = []
        if part.text:
            deltas.append(ReasoningDelta(text=part.text, candidate=self._candidate))
        if part.summary and part.summary[0]:
            deltas.append(ReasoningDelta(text=part.summary[0], summary=0, candidate=self._candidate))
        if part.signature is not None:
            deltas.append(SignatureDelta(signature=part.signature, candidate=self._candidate))
        return deltas


def _with_fields(part: Reasoning, fields: list[str]) -> Reasoning:
    extra = part.extra or Extra(dialect=NAME)
    return replace(part, extra=replace(extra, form=extra.form | {"fields": fields}))
