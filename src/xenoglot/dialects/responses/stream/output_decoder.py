"""Decodes the output items of a stream: assigns each event to its item.

The wire opens and closes items by name, and may let several grow side by side; here one is open at a time, and what
comes for another waits until that one is done. An item that a server never closes is closed by the end of the answer,
which repeats all items; one that it never opened is opened by its first delta, or emitted whole when it is done.

Source: `openai/types/responses/response_stream_event.py`, and the events of vLLM that differ (`reasoning_part`).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from xenoglot.codec.reader import Reader
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.item_decoder import decode_item
from xenoglot.dialects.responses.stream.item_decoder import OPENINGS, ItemDecoder
from xenoglot.dialects.responses.tool_search import SearchPairs
from xenoglot.model.content import HostedCall, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import OpaqueDelta
from xenoglot.model.fold import unfold_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject

ADDED, DONE = "response.output_item.added", "response.output_item.done"


class OutputDecoder:
    """Decodes the events of one answer's output items."""

    __slots__ = (
        "_answer_id",
        "_count",
        "_done",
        "_done_ids",
        "_done_indexes",
        "_searches",
        "_waiting",
        "open",
        "parts",
    )

    def __init__(self, answer_id: str) -> None:
        self._answer_id = answer_id
        self.open: ItemDecoder | None = None
        self._searches = SearchPairs()
        self.parts: list[Part] = []  # of all items that are done
        self._waiting: OrderedDict[JSON, list[JSONObject]] = (
            OrderedDict()
        )  # events of items that are not open yet, by item
        self._count = 0  # of items that are done
        self._done: list[_Done] = []
        self._done_indexes: set[int] = set()
        self._done_ids: set[str] = set()

    def feed(self, data: JSONObject, kind: str) -> list[Event]:
        """Take an event that names an item, or belongs to the open one.

        Raises:
            WireError: a field is missing or of a wrong type.
        """
        events = self._take(data, kind)
        return [*events, *self._resume()] if self._waiting else events

    def close(self, output: Sequence[JSON]) -> list[Event]:
        """Return the end of all items, given the whole `output` that the end of the answer contains."""
        events: list[Event] = []
        while self.open is not None:
            index = self.open.index
            item = output[index] if index is not None and 0 <= index < len(output) else None
            events += [*self._finish(item if self._is_same(item) else None), *self._resume()]
        for index, item in self._untold(output):
            events += self._whole(item, _ItemKey({"item": item, "output_index": index}))
        return events

    def _resume(self) -> list[Event]:
        """Let the items that waited have their turn, as far as they came."""
        events: list[Event] = []
        while self._waiting and self.open is None:
            for data in self._waiting.popitem(last=False)[1]:
                events += self._take(data, data["type"])
        return events

    def _take(self, data: JSONObject, kind: str) -> list[Event]:
        place = _ItemKey(data)
        if self._is_over(place):
            return []
        if self.open is not None and not self._is_of_open(place):
            self._waiting.setdefault(place.key, []).append(data)
            return []
        return self._step(data, kind, place)

    def _is_over(self, place: _ItemKey) -> bool:
        """Whether the item is done: by its id, where there is one."""
        if place.item_id is not None:
            return place.item_id in self._done_ids
        is_open = self.open is not None and self.open.index == place.index
        return place.index in self._done_indexes and not is_open

    def _is_of_open(self, place: _ItemKey) -> bool:
        """Whether an event is about the open item: its id or its place matches, for either may be unreliable.

        vLLM counts places otherwise in `added` than in what follows, Copilot makes up another id for every event.
        """
        item = self.open
        if item is None:
            return False
        if place.item_id is None and place.index is None:
            return True
        if item.item_id is None and item.index is None:
            return True
        by_id = place.item_id is not None and place.item_id == item.item_id
        return by_id or (place.index is not None and place.index == item.index)

    def _is_same(self, item: JSON) -> bool:
        return self.open is not None and isinstance(item, dict) and item.get("type") == self.open.kind

    def _untold(self, output: Sequence[JSON]) -> list[tuple[int, JSON]]:
        """Return the items that have not been emitted.

        They are known by their ids, if those mean anything, else by their place. OpenRouter repeats some items of an
        answer under other ids: such an item is known by its place, or by its content.
        """
        ids = {_id_of(item) for item in output}
        if not ids & self._done_ids:
            return [(index, item) for index, item in enumerate(output) if index >= self._count]
        renamed = _Renamed(one for one in self._done if one.item_id not in ids)
        return [(index, item) for index, item in enumerate(output) if not self._is_told(index, item, renamed)]

    def _is_told(self, index: int, item: JSON, renamed: _Renamed) -> bool:
        """Whether an item was emitted, under its id or as one of those that have another now."""
        if _id_of(item) in self._done_ids:
            return True
        if not renamed or not isinstance(item, dict):
            return False
        said = _said(decode_item(item, f"$.output[{index}]", self._answer_id))
        return renamed.take(_Done(None, index, str(item.get("type")), said))

    def _step(self, data: JSONObject, kind: str, place: _ItemKey) -> list[Event]:
        item = self.open
        if kind == ADDED:
            return [] if item is not None or place.item is None else self._begin(place.item, place)
        if kind == DONE:
            if place.item is None:
                return [] if item is None else self._finish(None)
            return self._whole(place.item, place) if item is None else self._finish(place.item)
        if item is not None:
            return item.grow(Reader(data), kind, data)
        if kind in OPENINGS:
            begun = self._begin({"type": OPENINGS[kind], "id": place.item_id}, place)
            return [*begun, *self._step(data, kind, place)]
        return [OpaqueDelta(dialect=NAME, data=data, name=kind)]

    def _begin(self, item: JSONObject, place: _ItemKey) -> list[Event]:
        self.open = ItemDecoder(item, place.index, self._answer_id, self._searches)
        return self.open.begin()

    def _finish(self, whole: JSONObject | None) -> list[Event]:
        """Close the open item, given the whole of it if the wire sent it."""
        item, self.open = self.open, None
        if item is None:
            return []
        events = item.end(whole)
        self._note(_Done(item.item_id, item.index, str(item.kind), _said(item.parts)))
        self.parts += item.parts
        return events

    def _whole(self, item: JSONObject, place: _ItemKey) -> list[Event]:
        """Return the events of an item that had no deltas."""
        parts = self._searches.paired(decode_item(item, f"$.output[{place.index or 0}]", self._answer_id))
        self._note(_Done(place.item_id, place.index, str(item.get("type")), _said(parts)))
        self.parts += parts
        return [event for part in parts for event in unfold_part(part)]

    def _note(self, done: _Done) -> None:
        self._count += 1
        self._done.append(done)
        if done.item_id:
            self._done_ids.add(done.item_id)
        if done.place is not None:
            self._done_indexes.add(done.place)


class _Done(NamedTuple):
    """A complete item and the parts decoded from it."""

    item_id: str | None
    place: int | None
    kind: str
    said: tuple[str, ...]


class _Renamed:
    """Complete items whose ids are not in the final event of the answer."""

    __slots__ = ("_by_place", "_by_words")

    def __init__(self, items: Iterable[_Done]) -> None:
        self._by_place: dict[tuple[str, int | None], _Done] = {}
        self._by_words: dict[tuple[str, tuple[str, ...]], list[_Done]] = {}
        for item in items:
            self._by_place[item.kind, item.place] = item
            self._by_words.setdefault((item.kind, item.said), []).append(item)

    def __bool__(self) -> bool:
        return bool(self._by_place)

    def take(self, item: _Done) -> bool:
        """Whether `item` is one of them, by its place or by its content; each is found once."""
        found = self._by_place.pop((item.kind, item.place), None)
        if found is None and any(item.said):
            alike = self._by_words.get((item.kind, item.said), [])
            while alike and found is None:
                one = alike.pop()
                found = self._by_place.pop((one.kind, one.place), None)
        return found is not None


class _ItemKey:
    """Which item an event is about."""

    __slots__ = ("index", "item", "item_id")

    def __init__(self, data: JSONObject) -> None:
        reader = Reader(data)
        self.index = reader.take("output_index", int)
        self.item: JSONObject | None = reader.take("item", dict)
        named = _id_of(self.item)
        self.item_id: str | None = (reader.take_if("item_id", str) if named is None else named) or None

    @property
    def key(self) -> JSON:
        """What the events of one item have in common."""
        return self.item_id if self.index is None else self.index


def _said(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the texts, reasoning and calls of an item."""
    said: list[str] = []
    for part in parts:
        match part:
            case Text(text=text) | Refusal(text=text):
                said.append(text)
            case Reasoning():
                said += [part.text or "", *(part.summary or ())]
            case ToolCall() | HostedCall():
                said += [part.name or part.kind, part.arguments]
            case _:
                pass
    return tuple(said)


def _id_of(item: JSON) -> str | None:
    named = item.get("id") if isinstance(item, dict) else None
    return named if isinstance(named, str) else None
