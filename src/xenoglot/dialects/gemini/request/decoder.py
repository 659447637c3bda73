"""Decodes requests to the canonical model without loss.

Source: https://ai.google.dev/api/generate-content and https://ai.google.dev/api/tokens. `model` and `stream` are in the
URL there; here they are fields of the body (see `codec.requests.url_params`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.dialects.gemini.parts.decoder import decode_parts
from xenoglot.dialects.gemini.parts.history_pieces import HistoryPieces
from xenoglot.dialects.gemini.request.aliases import plain, sent_paths
from xenoglot.dialects.gemini.request.fields import REQUEST
from xenoglot.dialects.gemini.request.generation_config import take_generation
from xenoglot.dialects.gemini.tool_calls import CallIds
from xenoglot.dialects.gemini.tools import take_choice, take_tools
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.request import Message, Request, Role

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "tool"}


def decode_request(value: JSON) -> Request:
    """Return the request in `value`; its `extra` is always set, and marks it as from this dialect.

    Raises:
        WireError: a field is missing, of the wrong type or out of its range.
    """
    if not isinstance(value, dict):
        raise expected("$", "object", value)
    body, note = plain(value)
    if not note:
        return _decoded(body, {})
    with sent_paths(note):
        return _decoded(body, {"spelling": note})


def _decoded(body: JSONObject, form: JSONObject) -> Request:
    """Return the request in a body of one spelling."""
    reader = Reader(body)
    model = reader.need("model", str)
    system = _take_system(reader)
    messages = (*system, *_take_contents(reader))
    generation = take_generation(reader, form)
    return Request(
        model=model,
        messages=messages,
        tools=take_tools(reader, form),
        tool_choice=take_choice(reader, form),
        sampling=generation.sampling,
        output=generation.output,
        thinking=generation.thinking,
        media=generation.media,
        stream=_take_stream(reader, form),
        **REQUEST.read(reader, form),
        extra=Extra(dialect=NAME, fields=reader.rest(), form=form),
    )


def decode_count(value: JSON) -> Request:
    """Return the request whose tokens are to be counted: that inside `generateContentRequest`, or the contents alone.

    Raises:
        WireError: as for `decode_request`.
    """
    if not isinstance(value, dict):
        raise expected("$", "object", value)
    for key in ("generateContentRequest", "generate_content_request"):
        inner = value.get(key)
        if isinstance(inner, dict):
            try:
                return decode_request({**inner, "model": value.get("model", inner.get("model"))})
            except WireError as error:
                if error.path == "$.model" and "model" in value:
                    raise
                raise WireError(f"$.{key}{error.path[1:]}", error.problem) from None
    return decode_request(value)


def _take_stream(reader: Reader, form: JSONObject) -> bool:
    stream = reader.take("stream", bool)
    if stream is False:
        form["stream"] = False
    return stream is True


def _take_system(reader: Reader) -> tuple[Message, ...]:
    content = reader.object("systemInstruction")
    if content is None:
        return ()
    role = content.take("role", str)
    return (_message(content, "system", CallIds("system"), {} if role is None else {"role": role}),)


def _take_contents(reader: Reader) -> list[Message]:
    contents = reader.need("contents", list)
    if not contents:
        raise WireError(reader.at("contents"), "contents is not specified")
    ids = CallIds("history")
    pieces = HistoryPieces(ids)
    before: Role = "user"
    for index, item in enumerate(contents):
        content = Reader(item, f"{reader.path}.contents[{index}]")
        word = content.take("role", str)
        role = ROLES.get("user" if word is None else word)
        if role is None:
            raise WireError(content.at("role"), "Please use a valid role: user, model.")
        if role == "assistant" != before:
            ids.turn()
        before = role
        pieces.add(_message(content, role, ids, {"role": "absent"} if word is None else {}), content.at("parts"))
    return pieces.close()


def _message(content: Reader, role: Role, ids: CallIds, form: JSONObject) -> Message:
    parts = content.take("parts", list)
    if parts is None:
        form["parts"] = "absent"
    return Message(
        role=role,
        content=decode_parts(parts or [], content.at("parts"), ids),
        extra=content.extra(NAME, **form),
    )
