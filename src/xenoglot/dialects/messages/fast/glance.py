"""Common requests, read at a glance (see `codec.glance`)."""

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
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.fast.frequent_shapes import STRING, plain_message, plain_text, plain_tool
from xenoglot.dialects.messages.part_decoder import BILLING_HEADER
from xenoglot.model.content import Extra, Text
from xenoglot.model.request import Message, Request, Sampling
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON

_FIELDS: Mapping[str, Callable[[JSON], bool]] = {
    "model": is_text,
    "messages": is_filled_list,
    "max_tokens": is_count(0, MOST_TOKENS),
    "system": lambda value: type(value) is str or is_filled_list(value),
    "stream": is_flag,
    "temperature": is_number(1),
    "top_p": is_number(1),
    "top_k": is_count(0, MOST_TOKENS),
    "tools": is_filled_list,
    "metadata": lambda value: type(value) is dict and len(value) == 1 and is_text(value.get("user_id")),
}
_NEEDED = frozenset({"model", "messages", "max_tokens"})


@shortcut("requests")
def glance(data: bytes) -> Request | None:
    """Return the request in `data` if it is a common one."""
    body = object_in(data, _FIELDS)
    if body is None or not body.keys() >= _NEEDED:
        return None
    messages = all_of(body["messages"], plain_message)
    tools = all_of(body["tools"], plain_tool) if "tools" in body else ()
    system = _system(body["system"]) if "system" in body else ()
    if messages is None or tools is None or system is None:
        return None
    stream = body.get("stream")
    request = Request(
        model=body["model"],
        messages=(*system, *messages),
        tools=tools,
        sampling=Sampling(
            max_tokens=body["max_tokens"],
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            top_k=body.get("top_k"),
        ),
        stream=stream is True,
        user=body["metadata"]["user_id"] if "metadata" in body else None,
        extra=Extra(dialect=NAME, form={"stream": False} if stream is False else {}),
    )
    return within_bounds(request, data)


def _system(value: JSON) -> tuple[Message] | None:
    if type(value) is str:
        return (Message(role="system", content=(Text(text=value),), extra=STRING),)
    parts = all_of(value, plain_text)
    if parts is None or any(part.text.startswith(BILLING_HEADER) for part in parts):
        return None
    return (Message(role="system", content=parts),)
