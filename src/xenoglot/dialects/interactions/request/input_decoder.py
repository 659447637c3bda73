"""Decodes `input`: a text, one content, a list of contents, or a list of steps.

Steps of the model that follow each other are one turn, so that its calls stand together; each input of the user and
each result of a function is a turn of its own. Source: `InteractionsInput` in
`google/genai/_gaos/types/interactions/interactionsinput.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.interactions.content import decode_content, decode_contents
from xenoglot.dialects.interactions.extras import NAME, extra_of
from xenoglot.dialects.interactions.step_decoder import decode_step
from xenoglot.dialects.interactions.tool_calls import RESULT, decode_result
from xenoglot.model.content import Extra, Text
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

USER: Final = "user_input"
CONTENTS: Final = ("text", "image", "audio", "video", "document")


def take_input(reader: Reader, form: JSONObject) -> tuple[Message, ...]:
    """Take `input`; `form` gets how it was spelled, unless it was a list of steps.

    Raises:
        WireError: it is none of the four, or a step lacks what its type needs.
    """
    value, path = reader.take_any("input"), reader.at("input")
    if value is None:
        return ()
    if isinstance(value, str):
        form["input"] = "text"
        return (Message(role="user", content=(Text(text=value),)),)
    if isinstance(value, dict):
        form["input"] = "content"
        return (Message(role="user", content=(decode_content(value, path),)),)
    if not isinstance(value, list):
        raise expected(path, "str, object or list", value)
    if not value:
        form["input"] = "empty"
        return ()
    if all(isinstance(item, dict) and item.get("type") in CONTENTS for item in value):
        form["input"] = "contents"
        return (Message(role="user", content=tuple(decode_contents(value, path))),)
    return decode_turns(value, path)


def decode_turns(items: Sequence[JSON], path: str) -> tuple[Message, ...]:
    """Return the turns of a list of steps.

    Raises:
        WireError: a step is no object, or lacks what its type needs.
    """
    messages: list[Message] = []
    parts: list[Part] = []
    for index, item in enumerate(items):
        reader = Reader(item, f"{path}[{index}]")
        kind = reader.need("type", str)
        if kind not in (USER, RESULT):
            parts += decode_step(item, reader.path, parts[-1] if parts else None)
            continue
        if parts:
            messages.append(Message(role="assistant", content=tuple(parts)))
            parts = []
        messages.append(_decode_user(reader) if kind == USER else _decode_result(reader))
    if parts:
        messages.append(Message(role="assistant", content=tuple(parts)))
    return tuple(messages)


def _decode_user(reader: Reader) -> Message:
    content = reader.take("content", list)
    parts = decode_contents(content or (), reader.at("content"))
    form = {"content": None if content is not None else "absent"}
    return Message(role="user", content=tuple(parts), extra=extra_of(reader, form))


def _decode_result(reader: Reader) -> Message:
    return Message(role="tool", content=(decode_result(reader),))


def system_turn(text: str) -> Message:
    """Return the turn of `system_instruction`."""
    return Message(role="system", content=(Text(text=text),), extra=Extra(dialect=NAME, form={"instruction": True}))
