"""Decodes content parts.

Source: `Part` (https://ai.google.dev/api/caching#Part) and `google/genai/types.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.extras import NAME, SIGNATURE
from xenoglot.dialects.gemini.parts.hosted import read_hosted
from xenoglot.dialects.gemini.parts.media import is_video, read_file, read_inline, read_video
from xenoglot.dialects.gemini.parts.partial_call import CALL, is_partial
from xenoglot.dialects.gemini.signatures import is_seal_alone, sealed, signed
from xenoglot.dialects.gemini.tool_calls import read_call, read_result
from xenoglot.model.content import Opaque, Part, Reasoning, Text

if TYPE_CHECKING:
    from xenoglot.dialects.gemini.tool_calls import CallIds
    from xenoglot.model.json import JSON, JSONObject

MAX_PARTS_DEPTH = 2
"""How deep parts may stand in parts: those of a result are the deepest."""


def decode_parts(value: JSON, path: str, ids: CallIds) -> tuple[Part, ...]:
    """Return the parts of a list; a signature that follows words in a part of its own is a field of the words.

    A call may be empty: the end of one that came in pieces.
    """
    parts: list[Part] = []
    for index, item in enumerate(value):
        part = Opaque(dialect=NAME, data=item) if is_partial(item) else decode_part(item, f"{path}[{index}]", ids)
        words = parts[-1] if parts else None
        if (
            isinstance(words, Text)
            and words.text
            and is_seal_alone(part)
            and (words.extra is None or not words.extra.fields)
        ):
            parts[-1] = replace(words, extra=signed(words.extra, part.signature))
        else:
            parts.append(part)
    return tuple(parts)


def decode_part(value: JSON, path: str, ids: CallIds) -> Part:
    """Return one part; one of a kind that we do not know becomes `Opaque`, and so does reasoning that is no text.

    A piece of a call is `Opaque` too: what it belongs to is known where the others are.

    Raises:
        WireError: it is no object, or a field of it is missing or of the wrong type.
    """
    reader = Reader(value, path)
    if "text" in reader:
        return _read_text(reader)
    part: Part | None = None
    if reader.peek("thought") is not True and not (is_partial(value) and value[CALL]):
        part = _read_thing(reader, ids)
    if part is None and value.keys() == {SIGNATURE} and isinstance(value[SIGNATURE], str):
        return sealed(Reasoning(), value[SIGNATURE], {"part": "bare"})
    return Opaque(dialect=NAME, data=value) if part is None else part


def _read_thing(reader: Reader, ids: CallIds) -> Part | None:
    if "functionCall" in reader:
        return read_call(reader, ids)
    if "functionResponse" in reader and reader.path.count(".parts[") <= MAX_PARTS_DEPTH:
        return read_result(reader, ids, lambda part, path: decode_part(part, path, ids))
    if _holds_video(reader):
        return read_video(reader)
    if "inlineData" in reader:
        return read_inline(reader)
    return read_file(reader) if "fileData" in reader else read_hosted(reader, ids)


def _holds_video(reader: Reader) -> bool:
    blob = reader.peek("inlineData") or reader.peek("fileData")
    if not isinstance(blob, dict):
        return False
    uri, media_type = blob.get("fileUri"), blob.get("mimeType")
    return is_video(uri if isinstance(uri, str) else None, media_type if isinstance(media_type, str) else None)


def _read_text(reader: Reader) -> Part:
    """Take a text: words, reasoning, or nothing but the signature that follows an answer."""
    text = reader.need("text", str)
    thought = reader.take("thought", bool)
    signature = reader.take(SIGNATURE, str)
    form: JSONObject = {} if thought is not False else {"thought": False}
    if thought:
        part = Reasoning(text=text or None, extra=reader.extra(NAME, **form))
        return part if signature is None else sealed(part, signature, {} if text else {"part": "thought"})
    if signature is not None and not text:
        return sealed(Reasoning(extra=reader.extra(NAME, **form)), signature, {"part": "text"})
    if signature is not None:
        reader.rest()[SIGNATURE] = signature
    return Text(text=text, extra=reader.extra(NAME, **form))
