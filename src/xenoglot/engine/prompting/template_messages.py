"""Converts a conversation and its tools to the messages of a chat template that supports tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.requests.custom_tools import PARAMETERS
from xenoglot.codec.requests.names import qualified
from xenoglot.codec.target import Target
from xenoglot.dialects.chat import CHAT
from xenoglot.engine.prompting.text_turns import DEFAULT_SYSTEM, reduced
from xenoglot.model.request import Request
from xenoglot.text.chat_template import arguments_object, call_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Tool

TARGET: Final = Target(text_parts=False, prefill="native", reasoning_field="none", strict_tools=False)
"""What is known of every chat template: it reads the messages of the chat dialect, and texts are texts."""

_ID_LENGTH: Final = 9
"""Some templates refuse ids of any other length (Mistral's); none writes anything else of them."""


def messages(request: Request, instructions: str, losses: Losses) -> list[JSONObject]:
    """Return the conversation; `instructions` are added to the system's text.

    Calls have results and results calls, as the chat dialect has it. Neighbours of one role become one, since many
    templates insist that the roles take turns.

    Raises:
        FailureError: there is nothing in it that the model can read.
    """
    plain = Request(model=request.model, messages=reduced(request, losses))
    body = CHAT.encode_request(plain, losses, TARGET)
    said = _joined(_message(message) for message in body["messages"])
    if not said or said[0]["role"] != "system":
        said.insert(0, {"role": "system", "content": DEFAULT_SYSTEM})
    if instructions:
        said[0]["content"] = f"{said[0]['content']}\n\n{instructions}"
    _number(said)
    return said


def functions(tools: Iterable[Tool]) -> list[JSONObject]:
    """Return the tools as chat templates take them."""
    return [{"type": "function", "function": function(tool)} for tool in tools]


def function(tool: Tool) -> JSONObject:
    """Return one tool in the form for models: a custom one is a function of one string."""
    parameters = PARAMETERS if tool.kind == "custom" else tool.parameters
    name = qualified(tool.name, tool.namespace)
    said: JSONObject = {"name": name, "description": tool.description, "parameters": parameters}
    return {key: value for key, value in said.items() if value is not None}


def _message(message: JSONObject) -> JSONObject:
    """Return a message of the chat dialect with its content as one text, and arguments as objects."""
    said: JSONObject = {"role": message["role"], "content": _text(message.get("content"))}
    if "tool_call_id" in message:
        said["tool_call_id"] = message["tool_call_id"]
    if calls := message.get("tool_calls"):
        functions = [(call["id"], call["function"]) for call in calls]
        said["tool_calls"] = [
            call_message(one, called["name"], arguments_object(called["arguments"])) for one, called in functions
        ]
    return said


def _text(content: JSON) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _call(call_id: str, function: JSONObject) -> JSONObject:
    return call_message(call_id, function["name"], arguments_object(function["arguments"]))


def _joined(said: Iterable[JSONObject]) -> list[JSONObject]:
    found: list[JSONObject] = []
    for message in said:
        last = found[-1] if found else {"role": "tool"}
        if message["role"] != last["role"] or message["role"] == "tool" or "tool_calls" in last:
            found.append(message)
            continue
        last["content"] = "\n\n".join(text for text in (last["content"], message["content"]) if text)
        last |= {"tool_calls": message["tool_calls"]} if "tool_calls" in message else {}
    return found


def _number(said: list[JSONObject]) -> None:
    """Give calls and their results ids that every template takes."""
    known: dict[str, str] = {}
    for message in said:
        for call in message.get("tool_calls", ()):
            known[call["id"]] = call["id"] = f"{len(known):0{_ID_LENGTH}d}"
        if "tool_call_id" in message:
            message["tool_call_id"] = known.get(message["tool_call_id"], "0" * _ID_LENGTH)
