"""Encodes what tools of a provider do as stream events: the start, progress and end of each item.

A call is reported while it runs: `in_progress` at its start, `searching`, `interpreting` or `generating` when its
arguments are complete, `completed` or `failed` when it is known what came out. Source: `openai/types/responses` of the
official SDK (`response_web_search_call_searching_event.py` and its neighbours).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.dialects.responses.hosted.decoder import CODE, FAILED, FILES, IMAGE, KINDS, LISTING, MCP, WEB
from xenoglot.dialects.responses.hosted.encoder import code_of
from xenoglot.dialects.responses.stream.block_encoder import Block
from xenoglot.model.content import HostedCall, Inline
from xenoglot.model.events import ArgumentsDelta, HostedProgress

if TYPE_CHECKING:
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.dialects.responses.stream.block_encoder import ItemContext
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

_RUNNING: Final = {WEB: "searching", FILES: "searching", CODE: "interpreting", IMAGE: "generating"}


class HostedBlock(Block):
    """A `HostedCall`: the start of an item of type `kind`."""

    def __init__(self, header: HostedCall, kind: str, place: ItemContext, where: str) -> None:
        super().__init__(header, place, where)
        self._kind = kind
        self._runs = False

    def begin(self) -> list[ServerSentEvent]:
        """Return the start of the progress, and the arguments known by then."""
        header = self.growth.header
        text = header.arguments if isinstance(header, HostedCall) else ""
        begun = self.place.event(f"{self._kind}.in_progress")
        return [begun, *(self._first(ArgumentsDelta(text=text)) if text else [])]

    def grow(self, event: Event) -> list[ServerSentEvent]:
        """Take a delta; return what it makes."""
        if not isinstance(event, HostedProgress):
            self.growth.add(event)
        return self.write(event)

    def write(self, event: Event) -> list[ServerSentEvent]:
        """Return what a delta makes that the block has grown by."""
        match event:
            case ArgumentsDelta(text=text) if self._kind == MCP and text:
                return [self.place.event("mcp_call_arguments.delta", delta=text)]
            case HostedProgress():
                return [*self._run(), *self._preview(event)]
            case _:
                return []

    def _run(self) -> list[ServerSentEvent]:
        runs, self._runs = self._runs, True
        word = _RUNNING.get(self._kind)
        return [] if runs or word is None else [self.place.event(f"{self._kind}.{word}")]

    def _preview(self, event: HostedProgress) -> list[ServerSentEvent]:
        if self._kind != IMAGE or not isinstance(event.preview, Inline):
            return []
        told = {"partial_image_b64": event.preview.data, "partial_image_index": event.index or 0}
        return [self.place.event(f"{IMAGE}.partial_image", **told)]

    def _finish(self, part: Part) -> list[ServerSentEvent]:
        arguments = part.arguments if isinstance(part, HostedCall) else ""
        told: list[ServerSentEvent] = []
        if self._kind == MCP:
            told = [self.place.event("mcp_call_arguments.done", arguments=arguments or "{}")]
        elif self._kind == CODE and arguments:
            code = code_of(arguments)
            told = [
                self.place.event("code_interpreter_call_code.delta", delta=code),
                self.place.event("code_interpreter_call_code.done", code=code),
            ]
        return [*told, *self._run()]


def ended(item: JSONObject, place: ItemContext) -> list[ServerSentEvent]:
    """Return the end of the progress of a complete item, before the item itself; nothing for other items."""
    kind = item.get("type")
    if kind == LISTING:
        word = FAILED if item.get("error") is not None else "completed"
        return [place.event(f"{kind}.in_progress"), place.event(f"{kind}.{word}")]
    if kind not in KINDS:
        return []
    failed = item.get("status") == FAILED and kind == MCP
    return [place.event(f"{kind}.{FAILED if failed else 'completed'}")]
