"""Wishes to compact the context: the field `context_management`, and the item `compaction_trigger`.

Source: `ContextManagement` in `openai/types/responses/response_create_params.py`, `CompactionTrigger` in
`response_input_item_param.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.dialects.responses.item_decoder import COMPACTION
from xenoglot.model.content import Opaque
from xenoglot.model.context import ClearThinking, ClearToolUses, Compact, ContextEdit, ContextManagement

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

TRIGGER: Final = "compaction_trigger"
"""The type of the last item of an input that asks for a compaction, and for nothing else."""


def take_management(reader: Reader, key: str, form: JSONObject) -> ContextManagement | None:
    """Take the list of wishes; anything but a list of objects stays in the rest."""
    value = reader.peek(key)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return None
    reader.take(key, list)
    if not value:
        form[key] = value
        return None
    return ContextManagement(edits=tuple(_edit(entry, f"{reader.at(key)}[{at}]") for at, entry in enumerate(value)))


def _edit(entry: JSONObject, path: str) -> ContextEdit:
    if entry.get("type") != COMPACTION:
        return Opaque(dialect=NAME, data=entry)
    reader = Reader(entry, path)
    reader.take("type", str)
    return Compact(trigger_tokens=reader.take("compact_threshold", int), extra=extra_of(reader, {}))


def decode_trigger(item: JSONObject, path: str) -> Compact:
    """Return the wish of a trigger item."""
    reader = Reader(item, path)
    reader.take("type", str)
    return Compact(now=True, extra=extra_of(reader, {}))


def managed(request: Request, trigger: Compact | None, *, resumes: bool) -> Request:
    """Return `request` with the wishes in its input."""
    context = request.context_management or ContextManagement()
    edits = context.edits if trigger is None else (*context.edits, trigger)
    return replace(request, context_management=replace(context, edits=edits, resumes=resumes))


def encode_management(context: ContextManagement, form: JSONObject, crossing: EncodeContext) -> JSON:
    """Return the list of wishes; what the dialect has no wish for is dropped."""
    own_fields(context.extra, "$.context_management", crossing.losses)
    entries: list[JSON] = []
    for at, edit in enumerate(context.edits):
        where = f"$.context_management.edits[{at}]"
        match edit:
            case Compact(now=False):
                entries.append(_entry(edit, where, crossing.losses))
            case Opaque(dialect=dialect, data=data) if dialect == NAME:
                entries.append(data)
            case Opaque() | ClearToolUses() | ClearThinking():
                _drop(edit, where, crossing.losses)
            case _:
                pass  # a trigger is an item of the input
    return entries or form.get("context_management")


def _entry(edit: Compact, where: str, losses: Losses) -> JSONObject:
    _note_options(edit, where, losses)
    entry: JSONObject = {"type": COMPACTION, **own_fields(edit.extra, where, losses)}
    if edit.trigger_tokens is not None:
        entry["compact_threshold"] = edit.trigger_tokens
    return entry


def triggers(request: Request, losses: Losses) -> list[JSONObject]:
    """Return the items at the end of the input that ask for a compaction."""
    context = request.context_management
    items: list[JSONObject] = []
    for at, edit in enumerate(() if context is None else context.edits):
        if isinstance(edit, Compact) and edit.now:
            where = f"$.context_management.edits[{at}]"
            _note_options(edit, where, losses)
            items.append({"type": TRIGGER, **own_fields(edit.extra, where, losses)})
    return items


def _note_options(edit: Compact, where: str, losses: Losses) -> None:
    if edit.instructions is not None:
        losses.dropped(where, "instructions", "the server writes the summary by its own")
    if edit.pause:
        losses.dropped(where, "pause", "the answer continues after the summary")


def _drop(edit: Opaque | ClearToolUses | ClearThinking, where: str, losses: Losses) -> None:
    if isinstance(edit, ClearThinking) and edit.keep == "all":
        return
    kind = "clear_tool_uses" if isinstance(edit, ClearToolUses) else "clear_thinking"
    losses.dropped(where, "edit" if isinstance(edit, Opaque) else kind, "the dialect has no such edit")
