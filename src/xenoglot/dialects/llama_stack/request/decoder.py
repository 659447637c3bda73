"""Decodes requests (`chat_completion` in `llama_stack/apis/inference/inference.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.dialects.llama_stack.extras import NAME
from xenoglot.dialects.llama_stack.request.message_decoder import decode_messages
from xenoglot.dialects.llama_stack.request.sampling import take_output, take_sampling
from xenoglot.dialects.llama_stack.tools import decode_tools, take_choice
from xenoglot.model.content import Extra
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


def decode_request(body: JSON) -> Request:
    """Return the request in `body`.

    Raises:
        WireError: a field is missing, of the wrong type, or contradicts another.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model_id", str)
    messages = decode_messages(reader)
    if reader.peek("tools") == []:
        form["tools"] = "empty"
    tools = decode_tools(reader)
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=take_choice(reader, tools, form),
        sampling=take_sampling(reader, form),
        output=take_output(reader),
        stream=take_stream(reader, form),
        extra=Extra(dialect=NAME, fields=reader.rest(), form=spelled(form)),
    )


def take_stream(reader: Reader, form: JSONObject) -> bool:
    """Take `stream`; that it was said to be off is form."""
    stream = reader.take("stream", bool)
    form["unstreamed"] = True if stream is False else None
    return stream is True


def spelled(form: JSONObject) -> JSONObject:
    """Return the spellings that are any."""
    return {key: value for key, value in form.items() if value is not None}
