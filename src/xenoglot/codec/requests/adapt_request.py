"""Adapts a request to the facts of its target, in the same way for every dialect, before it is encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.opaque import kind_of
from xenoglot.codec.requests.call_ids import nine_character_ids
from xenoglot.codec.requests.strip_images import without_pictures
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque, Text
from xenoglot.model.request import ToolChoice

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.request import OutputFormat, Request

_UNKNOWN = "the server does not take it"

JSON_ONLY = "Answer with JSON alone."
"""What the model is told in place of a setting for JSON."""


def fitted(request: Request, dialect: str, target: Target, losses: Losses) -> Request:
    """Return `request` as the server after, of `dialect` and `target`, can take it; what changes stands in `losses`.

    Raises:
        WireError: all the tools are such that another server would run.
    """
    check_tools(request, dialect)
    if not target.tools:
        request = _without_tools(request, losses)
    request = _choice(request, target, losses)
    if not target.parallel_tool_calls and request.parallel_tool_calls is not None:
        losses.dropped("$", "parallel_tool_calls", _UNKNOWN)
        request = replace(request, parallel_tool_calls=None)
    if target.lacks:
        request = _without_fields(request, target, losses)
    if not (target.images and target.image_urls):
        request = replace(request, messages=without_pictures(request.messages, target, losses))
    if target.json_schema != "native" and request.output is not None:
        request = _output(request, request.output, target, losses)
    if target.tool_id == "nine":
        request = replace(request, messages=nine_character_ids(request.messages, losses))
    return request


def check_tools(request: Request, dialect: str) -> None:
    """Refuse a request whose every tool only a server of another dialect than `dialect` runs (pitfall-30).

    Beside tools of the client such a tool is a loss, for the answer may do without it. Alone it is the point of the
    request: an answer without a search would pass for one with it.

    Raises:
        WireError: it is such a request.
    """
    hosted = [tool for tool in request.tools if isinstance(tool, Opaque) and tool.dialect != dialect]
    if hosted and len(hosted) == len(request.tools):
        kinds = ", ".join(f"`{kind_of(tool)}`" for tool in hosted)
        problem = f"the target model cannot run {kinds}; ask a server of {hosted[0].dialect}, or leave it out"
        raise WireError("$.tools", problem)


def _choice(request: Request, target: Target, losses: Losses) -> Request:
    choice = request.tool_choice
    if choice is None or choice.mode != "required" or target.forced_tools:
        return request
    losses.approximated("$.tool_choice", "mode", "the server takes only `auto` and `none`")
    return replace(request, tool_choice=ToolChoice(mode="auto"))


def _without_tools(request: Request, losses: Losses) -> Request:
    for index, tool in enumerate(request.tools):
        kind = kind_of(tool) if isinstance(tool, Opaque) else tool.kind
        losses.dropped(f"$.tools[{index}]", kind, "the target model supports no tools")
    return replace(request, tools=(), tool_choice=None, parallel_tool_calls=None)


def _without_fields(request: Request, target: Target, losses: Losses) -> Request:
    """Return the request without the fields that the server lacks."""
    if "name" in target.lacks:
        request = _without_names(request, losses)
    of_sampling = [name for name in target.lacks if getattr(request.sampling, name, None) is not None]
    of_request = [name for name in target.lacks if name != "name" and getattr(request, name, None) is not None]
    for where, names in (("$.sampling", of_sampling), ("$", of_request)):
        for name in names:
            losses.dropped(where, name, _UNKNOWN)
    if of_sampling:
        request = replace(request, sampling=replace(request.sampling, **dict.fromkeys(of_sampling)))
    return replace(request, **dict.fromkeys(of_request)) if of_request else request


def _without_names(request: Request, losses: Losses) -> Request:
    for index, message in enumerate(request.messages):
        if message.name is not None:
            losses.dropped(f"$.messages[{index}]", "name", _UNKNOWN)
    return replace(request, messages=tuple(replace(message, name=None) for message in request.messages))


def _output(request: Request, output: OutputFormat, target: Target, losses: Losses) -> Request:
    """Return the request, its schema told in words where the server can be told of none."""
    if output.kind == "text" or (output.kind == "json" and target.json_schema == "object"):
        return request
    told = JSON_ONLY
    if output.kind == "json_schema":
        told = f"Answer with JSON alone, in the form of this JSON Schema:\n{to_text(output.schema)}"
    said = _said(request, told)
    if said is None:
        losses.dropped("$", "output", "the server enforces no schema, and there is no user turn to describe it in")
        return replace(request, output=None)
    what = "schema" if output.kind == "json_schema" else "kind"
    losses.approximated("$.output", what, "described in the last user turn, and not enforced")
    kept = replace(output, kind="json", schema=None, name=None, description=None, strict=None, extra=None)
    return replace(said, output=kept if target.json_schema == "object" else None)


def _said(request: Request, text: str) -> Request | None:
    """Return the request with `text` at the end of its last turn of the user; `None` if there is none."""
    messages = list(request.messages)
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role == "user":
            messages[index] = replace(message, content=(*message.content, Text(text=text)))
            return replace(request, messages=tuple(messages))
    return None
