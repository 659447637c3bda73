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
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.fast.frequent_shapes import plain_message, plain_tool
from xenoglot.model.content import Extra
from xenoglot.model.request import Request, Sampling, ToolChoice
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON, JSONObject

_CHOICES = {word: ToolChoice(mode=word) for word in ("auto", "none", "required")}

_FIELDS: Mapping[str, Callable[[JSON], bool]] = {
    "model": is_text,
    "messages": is_filled_list,
    "stream": is_flag,
    "stream_options": lambda value: type(value) is dict and len(value) == 1 and is_flag(value.get("include_usage")),
    "max_tokens": is_count(1, MOST_TOKENS),
    "max_completion_tokens": is_count(1, MOST_TOKENS),
    "temperature": is_number(2),
    "top_p": is_number(1),
    "tools": is_filled_list,
    "tool_choice": lambda value: type(value) is str and value in _CHOICES,
    "parallel_tool_calls": is_flag,
}


@shortcut("requests")
def glance(data: bytes) -> Request | None:
    """Return the request in `data` if it is a common one."""
    body = object_in(data, _FIELDS)
    if body is None or "model" not in body or "messages" not in body:
        return None
    messages = all_of(body["messages"], plain_message)
    tools = all_of(body["tools"], plain_tool) if "tools" in body else ()
    if messages is None or tools is None or ("max_tokens" in body and "max_completion_tokens" in body):
        return None
    form: JSONObject = {}
    parallel, stream = body.get("parallel_tool_calls"), body.get("stream")
    if parallel is not None:
        form["parallel"] = True
    if stream is False:
        form["unstreamed"] = True
    request = Request(
        model=body["model"],
        messages=messages,
        tools=tools,
        tool_choice=_CHOICES[body["tool_choice"]] if "tool_choice" in body else None,
        parallel_tool_calls=parallel,
        sampling=_sampling(body, form),
        stream=stream is True,
        stream_usage=_usage(body, form),
        extra=Extra(dialect=NAME, form=form),
    )
    return within_bounds(request, data)


def _sampling(body: JSONObject, form: JSONObject) -> Sampling:
    limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
    most = body.get(limit)
    if most is not None:
        form["max_tokens"] = limit
    return Sampling(max_tokens=most, temperature=body.get("temperature"), top_p=body.get("top_p"))


def _usage(body: JSONObject, form: JSONObject) -> bool | None:
    if "stream_options" not in body:
        return None
    form["stream_options"] = True
    usage: bool = body["stream_options"]["include_usage"]
    return usage
