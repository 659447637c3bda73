"""Context edits of a request (`context_management`, `compaction`), and compaction blocks.

Sources: `anthropic/types/beta/beta_context_management_config_param.py`, `beta_compact_20260112_edit_param.py`,
`beta_clear_tool_uses_20250919_edit_param.py`, `beta_clear_thinking_20251015_edit_param.py`,
`beta_compaction_config_param.py` and `beta_compaction_block.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.compacted_history import is_of, seal, unseal
from xenoglot.dialects.messages.extras import NAME, encode_cache, take_cache, with_rest, with_said
from xenoglot.model.content import CompactedHistory, Extra, Opaque, Origin
from xenoglot.model.context import AppliedEdit, ClearThinking, ClearToolUses, Compact, ContextEdit, ContextManagement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

COMPACTION: Final = "compaction"
COMPACT: Final = "compact_20260112"
CLEAR_TOOL_USES: Final = "clear_tool_uses_20250919"
CLEAR_THINKING: Final = "clear_thinking_20251015"

_SUMMARIZE: Final = "summarize"
"""The only `compaction.type`: the answer is a compaction block, alone."""

_UNREADABLE: Final = "The conversation was compacted; the summary is in `encrypted_content`."
"""The content of a block whose summary only another server can read: without content it would be a failed one."""

_APPLIED: Final = {
    "tool_uses": (CLEAR_TOOL_USES, "cleared_tool_uses"),
    "thinking": (CLEAR_THINKING, "cleared_thinking_turns"),
}


def take_management(reader: Reader, key: str, form: JSONObject) -> ContextManagement | None:
    """Take `context_management`; one without a list of edits stays in the rest."""
    value = reader.peek(key)
    edits = value.get("edits") if isinstance(value, dict) else None
    if not isinstance(edits, list) or not edits or not all(isinstance(edit, dict) for edit in edits):
        return None
    inner = Reader(reader.take(key, dict), reader.at(key))
    inner.take("edits", list)
    path = inner.at("edits")
    form["edits"] = len(edits)
    return ContextManagement(
        edits=tuple(_edit(edit, f"{path}[{at}]") for at, edit in enumerate(edits)), extra=inner.extra(NAME)
    )


def with_compaction(reader: Reader, request: Request) -> Request:
    """Return `request` with the wish of its field `compaction`; one of an unknown type stays in the rest."""
    value = reader.peek(COMPACTION)
    if not isinstance(value, dict) or value.get("type") != _SUMMARIZE:
        return request
    inner = Reader(reader.take(COMPACTION, dict), reader.at(COMPACTION))
    inner.take("type", str)
    edit = Compact(now=True, instructions=inner.take("instructions", str), extra=inner.extra(NAME))
    context = request.context_management or ContextManagement()
    return replace(request, context_management=replace(context, edits=(*context.edits, edit)))


def resumed(request: Request) -> Request:
    """Return `request`, whose messages hold a compaction block, marked so."""
    context = request.context_management or ContextManagement()
    return replace(request, context_management=replace(context, resumes=True))


def _edit(edit: JSONObject, path: str) -> ContextEdit:
    kind, reader = edit.get("type"), Reader(edit, path)
    if kind not in (COMPACT, CLEAR_TOOL_USES, CLEAR_THINKING):
        return Opaque(dialect=NAME, data=edit)
    reader.take("type", str)
    if kind == COMPACT:
        return _compact(reader)
    return _clear_tools(reader) if kind == CLEAR_TOOL_USES else _clear_thinking(reader)


def _compact(reader: Reader) -> Compact:
    tokens = _measure(reader, "trigger", "input_tokens")
    instructions, pause = reader.take("instructions", str), reader.take("pause_after_compaction", bool)
    return Compact(trigger_tokens=tokens, instructions=instructions, pause=pause, extra=reader.extra(NAME))


def _clear_tools(reader: Reader) -> ClearToolUses:
    inputs = reader.peek("clear_tool_inputs")
    return ClearToolUses(
        trigger_tokens=_measure(reader, "trigger", "input_tokens"),
        trigger_calls=_measure(reader, "trigger", "tool_uses"),
        keep=_measure(reader, "keep", "tool_uses"),
        clear_at_least=_measure(reader, "clear_at_least", "input_tokens"),
        exclude=reader.strings("exclude_tools"),
        inputs=reader.strings("clear_tool_inputs")
        if isinstance(inputs, list)
        else reader.take("clear_tool_inputs", bool),
        extra=reader.extra(NAME),
    )


def _clear_thinking(reader: Reader) -> ClearThinking:
    keep = reader.peek("keep")
    if keep == "all":
        reader.take("keep", str)
        return ClearThinking(keep="all", extra=reader.extra(NAME))
    if keep == {"type": "all"}:
        reader.take("keep", dict)
        return ClearThinking(keep="all", extra=reader.extra(NAME, keep="object"))
    return ClearThinking(keep=_measure(reader, "keep", "thinking_turns"), extra=reader.extra(NAME))


def _measure(reader: Reader, key: str, kind: str) -> int | None:
    """Take an object of a `type` and a `value`; one of another type or with more to it stays in the rest."""
    match reader.peek(key):
        case {"type": str() as found, "value": value} as given if found == kind and len(given) == 2:  # noqa: PLR2004
            if type(value) is int and value >= 0:
                reader.take(key, dict)
                return value
    return None


def encode_management(context: ContextManagement, _form: JSONObject, crossing: EncodeContext) -> JSON:
    """Return `context_management`; a compaction at once is the field `compaction`."""
    edits: list[JSON] = []
    for at, edit in enumerate(context.edits):
        where = f"$.context_management.edits[{at}]"
        if isinstance(edit, Opaque) and edit.dialect != NAME:
            crossing.losses.dropped(where, "edit", "the dialect has no such edit")
        elif not (isinstance(edit, Compact) and edit.now):
            edits.append(_encode_edit(edit, where, crossing.losses))
    own: JSONObject = {"edits": edits} if edits else {}
    return with_rest(own, context.extra, "$.context_management", crossing.losses) or None


def _encode_edit(edit: ContextEdit, where: str, losses: Losses) -> JSON:
    if isinstance(edit, Opaque):
        return edit.data
    own: JSONObject
    match edit:
        case Compact():
            own = with_said({"type": COMPACT}, trigger=_measured("input_tokens", edit.trigger_tokens))
            with_said(own, instructions=edit.instructions, pause_after_compaction=edit.pause)
        case ClearToolUses():
            tokens, calls = (
                _measured("input_tokens", edit.trigger_tokens),
                _measured("tool_uses", edit.trigger_calls),
            )
            own = with_said(
                {"type": CLEAR_TOOL_USES},
                trigger=tokens or calls,
                keep=_measured("tool_uses", edit.keep),
                clear_at_least=_measured("input_tokens", edit.clear_at_least),
                exclude_tools=None if edit.exclude is None else list(edit.exclude),
                clear_tool_inputs=list(edit.inputs) if isinstance(edit.inputs, tuple) else edit.inputs,
            )
        case ClearThinking(keep="all"):
            word = {"type": "all"} if form_of(edit.extra, NAME).get("keep") == "object" else "all"
            own = {"type": CLEAR_THINKING, "keep": word}
        case ClearThinking(keep=keep):
            own = with_said({"type": CLEAR_THINKING}, keep=_measured("thinking_turns", keep))
    return with_rest(own, edit.extra, where, losses)


def _measured(kind: str, value: JSON) -> JSONObject | None:
    return None if value is None else {"type": kind, "value": value}


def encode_compaction(request: Request, losses: Losses) -> JSONObject:
    """Return the field `compaction` of a request for a compaction at once, if it is one."""
    context = request.context_management
    for at, edit in enumerate(() if context is None else context.edits):
        if isinstance(edit, Compact) and edit.now:
            own = with_said({"type": _SUMMARIZE}, instructions=edit.instructions)
            return {COMPACTION: with_rest(own, edit.extra, f"$.context_management.edits[{at}]", losses)}
    return {}


def read_block(reader: Reader) -> CompactedHistory:
    """Return the summary in a compaction block."""
    encrypted = reader.take("encrypted_content", str)
    sealed = None if encrypted is None else unseal(encrypted, reader.at("encrypted_content"))
    text, signature, cache = reader.take("content", str), reader.take("signature", str), take_cache(reader)
    if sealed is not None:
        extra = reader.extra(NAME, sealed=encrypted, content=text)
        return replace(sealed, cache=cache, extra=extra)
    return CompactedHistory(
        text=text,
        encrypted=encrypted,
        signature=signature,
        origin=Origin(dialect=NAME),
        cache=cache,
        extra=reader.extra(NAME),
    )


def write_block(part: CompactedHistory, where: str, losses: Losses, *, home: bool) -> JSONObject:
    """Return the compaction block of a summary."""
    own: JSONObject = {"type": COMPACTION}
    form = form_of(part.extra, NAME)
    if "sealed" in form:
        with_said(own, content=form.get("content"), encrypted_content=form["sealed"])
    elif part.origin is None or is_of(part, NAME):
        with_said(own, content=part.text, encrypted_content=part.encrypted, signature=part.signature)
    else:
        losses.emulated(where, "seal", f"only {part.origin.dialect} can open it; packed to come back")
        with_said(own, content=part.text or _UNREADABLE, encrypted_content=seal(part))
    if "content" not in own and (part.extra is None or "content" not in part.extra.fields):
        own["content"] = None
    if part.id is not None:
        losses.dropped(where, "id", "a block has none")
    if part.cache is not None:
        own["cache_control"] = encode_cache(part.cache, where, losses, home=home)
    return with_rest(own, part.extra, where, losses)


def applied_edits(edits: Sequence[AppliedEdit]) -> Extra:
    """Return the field that reports the edits that were applied to a request."""
    told: list[JSON] = []
    for edit in edits:
        kind, counted = _APPLIED[edit.kind]
        told.append({"type": kind, counted: edit.count, "cleared_input_tokens": edit.tokens})
    return Extra(dialect=NAME, fields={"context_management": {"applied_edits": told}})
