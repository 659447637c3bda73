"""Decodes items to parts, in the output of an answer and in the history of a request.

A message item becomes a part for each of its contents; the first of them carries what is to be kept of the item. Any
other item is one part. Source: `openai/types/responses/response_output_item.py` of the official SDK.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.compacted_history import unseal
from xenoglot.codec.responses.reasoning import unpack
from xenoglot.dialects.responses.client_calls import decode_client_call
from xenoglot.dialects.responses.extras import NAME, extra_of
from xenoglot.dialects.responses.hosted.decoder import KINDS, decode_hosted
from xenoglot.dialects.responses.item_text import words_of
from xenoglot.dialects.responses.output_text import ITEM
from xenoglot.dialects.responses.parts import decode_part
from xenoglot.dialects.responses.tool_search import SEARCH_CALL, SEARCH_OUTPUT, SearchPairs, decode_search
from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, Extra, Opaque, Origin, Part, Reasoning, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from xenoglot.model.json import JSON, JSONObject

JOINT = "\n\n"
"""The separator between the texts of a reasoning item that has several."""

COMPACTION = "compaction"
"""The type of an item that stands for the turns before it (`openai/types/responses/response_compaction_item.py`)."""

BODIES = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of calls, and where each keeps what the model wrote."""


def decode_output(items: JSON, path: str, answer_id: str | None = "") -> tuple[Part, ...]:
    """Return the parts of all items of an answer, in order. `answer_id` as for `decode_item`.

    Raises:
        WireError: it is no list, or one of the items is broken.
    """
    if not isinstance(items, list):
        raise expected(path, "list", items)
    parts: list[Part] = []
    searches = SearchPairs()
    for index, item in enumerate(items):
        parts += searches.paired(decode_item(item, f"{path}[{index}]", answer_id))
    return tuple(parts)


def decode_item(item: JSON, path: str, answer_id: str | None = None) -> tuple[Part, ...]:
    """Return the parts of one item that the model made; an item that we do not know is one `Opaque`.

    With an `answer_id` it is part of an answer: a call without any id gets one derived from it, and what a tool of the
    server did gets no text, for the answer is made of it. Without an `answer_id`, such a call is an error, and a text
    describes what other servers cannot know.

    Raises:
        WireError: it is no object, or lacks what its type needs.
    """
    reader = Reader(item, path)
    kind = reader.peek("type")
    if kind == "message" or (kind is None and "role" in reader):
        return _decode_message(reader, item)
    if kind in ("reasoning", COMPACTION):
        return (decode_reasoning(reader) if kind == "reasoning" else _decode_compaction(reader),)
    if isinstance(kind, str) and kind in BODIES:
        return (_decode_call(reader, kind, answer_id),)
    if not isinstance(kind, str):
        raise WireError(reader.at("type"), "required, expected str")
    if (call := decode_client_call(item)) is not None:
        return (call,)
    if (parts := _decode_hosted(item, path, kind, answer_id)) is not None:
        return parts
    said = words_of(item) if answer_id is None else None
    return (Opaque(dialect=NAME, data=item, text=said and f"{said}\n"),)


def _decode_hosted(item: JSONObject, path: str, kind: str, answer_id: str | None) -> tuple[Part, ...] | None:
    """Return what a tool of the server did; `None` for an item of a shape that we do not know."""
    searches = kind in (SEARCH_CALL, SEARCH_OUTPUT) and item.get("execution") != "client"
    if kind not in KINDS and not searches:
        return None
    reader = Reader(item, path)
    mark = take_mark(reader)
    found = mark.get("id") or derived_id(answer_id or "", path)
    if searches:
        part = decode_search(reader, {**mark, "kind": kind}, str(found))
        return None if part is None else (part,)
    return decode_hosted(reader, {**mark, "kind": kind}, str(found))


def derived_id(answer_id: str, path: str) -> str:
    """Return the id of a call that came without one: the same for the same answer and place."""
    digest = sha256(f"{answer_id}:{path}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


def take_mark(reader: Reader) -> JSONObject:
    """Take the fields that identify an item and give its status: form that every item of this dialect has.

    `type` is false if it was left out, `id` and `status` stand there where the wire had them.
    """
    mark: JSONObject = {"type": reader.take_if("type", str) is not None}
    for key in ("id", "status"):
        value = reader.peek(key)
        if isinstance(value, str) and value:
            mark[key] = reader.take(key, str)
    return mark


def take_content(reader: Reader, decode: Callable[[JSON, str], Part]) -> tuple[list[Part], str | None]:
    """Take `content`: its parts, and how it was spelled where that is not the usual list of some.

    Raises:
        WireError: it is neither text nor a list of parts.
    """
    value = reader.peek("content")
    if value is None:
        spelled = "null" if "content" in reader.rest() else "absent"
        reader.rest().pop("content", None)
        return [], spelled
    if isinstance(value, str):
        reader.take("content", str)
        return [Text(text=value)], "string"
    items = reader.need("content", list)
    path = reader.at("content")
    return [decode(item, f"{path}[{index}]") for index, item in enumerate(items)], None if items else "empty"


def _decode_message(reader: Reader, item: JSONObject) -> tuple[Part, ...]:
    parts, spelled = take_content(reader, lambda part, path: decode_part(part, path, "output_text"))
    mark = take_mark(reader)
    if "role" in reader:
        mark["role"] = reader.take("role", str)
    if spelled is not None:
        mark["content"] = spelled
    fields = {f"{ITEM}{key}": value for key, value in reader.rest().items()}
    first = parts[0] if parts else Text(text="")
    kept = [_fragment(part) for part in parts[1:]]
    if isinstance(first, Opaque):
        return (replace(first, data={**item, "content": [first.data]}), *kept)
    return (_marked(first, mark, fields), *kept)


def _marked(part: Part, mark: JSONObject, fields: JSONObject) -> Part:
    extra = getattr(part, "extra", None) or Extra(dialect=NAME)
    marked = replace(extra, fields={**extra.fields, **fields}, form={**extra.form, "item": mark})
    return replace(part, extra=marked)


def _fragment(part: Part) -> Part:
    """Return a part after the first; an unknown one is marked as a content of the message before."""
    if isinstance(part, Opaque):
        return replace(part, data={"type": "message", "content": [part.data]})
    return part


def decode_reasoning(reader: Reader) -> Reasoning:
    """Return the reasoning in a `reasoning` item.

    A text or summary given otherwise than in plain parts is also kept as it came.
    """
    mark = take_mark(reader)
    item_id = mark.pop("id", None)
    form: JSONObject = {"item": mark}
    summary = _take_texts(reader, "summary", "summary_text", form)
    content = _take_texts(reader, "content", "reasoning_text", form)
    part = Reasoning(
        text=JOINT.join(content) if content else None,
        summary=None if summary is None else tuple(summary),
        id=item_id,
    )
    return _sealed(part, reader, form)


def _sealed(part: Reasoning, reader: Reader, form: JSONObject) -> Reasoning:
    """Return `part` with its encrypted content, this dialect's own or a wrapped signature of another."""
    encrypted = reader.take_if("encrypted_content", str)
    if encrypted is None:
        return replace(part, extra=extra_of(reader, form))
    seal = unpack(encrypted)
    if seal is None:
        bare = not part.text and not any(part.summary or ())
        part = replace(part, encrypted=encrypted, redacted=bare, origin=Origin(dialect=NAME))
    else:
        form["encrypted_content"] = encrypted
        bare = seal.encrypted is not None and not part.text and not any(part.summary or ())
        sealed = replace(part, encrypted=seal.encrypted, signature=seal.signature, redacted=bare)
        part = replace(sealed, origin=seal.origin)
    return replace(part, extra=extra_of(reader, form))


def _decode_compaction(reader: Reader) -> CompactedHistory:
    """Return the summary in a compaction item: encrypted by a server, or packed by us."""
    mark = take_mark(reader)
    item_id = mark.pop("id", None)
    form: JSONObject = {"item": mark}
    encrypted = reader.need("encrypted_content", str)
    part = unseal(encrypted, reader.at("encrypted_content"))
    if part is None:
        part = CompactedHistory(encrypted=encrypted, origin=Origin(dialect=NAME))
    else:
        form["encrypted_content"] = encrypted
    return replace(part, replaces="answers", id=item_id, extra=extra_of(reader, form))


def _take_texts(reader: Reader, key: str, kind: str, form: JSONObject) -> list[str] | None:
    """Take a list of plain texts of type `kind`; under `form` the list as it came, unless it is the usual one."""
    items = reader.peek(key)
    if items is None:
        form["bare"] = form.get("bare", False) or (key == "summary" and key not in reader.rest())
        return None
    texts: list[str] = []
    usual = True
    for index, item in enumerate(reader.need(key, list)):
        inner = Reader(item, f"{reader.at(key)}[{index}]")
        texts.append(inner.need("text", str))
        usual = usual and item.keys() == {"type", "text"} and item["type"] == kind
    if not usual or (key == "content" and len(texts) != 1):
        form[key] = [items]
    return texts


def _decode_call(reader: Reader, kind: str, answer_id: str | None) -> ToolCall:
    mark = take_mark(reader)
    item_id = mark.pop("id", None)
    form: JSONObject = {"item": mark}
    found = reader.peek("call_id")
    odd = answer_id is not None and not isinstance(found, str)  # a server is forgiven what a client is not
    call_id = None if odd or not found else reader.take("call_id", str)
    if call_id is None:
        form["call_id"] = "absent"
        call_id = item_id or (None if answer_id is None else derived_id(answer_id, reader.path))
    if call_id is None:
        raise WireError(reader.at("call_id"), "required, expected str")
    arguments, form["arguments"] = _take_arguments(reader, BODIES[kind])
    shape: Literal["function", "custom"] = "custom" if kind == "custom_tool_call" else "function"
    return ToolCall(
        id=call_id,
        name=reader.need("name", str),
        arguments=arguments,
        kind=shape,
        namespace=reader.take("namespace", str),
        item_id=item_id,
        extra=extra_of(reader, form),
    )


def _take_arguments(reader: Reader, key: str) -> tuple[str, str | None]:
    """Take what the model wrote as text, and how it was spelled where that is unusual: `object`, `absent`."""
    value = reader.peek(key)
    if isinstance(value, dict):
        reader.take(key, dict)
        return to_text(value), "object"
    text = reader.take(key, str)
    return ("", "absent") if text is None else (text, None)
