"""Encodes parts as items, in the output of an answer and in the history of a request.

Parts that a message can hold and that stand together become one message item; every other part is an item of its own.
An item that came in this dialect is written as it came, with its id; in an answer, one of a stranger gets an id derived
from that of the answer and its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.compacted_history import is_of, seal
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.requests.names import fit
from xenoglot.codec.responses.reasoning import pack
from xenoglot.codec.target import Target
from xenoglot.dialects.responses.client_calls import CALLS, call_kind, encode_client_call
from xenoglot.dialects.responses.extras import NAME, own_fields
from xenoglot.dialects.responses.fast.frequent_shapes import ID_LIMIT, NO_ARGUMENTS
from xenoglot.dialects.responses.hosted.decoder import CODE, FILES, IMAGE, MCP, WEB
from xenoglot.dialects.responses.hosted.encoder import encode_hosted, grouped, is_result_of
from xenoglot.dialects.responses.item_decoder import BODIES, COMPACTION, JOINT
from xenoglot.dialects.responses.output_text import ITEM
from xenoglot.dialects.responses.parts import encode_said
from xenoglot.dialects.responses.tool_search import SEARCH_OUTPUT
from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    Extra,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    WEB: "ws",
    FILES: "fs",
    CODE: "ci",
    MCP: "mcp",
    IMAGE: "ig",
    **{call: kind.prefix for call, kind in CALLS.items()},
    SEARCH_OUTPUT: "tso",
    COMPACTION: "cmp",
}
"""How the ids of items begin; OpenAI refuses a `message` whose id begins otherwise, and so on (pitfall-74)."""

_SAID = (Text, Refusal, Image, Audio, File)


def encode_output(parts: Sequence[Part], answer_id: str, losses: Losses, *, cut: bool = False) -> list[JSONObject]:
    """Return the output items of an answer; if the answer was `cut`, the last is incomplete."""
    items: list[JSONObject] = []
    parts = grouped(parts)
    for start, end in spans(parts):
        wheres = [f"$.candidates[0].content[{at}]" for at in range(start, end)]
        ended = cut and end == len(parts)
        item = encode_item(parts[start:end], answer_id, len(items), wheres, losses, cut=ended)
        if item is not None:
            items.append(item)
    return items


def spans(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Return where each item begins and ends in `parts`."""
    starts = [index for index, part in enumerate(parts) if begins_item(part, parts[index - 1] if index else None)]
    return list(zip(starts, [*starts[1:], len(parts)], strict=True)) if parts else []


def begins_item(part: Part, before: Part | None) -> bool:
    """Whether `part` is not one more content of the message that `before` belongs to."""
    if before is None or not (_is_said(part) and _is_said(before)):
        return before is None or not is_result_of(part, before)
    if isinstance(part, Opaque):
        return part.dialect == NAME and "role" in part.data
    return "item" in _form(part)


def encode_item(  # noqa: PLR0913  what an item is made of
    parts: Sequence[Part], answer_id: str, place: int, wheres: Sequence[str], losses: Losses, *, cut: bool = False
) -> JSONObject | None:
    """Return the item of an answer that `parts` are (as `spans` groups them), or `None` if no content is left.

    `place` is its index in the output, `wheres` are the paths of the parts; `cut` is set if the answer ended in it.
    """
    encoder = ItemEncoder(EncodeContext(losses, Target(), home=True), answer=True)
    item = encoder.item(parts, wheres)
    if item is not None and not _is_own(parts[0]):
        kind = item["type"]
        status = "incomplete" if cut else "completed"
        state = {} if kind == COMPACTION else {"status": status}
        item = {"type": kind, "id": item_id(kind, answer_id, place), **state, **item}
    return item


def item_id(kind: str, answer_id: str, place: int) -> str:
    """Return the id of an item of type `kind`: the same for the same answer and place."""
    answer = answer_id.removeprefix("resp_")
    return fit("_".join(filter(None, (PREFIXES.get(kind, "item"), answer, str(place)))), ID_LIMIT)


class ItemEncoder:
    """Encodes model output as items: for a client (`answer`), or back to a server."""

    __slots__ = ("_answer", "_crossing", "_losses")

    def __init__(self, crossing: EncodeContext, *, answer: bool) -> None:
        self._crossing = crossing
        self._losses = crossing.losses
        self._answer = answer

    def item(self, parts: Sequence[Part], wheres: Sequence[str]) -> JSONObject | None:  # noqa: PLR0911  one for each kind
        """Return the item that `parts` are, without the id and the status that an answer gives to a stranger's."""
        part, where = parts[0], wheres[0]
        match part:
            case Reasoning():
                return self._reasoning(part, where)
            case ToolCall():
                return self._call(part, where)
            case ToolResult():
                self._losses.dropped(where, "tool_result", "model output holds no tool results")
                return None
            case HostedCall() | HostedResult():
                return encode_hosted(parts, wheres, self._losses)
            case CompactedHistory():
                return self._compaction(part, where)
            case Opaque() if not _is_said(part):
                return part.data  # type: ignore[no-any-return]
            case Image() if self._answer and is_generated(part):
                return self._image(part, where)
            case _:
                return self._message(parts, wheres)

    def _message(self, parts: Sequence[Part], wheres: Sequence[str]) -> JSONObject | None:
        content = [item for part, where in zip(parts, wheres, strict=True) for item in self._contents(part, where)]
        first = parts[0]
        if isinstance(first, Opaque) and first.dialect == NAME:
            return {**first.data, "content": content}
        mark, own = self._mark(first), self._item_fields(first)
        if mark:
            kind = {"type": "message"} if mark["type"] else {}
            said: JSONObject = {key: mark[key] for key in ("id", "status", "role") if key in mark}
            return {**kind, **said, **_spelled(content, mark.get("content")), **own}
        if not content:
            return None
        if self._answer:
            return {"type": "message", "role": "assistant", "content": content}
        alone = content[0] if len(content) == 1 and _is_plain(content[0]) else None
        return {"type": "message", "role": "assistant", "content": content if alone is None else alone["text"]}

    def _contents(self, part: Part, where: str) -> list[JSONObject]:
        if isinstance(part, Opaque) and part.dialect == NAME:
            contents: list[JSONObject] = part.data["content"]
            return contents
        encoded = encode_said(part, where, self._crossing, answer=self._answer)
        return [] if encoded is None else [encoded]

    def _image(self, part: Image, where: str) -> JSONObject | None:
        """Return an image of another dialect as the result of a tool that makes images (`ImageGenerationCall`)."""
        if not isinstance(part.source, Inline):
            self._losses.dropped(where, "image", "only inline data can be written")
            return None
        self._losses.emulated(where, "image", f"written as an item `{IMAGE}`")
        own_fields(part.extra, where, self._losses)
        return {"type": IMAGE, "result": part.source.data}

    def _mark(self, part: Part) -> JSONObject:
        """Return what is kept of the item that begins with `part`; empty if it is a stranger's."""
        mark: JSONObject = _form(part).get("item", {}) if self._crossing.home else {}
        return mark

    def _item_fields(self, part: Part) -> JSONObject:
        extra = _extra(part)
        if extra is None or extra.dialect != NAME:
            return {}
        return {key.removeprefix(ITEM): value for key, value in extra.fields.items() if key.startswith(ITEM)}

    def _call(self, call: ToolCall, where: str) -> JSONObject:
        if (ours := call_kind(call)) is not None:
            item = encode_client_call(call, ours, self.call_id(call.id, where), where, self._losses)
            if item is not None:
                return item
        kind = "function_call" if call.kind == "function" else "custom_tool_call"
        mark, own = self._mark(call), own_fields(call.extra, where, self._losses)
        if call.cache is not None:
            self._losses.dropped(where, "cache", "a call takes no cache mark")
        item = {"type": kind}
        if mark and call.item_id is not None:
            item["id"] = call.item_id
        if "status" in mark:
            item["status"] = mark["status"]
        if "call_id" not in _form(call):
            item["call_id"] = self.call_id(call.id, where)
        if call.namespace is not None:
            item["namespace"] = call.namespace
        item["name"] = call.name if mark or self._answer else fitted_name(call.name, where, self._crossing)
        return {**item, **_arguments(call, BODIES[kind], ours=bool(mark)), **own}

    def call_id(self, call_id: str, where: str) -> str:
        """Return the id of a call as the server takes it, alike on its result (pitfall-42); in an answer as it is."""
        fitted = call_id if self._crossing.home else fit(call_id, ID_LIMIT)
        if fitted != call_id:
            self._losses.emulated(where, "id", "fitted to what servers take, alike on call and result")
        return fitted

    def _reasoning(self, part: Reasoning, where: str) -> JSONObject | None:
        if not self._answer and not self._may_return(part):
            self._losses.dropped(where, "reasoning", "the server accepts only its own reasoning")
            return None
        form, own = _form(part), own_fields(part.extra, where, self._losses)
        mark = self._mark(part)
        item: JSONObject = {"type": "reasoning"}
        named = part.id is not None and (bool(mark) or (not self._answer and part.id.startswith("rs_")))
        if named:
            item["id"] = part.id
        if "status" in mark:
            item["status"] = mark["status"]
        summary, content = _thoughts(part, form)
        if not (part.summary is None and ("bare" in form or "summary" in own)):
            item["summary"] = summary
        if content is not None:
            item["content"] = content
        return {**item, **self._seal(part, form, where), **own}

    def _compaction(self, part: CompactedHistory, where: str) -> JSONObject:
        form, own, mark = _form(part), own_fields(part.extra, where, self._losses), self._mark(part)
        item: JSONObject = {"type": COMPACTION}
        if mark and part.id is not None:
            item["id"] = part.id
        if "status" in mark:
            item["status"] = mark["status"]
        if part.cache is not None:
            self._losses.dropped(where, "cache", "a compaction takes no cache mark")
        if "encrypted_content" in form:
            return {**item, "encrypted_content": form["encrypted_content"], **own}
        if is_of(part, NAME) and part.encrypted is not None:
            return {**item, "encrypted_content": part.encrypted, **own}
        self._losses.emulated(where, "seal", "the summary is packed into `encrypted_content`, to come back")
        return {**item, "encrypted_content": seal(part), **own}

    def _seal(self, part: Reasoning, form: JSONObject, where: str) -> JSONObject:
        if "encrypted_content" in form:
            return {"encrypted_content": form["encrypted_content"]}
        if part.signature is None and part.encrypted is None:
            return {}
        ours = part.origin is not None and part.origin.dialect == NAME
        if not ours and part.origin is not None:
            self._losses.emulated(where, "seal", f"only {part.origin.dialect} can open it; wrapped to come back")
            return {"encrypted_content": pack(part)}
        if part.signature is not None:
            self._losses.dropped(where, "signature", "the dialect has encrypted content alone")
        if not ours and part.encrypted is not None:
            self._losses.dropped(where, "encrypted", "its origin is unknown")
        return {"encrypted_content": part.encrypted} if ours and part.encrypted is not None else {}

    def _may_return(self, part: Reasoning) -> bool:
        """Whether the server can accept this reasoning: it encrypted it, or only the client can know (pitfall-58)."""
        origin, provider = part.origin, self._crossing.target.provider
        if origin is None or origin.dialect != NAME:
            return self._crossing.home and (provider is None or origin is None)
        fits = None in (origin.provider, provider) or origin.provider == provider
        return fits and (self._crossing.home or part.encrypted is not None)


def fitted_name(name: str, where: str, crossing: EncodeContext) -> str:
    """Return the name of a tool as the server takes it; `RestoreNames` restores it in the answer."""
    limit = crossing.target.tool_name_limit
    if crossing.home and limit is None:
        return name
    fitted = fit(name, limit or ID_LIMIT)
    if fitted != name:
        crossing.losses.emulated(where, "name", "fitted to what the server takes")
    return fitted


def _is_said(part: Part) -> bool:
    """Whether a part is a content of a message, as opposed to an item."""
    if isinstance(part, Opaque):
        return part.dialect != NAME or is_message(part)
    return isinstance(part, _SAID) and not is_generated(part)


def is_generated(part: Part) -> bool:
    """Whether a part is an image of another dialect: here a message holds none that the model made."""
    return isinstance(part, Image) and (part.extra is None or part.extra.dialect != NAME)


def is_message(part: Opaque) -> bool:
    """Whether a part of this dialect is a content of a message, which is kept with the message around it."""
    data = part.data
    return isinstance(data, dict) and data.get("type") == "message" and isinstance(data.get("content"), list)


def _is_own(part: Part) -> bool:
    return part.dialect == NAME if isinstance(part, Opaque) else "item" in _form(part)


def _extra(part: Part) -> Extra | None:
    return None if isinstance(part, Opaque) else part.extra


def _form(part: Part) -> JSONObject:
    return form_of(_extra(part), NAME)


def _is_plain(content: JSONObject) -> bool:
    plain = content.keys() <= {"type", "text", "annotations"} and content["type"] == "output_text"
    return plain and not content.get("annotations")


def _spelled(content: list[JSONObject], spelled: str | None) -> JSONObject:
    if spelled == "string" and len(content) == 1:
        return {"content": content[0]["text"]}
    if spelled in ("empty", "null", "absent") and len(content) <= 1 and not any(item.get("text") for item in content):
        return {} if spelled == "absent" else {"content": [] if spelled == "empty" else None}
    return {"content": content}


def _thoughts(part: Reasoning, form: JSONObject) -> tuple[list[JSON], list[JSON] | None]:
    """Return the lists of summaries and of texts; unusual ones as they came, if their text is still the same."""
    summary: list[JSON] = [{"type": "summary_text", "text": text} for text in part.summary or ()]
    for kept in form.get("summary", ()):
        if [item["text"] for item in kept] == list(part.summary or ()):
            summary = kept
    for kept in form.get("content", ()):
        if JOINT.join(item["text"] for item in kept) == (part.text or ""):
            return summary, kept
    return summary, [{"type": "reasoning_text", "text": part.text}] if part.text is not None else None


def _arguments(call: ToolCall, key: str, *, ours: bool) -> JSONObject:
    spelled = form_of(call.extra, NAME).get("arguments")
    if spelled == "absent" and not call.arguments:
        return {}
    if spelled == "object" and call.arguments:
        return {key: decode_json(call.arguments)}
    if not call.arguments and call.kind == "function" and not ours:
        return {key: NO_ARGUMENTS}
    return {key: call.arguments}
