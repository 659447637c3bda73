"""Common requests of which nothing is kept, read at a glance (see `codec.glance`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.glance import (
    all_of,
    is_count,
    is_filled_list,
    is_flag,
    is_number,
    is_text,
    object_in,
    within_bounds,
)
from xenoglot.codec.requests.bounds import MOST_TOKENS
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.fast.frequent_shapes import plain_tool
from xenoglot.dialects.responses.request.input_decoder import InputDecoder
from xenoglot.model.content import Extra, Text
from xenoglot.model.request import Message, Request, Sampling
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON, JSONObject

_FIELDS: Mapping[str, Callable[[JSON], bool]] = {
    "model": is_text,
    "input": lambda value: type(value) is str or is_filled_list(value),
    "instructions": lambda value: type(value) is str and bool(value),
    "store": lambda value: value is False,
    "stream": is_flag,
    "max_output_tokens": is_count(1, MOST_TOKENS),
    "temperature": is_number(2),
    "top_p": is_number(1),
    "tools": is_filled_list,
}
_NEEDED = frozenset({"model", "input", "store"})


@shortcut("requests")
def glance(data: bytes) -> Request | None:
    """Return the request in `data` if it is a common one."""
    body = object_in(data, _FIELDS)
    if body is None or not body.keys() >= _NEEDED:
        return None
    form: JSONObject = {}
    messages = _messages(body["input"], form)
    tools = all_of(body["tools"], plain_tool) if "tools" in body else ()
    if messages is None or tools is None:
        return None
    stream = body.get("stream")
    if stream is False:
        form["unstreamed"] = True
    request = Request(
        model=body["model"],
        messages=(*_instructions(body), *messages),
        tools=tools,
        sampling=Sampling(
            max_tokens=body.get("max_output_tokens"), temperature=body.get("temperature"), top_p=body.get("top_p")
        ),
        stream=stream is True,
        store=False,
        extra=Extra(dialect=NAME, form=form),
    )
    return within_bounds(request, data)


def _instructions(body: JSONObject) -> tuple[Message, ...]:
    if "instructions" not in body:
        return ()
    extra = Extra(dialect=NAME, form={"instructions": True})
    return (Message(role="system", content=(Text(text=body["instructions"]),), extra=extra),)


def _messages(value: JSON, form: JSONObject) -> tuple[Message, ...] | None:
    if type(value) is list:
        return InputDecoder().plain(value)
    form["input"] = "string"
    return (Message(role="user", content=(Text(text=value),)),)
