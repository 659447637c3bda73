"""Decodes the steps of the model: its reasoning, texts and calls, in an answer and in the history of a request.

Source: `Step` in `google/genai/_gaos/types/interactions/step.py` of the official SDK.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.responses.reasoning import pack, unpack
from xenoglot.dialects.interactions.content import CONTENTS, decode_contents
from xenoglot.dialects.interactions.extras import NAME, STEP, extra_of
from xenoglot.dialects.interactions.hosted import decode_hosted, is_hosted
from xenoglot.dialects.interactions.tool_calls import CALL, decode_call
from xenoglot.model.content import Extra, Opaque, Origin, Part, Reasoning, Text

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

OUTPUT = "model_output"
THOUGHT = "thought"


def decode_steps(items: JSON, path: str, answer_id: str) -> tuple[Part, ...]:
    """Return the parts of all steps of an answer.

    Raises:
        WireError: it is no list, or one of the steps is broken.
    """
    if not isinstance(items, list):
        raise expected(path, "list", items)
    parts: list[Part] = []
    for index, item in enumerate(items):
        parts += decode_step(item, f"{path}[{index}]", parts[-1] if parts else None, answer_id)
    return tuple(parts)


def decode_step(item: JSON, path: str, before: Part | None, answer_id: str | None = None) -> tuple[Part, ...]:
    """Return the parts of one step of the model, which follows the part `before`; one that is not known is `Opaque`.

    With an `answer_id` it is part of an answer: a call without an id gets one derived from it.

    Raises:
        WireError: it is no object, or lacks what its type needs.
    """
    reader = Reader(item, path)
    kind = reader.need("type", str)
    if kind == OUTPUT:
        return _decode_output(Reader(item, path), item, before)
    if kind == THOUGHT:
        return (_decode_thought(Reader(item, path), item),)
    if kind == CALL:
        return (decode_call(Reader(item, path), answer_id),)
    found = decode_hosted(Reader(item, path), kind) if is_hosted(kind) else None
    return (Opaque(dialect=NAME, data=item) if found is None else found,)


def _decode_output(reader: Reader, item: JSONObject, before: Part | None) -> tuple[Part, ...]:
    reader.take("type", str)
    content = reader.take("content", list)
    parts = decode_contents(content or (), reader.at("content"))
    spelled = "absent" if content is None else None if content else "empty"
    fields = {f"{STEP}{key}": value for key, value in reader.rest().items()}
    if spelled is not None:
        parts = [Text(text="")]
    first = parts[0]
    if isinstance(first, Opaque):
        head: Part = replace(first, data={**item, "content": [first.data]})
    elif spelled or fields or isinstance(before, CONTENTS) or is_fragment(before):
        head = _marked(first, {"step": spelled or True}, fields)
    else:
        head = first
    return (head, *(_fragment(parts[at], parts[at - 1]) for at in range(1, len(parts))))


def is_fragment(part: Part | None) -> bool:
    """Whether a part is a content that only this dialect knows."""
    return isinstance(part, Opaque) and isinstance(part.data, dict) and part.data.get("type") == OUTPUT


def _fragment(part: Part, before: Part) -> Part:
    """Return a content after the first of a step; a text after a text has a mark for it."""
    if isinstance(part, Opaque):
        return replace(part, data={"type": OUTPUT, "content": [part.data]})
    return _marked(part, {"same": True}, {}) if isinstance(part, Text) and isinstance(before, Text) else part


def _marked(part: Part, form: JSONObject, fields: JSONObject) -> Part:
    extra = getattr(part, "extra", None) or Extra(dialect=NAME)
    return replace(part, extra=replace(extra, fields={**extra.fields, **fields}, form={**extra.form, **form}))


def _decode_thought(reader: Reader, item: JSONObject) -> Part:
    """Return the reasoning of a step; one whose summary holds more than texts stays as it came."""
    reader.take("type", str)
    summary = reader.peek("summary")
    if summary is not None and not (isinstance(summary, list) and all(map(_is_plain, summary))):
        return Opaque(dialect=NAME, data=item)
    texts = reader.take("summary", list)
    signature = reader.take("signature", str)
    part = Reasoning(summary=None if texts is None else tuple(text["text"] for text in texts))
    form: JSONObject = {}
    if signature is not None:
        part = signed(part, signature, form)
    return replace(part, extra=extra_of(reader, form))


def _is_plain(item: JSON) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() == {"type", "text"}
        and item["type"] == "text"
        and isinstance(item["text"], str)
    )


def signed(part: Reasoning, signature: str, form: JSONObject) -> Reasoning:
    """Return reasoning with its signature: one of the dialect, or the wrapped one of another dialect."""
    seal = unpack(_opened(signature))
    if seal is None:
        return replace(part, signature=signature, origin=Origin(dialect=NAME))
    form["signature"] = signature
    bare = seal.encrypted is not None and not any(part.summary or ())
    return replace(part, signature=seal.signature, encrypted=seal.encrypted, redacted=bare, origin=seal.origin)


def _opened(signature: str) -> str:
    if not signature.startswith(_WRAPPED):
        return ""
    try:
        return b64decode(signature, validate=True).decode()
    except ValueError:
        return ""


def wrapped(part: Reasoning) -> str:
    """Return the signature of another dialect as one of this, which holds bytes in base64."""
    return b64encode(pack(part).encode()).decode()


_WRAPPED = b64encode(b"xenoglot:sealed").decode()
"""How every wrapped signature begins."""
