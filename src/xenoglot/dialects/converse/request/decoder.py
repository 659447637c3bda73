"""Decodes requests to the canonical model without loss.

Source: `ConverseRequest` and `CountTokensRequest` in `bedrock-runtime/2023-09-30/service-2.json` of botocore. `model`
and `stream` are in the URL there; here they are fields of the body (see `codec.requests.url_params`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse.extras import NAME
from xenoglot.dialects.converse.parts.decoder import decode_blocks
from xenoglot.dialects.converse.request.fields import ADDITIONAL, ADDITIONAL_KEY, INFERENCE, INFERENCE_KEY, REQUEST
from xenoglot.dialects.converse.request.output_config import reasoning_of, take_output, take_thinking
from xenoglot.dialects.converse.tools import take_tools
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.request import Message, Request, Role, Sampling

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Thinking

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def decode_request(value: JSON) -> Request:
    """Return the request in `value`; its `extra` is always set, and marks it as from this dialect.

    Raises:
        WireError: a field is missing, of the wrong type or out of its range.
    """
    reader = Reader(value)
    form: JSONObject = {}
    model = reader.need("model", str)
    system = _take_system(reader, form)
    messages = (*system, *_take_messages(reader))
    tools, choice = take_tools(reader, form)
    output, effort = take_output(reader, form)
    sampling = _take_inference(reader, form)
    thinking, added = _take_additional(reader, form)
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=Sampling(**(sampling | added)),
        output=output,
        thinking=reasoning_of(thinking, effort),
        stream=_take_stream(reader, form),
        **REQUEST.read(reader, form),
        extra=Extra(dialect=NAME, fields=reader.rest(), form=form),
    )


def decode_count(value: JSON) -> Request:
    """Return the request whose tokens are to be counted: `input.converse`.

    Raises:
        WireError: as for `decode_request`; or the tokens of another body are to be counted.
    """
    reader = Reader(value)
    inner = Reader(reader.need("input", dict), "$.input")
    if "converse" not in inner:
        raise WireError(
            "$.input", "expected `converse`, or `invokeModel` with the `body` of an Anthropic model in base64"
        )
    body = inner.need("converse", dict)
    try:
        return decode_request({"messages": [], **body, "model": reader.need("model", str)})
    except WireError as error:
        if error.path == "$.model":
            raise
        raise WireError(f"$.input.converse{error.path[1:]}", error.problem) from None


def _take_stream(reader: Reader, form: JSONObject) -> bool:
    stream = reader.take("stream", bool)
    if stream is False:
        form["stream"] = False
    return stream is True


def _take_system(reader: Reader, form: JSONObject) -> tuple[Message, ...]:
    blocks = reader.take("system", list)
    if not blocks:
        if blocks is not None:
            form["system"] = "empty"
        return ()
    return (Message(role="system", content=decode_blocks(blocks, reader.at("system"))),)


def _take_messages(reader: Reader) -> list[Message]:
    messages: list[Message] = []
    for index, item in enumerate(reader.need("messages", list)):
        turn = Reader(item, f"{reader.path}.messages[{index}]")
        role = ROLES.get(turn.need("role", str))
        if role is None:
            raise WireError(turn.at("role"), "expected `user`, `assistant` or `system`")
        content = decode_blocks(turn.need("content", list), turn.at("content"))
        inline = True if role == "system" else None
        messages.append(Message(role=role, content=content, extra=turn.extra(NAME, inline=inline)))
    return messages


def _take_inference(reader: Reader, form: JSONObject) -> JSONObject:
    config = reader.object(INFERENCE_KEY)
    if config is None:
        return {}
    found = INFERENCE.read(config, form)
    keep_rest(reader, INFERENCE_KEY, config, form, said=bool(found))
    return found


def _take_additional(reader: Reader, form: JSONObject) -> tuple[Thinking | None, JSONObject]:
    """Take what other dialects also have of the fields that go to the model as they are."""
    additional = reader.object(ADDITIONAL_KEY) if isinstance(reader.peek(ADDITIONAL_KEY), dict) else None
    if additional is None:
        return None, {}
    nested: JSONObject = {}
    thinking = take_thinking(additional, nested)
    found = ADDITIONAL.read(additional, nested)
    if rests := nested.get("rests"):
        form.setdefault("rests", {})[ADDITIONAL_KEY] = rests
    said = thinking is not None or bool(found)
    if additional.rest() or not said:
        keep_rest(reader, ADDITIONAL_KEY, additional, form, said=said)
    return thinking, found
