"""Encodes the items of an answer as stream events: each is added, grows, and is sent complete at its end.

Texts that stand together are contents of one message, which is done when something else begins. The whole of an item is
written by the encoder of whole answers, so streamed or not it is the same item under the same id.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from xenoglot.codec.loss import Losses, form_of
from xenoglot.dialects.responses.client_calls import call_kind
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.hosted.decoder import IMAGE, KINDS
from xenoglot.dialects.responses.hosted.encoder import has_result, is_result_of, item_type, paired
from xenoglot.dialects.responses.item_decoder import BODIES, COMPACTION
from xenoglot.dialects.responses.item_encoder import begins_item, encode_item
from xenoglot.dialects.responses.response import WHERE
from xenoglot.dialects.responses.stream.block_encoder import (
    Block,
    CallBlock,
    CompactionBlock,
    ContentBlock,
    ImageBlock,
    ItemContext,
    ReasoningBlock,
    TextBlock,
    contents_of,
    is_content,
    unsaid,
)
from xenoglot.dialects.responses.stream.hosted_block import HostedBlock, ended
from xenoglot.model.content import CompactedHistory, HostedCall, HostedResult, Image, Reasoning, Refusal, Text, ToolCall

if TYPE_CHECKING:
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.dialects.responses.stream.event_writer import EventWriter
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event, OpaqueDelta, Piece
    from xenoglot.model.json import JSONObject


class ItemStreamEncoder:
    """Encodes the items of one answer; `output` are complete items, `parts` all complete parts."""

    __slots__ = (
        "_answer_id",
        "_apart",
        "_block",
        "_events",
        "_held",
        "_holds",
        "_losses",
        "_place",
        "_spoken",
        "_where",
        "output",
        "parts",
    )

    def __init__(self, answer_id: str, events: EventWriter, losses: Losses) -> None:
        self._answer_id = answer_id
        self._events = events
        self._losses = losses
        self._place: ItemContext | None = None  # of the open item, once it has been added
        self._spoken: list[Part] = []  # of the open item
        self._where: list[str] = []
        self._block: Block | None = None
        # calls next to the open one, and their results: one item is open at a time
        self._held: deque[Part] = deque()
        self._holds = False  # whether the open block will be one of them
        self._apart = False  # whether results among them may not follow their calls
        self.output: list[JSONObject] = []
        self.parts: list[Part] = []

    def frame(self, piece: Piece) -> bytes | None:
        """Return the frame of a piece of text for the open block; `None` if it takes none."""
        block = self._block
        return None if block is None or type(piece) is not block.grows else block.frame(piece)

    def begin(self, part: Part) -> list[ServerSentEvent]:
        """Return the start of a block, and of the item it is in; before it the end of the item before."""
        if isinstance(part, HostedCall | HostedResult) and self._is_beside(part):
            self._holds, self._block = True, Block(part, ItemContext(0, self._losses, self._events), "")
            return []
        beside = isinstance(part, HostedCall | HostedResult)
        events = self._release() if self._held and not beside else []
        if not self._spoken or begins_item(part, self._spoken[-1]):
            events += self._end_item()
        return [*events, *self._begin(part)]

    def _begin(self, part: Part) -> list[ServerSentEvent]:
        self._spoken.append(part)
        self._where.append(f"{WHERE}.content[{len(self.parts)}]")
        added = self._add(part) if _begins_at_once(part) else []
        self._block = self._open(part, self._where[-1])
        return [*added, *self._block.begin()]

    def grow(self, event: Event) -> list[ServerSentEvent]:
        """Return what a delta of the open block makes."""
        return [] if self._block is None else self._block.grow(event)

    def end(self, whole: Part | None) -> list[ServerSentEvent]:
        """Return the end of a block; its item may continue."""
        if self._block is None:
            return []
        block, self._block = self._block, None
        part = block.whole(whole)
        if self._holds:
            self._holds = False
            self._held.append(part)
            self._apart = True
            return []
        self._spoken[-1] = part
        self.parts.append(part)
        added = self._add(part) if contents_of(part, self._where[-1], Losses()) else []
        if self._place is not None:
            block.place = self._place
        events = [*added, *block.end(part)]
        return [*events, *self._next()] if self._held else events

    def _is_beside(self, part: HostedCall | HostedResult) -> bool:
        """Whether `part` is of another call than the open one, whose result may still have to be written."""
        call = self._spoken[0] if len(self._spoken) == 1 else None
        return call is not None and has_result(call) and not is_result_of(part, call)

    def _next(self) -> list[ServerSentEvent]:
        """Return what was held back and has its turn: the next call, and what came out of it if that is known."""
        events: list[ServerSentEvent] = []
        while self._held and not (len(self._spoken) == 1 and has_result(self._spoken[0])):
            if self._apart:
                self._held, self._apart = deque(paired(self._held)), False
            events += self._write(self._held.popleft())
            if self._held and is_result_of(self._held[0], self._spoken[-1]):
                events += self._write(self._held.popleft())
        return events

    def _release(self) -> list[ServerSentEvent]:
        """Return all that was held back."""
        held, self._held = paired(self._held), deque()
        return [event for part in held for event in self._write(part)]

    def _write(self, part: Part) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        if not self._spoken or begins_item(part, self._spoken[-1]):
            events += self._end_item()
        held, self._held = self._held, deque()
        events += [*self._begin(unsaid(part)), *self.end(part)]
        self._held = held
        return events

    def end_item(self, *, cut: bool = False) -> list[ServerSentEvent]:
        """Return the end of all that was begun; `cut` is set if the answer ended in the last of it."""
        events = self._release() if self._held else []
        return [*events, *self._end_item(cut=cut)]

    def _end_item(self, *, cut: bool = False) -> list[ServerSentEvent]:
        spoken, where, place = self._spoken, self._where, self._place
        self._spoken, self._where, self._place = [], [], None
        if not spoken:
            return []
        index = len(self.output)
        item = encode_item(spoken, self._answer_id, index, where, self._losses, cut=cut)
        if item is None:
            return []
        self.output.append(item)
        events: list[ServerSentEvent] = []
        if place is None:
            events.append(self._events.event("response.output_item.added", output_index=index, item=_opening(item)))
            events += self._commands(item, index)
        events += ended(item, place or self._context(item, index))
        return [*events, self._events.event("response.output_item.done", output_index=index, item=item)]

    def _commands(self, item: JSONObject, index: int) -> list[ServerSentEvent]:
        """Return the commands of a `shell_call` as they would have grown."""
        commands = item["action"]["commands"] if item.get("type") == "shell_call" else ()
        events: list[ServerSentEvent] = []
        for at, command in enumerate(commands):
            for step, key, text in (
                ("added", "command", ""),
                ("delta", "delta", command),
                ("done", "command", command),
            ):
                place: JSONObject = {"output_index": index, "command_index": at, key: text}
                events.append(self._events.event(f"response.shell_call_command.{step}", **place))
        return events

    def pulse(self) -> ServerSentEvent | None:
        """Return a delta that adds nothing to what grows; `None` if nothing does."""
        shape = None if self._block is None else self._block.pulse
        return None if shape is None else self._events.piece(shape, "")

    def so_far(self) -> list[JSONObject]:
        """Return the items as a client has put them together from what was written."""
        told = self._told()
        if self._place is None or not told:
            return [*self.output]
        item = encode_item(told, self._answer_id, self._place.index, self._where[: len(told)], Losses()) or {}
        grown = told[0]
        state: JSONObject = {"status": "in_progress"} if "status" in item else {}
        if isinstance(grown, ToolCall) and call_kind(grown) is None:
            state[BODIES[str(item["type"])]] = grown.arguments
        return [*self.output, {key: value for key, value in (item | state).items() if key != "encrypted_content"}]

    def _told(self) -> list[Part]:
        """Return the parts of the open item as far as they were written."""
        if self._block is None:
            return self._spoken
        growing = [] if isinstance(self._block, ContentBlock) else [self._block.growth.part()]
        return [*self._spoken[:-1], *growing]

    def carry(self, event: OpaqueDelta) -> list[ServerSentEvent]:
        """Return an event that only its own dialect understands, if that is this one."""
        data = event.data
        kind = data.get("type", event.name) if event.dialect == NAME and isinstance(data, dict) else None
        if not isinstance(kind, str):
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return []
        place = self._place
        here = {} if place is None else {"output_index": place.index, "item_id": place.item_id}
        moved = data | {key: value for key, value in here.items() if key in data}
        return [self._events.again(kind, moved)]

    def _context(self, item: JSONObject, index: int) -> ItemContext:
        """Return the context of an item that is written whole."""
        place = ItemContext(index, self._losses, self._events)
        place.item_id = str(item.get("id") or "")
        return place

    def _add(self, part: Part) -> list[ServerSentEvent]:
        """Return the event that opens the item of `part`, unless it is open or has no content left."""
        item = encode_item([unsaid(part)], self._answer_id, len(self.output), self._where[-1:], Losses())
        if item is None or self._place is not None:
            return []
        self._place = ItemContext(len(self.output), self._losses, self._events)
        return [self._place.add(_opening(item), self._answer_id)]

    def _open(self, part: Part, where: str) -> Block:  # noqa: PLR0911  one for each kind
        place = self._place or ItemContext(len(self.output), self._losses, self._events)
        match part:
            case Text() | Refusal() if _grows(part):
                return TextBlock(part, place, where)
            case ToolCall() if call_kind(part) is None:
                return CallBlock(part, place, where)
            case Reasoning():
                return ReasoningBlock(part, place, where)
            case Image() if not is_content(part):
                return ImageBlock(part, place, where)
            case HostedCall() if part.kind != "tool_search":
                return HostedBlock(part, item_type(part), place, where)
            case CompactedHistory():
                return CompactionBlock(part, place, where)
            case _ if is_content(part):
                return ContentBlock(part, place, where)
            case _:
                return Block(part, place, where)


def _begins_at_once(part: Part) -> bool:
    """Whether the item of `part` is added at its start; what a stranger's call of a tool is shows at its end."""
    if isinstance(part, ToolCall) and call_kind(part) is not None:
        return "item" in form_of(part.extra, NAME)
    return not is_content(part) or _grows(part)


def _grows(part: Part) -> bool:
    """Whether `part` is a content that has a beginning; others are sent whole, if at all."""
    return isinstance(part, (Text, Refusal)) and bool(contents_of(unsaid(part), "", Losses()))


def _opening(item: JSONObject) -> JSONObject:
    """Return an item as it is added, before it has any content."""
    bare: JSONObject = {"status": "in_progress"} if "status" in item else {}
    match item.get("type", "message"):
        case "message":
            bare["content"] = []
        case "reasoning":
            item = {key: value for key, value in item.items() if key not in ("content", "encrypted_content")}
            bare["summary"] = []
        case "function_call" | "custom_tool_call" as kind:
            bare[BODIES[kind]] = ""
        case kind if kind == IMAGE and isinstance(item.get("result"), str):
            bare["result"] = None
        case "tool_search_call":
            bare["arguments"] = {}
        case kind if kind == COMPACTION:
            bare["encrypted_content"] = ""
        case kind if kind in KINDS:
            pass  # a call says nothing yet
        case "shell_call":
            bare["action"] = {**item["action"], "commands": []}
        case _:
            return item
    return item | bare
