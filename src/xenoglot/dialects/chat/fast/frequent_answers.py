"""Decodes and encodes the most common non-streaming responses in one step: text, and tool calls.

The result is that of the general functions (`response`), which also handle responses with other fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.frequent_shapes import is_plain_call, plain_words
from xenoglot.dialects.chat.assistant_decoder import BLANKS
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.finish import decode_finish
from xenoglot.dialects.chat.tool_calls import NO_ARGUMENTS
from xenoglot.dialects.chat.usage import decode_usage
from xenoglot.model.content import Extra, Text, ToolCall
from xenoglot.model.response import Candidate, Response
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

_TAKEN = frozenset({"id", "object", "created", "model", "choices", "usage", "service_tier"})
_CHOICE = frozenset({"index", "message", "finish_reason"})
_SPOKEN = frozenset({"role", "content"})
_CALL, _INDEXED, _FUNCTION = 3, 4, 2
_LATEST = 2**53


@shortcut("messages")
def plain_response(body: JSON) -> Response | None:
    """Return the answer in `body`; `None` if it is of another form."""
    if type(body) is not dict or body.get("object") != "chat.completion":
        return None
    answer_id, model, created, tier = body.get("id"), body.get("model"), body.get("created"), body.get("service_tier")
    choices, usage = body.get("choices"), body.get("usage")
    if not (type(answer_id) is type(model) is str and answer_id and type(created) is int and 0 < created < _LATEST):
        return None
    if type(choices) is not list or len(choices) != 1 or (candidate := _candidate(choices[0])) is None:
        return None
    if not ((usage is None or type(usage) is dict) and (tier is None or type(tier) is str)):
        return None
    rest: JSONObject = {}
    if None in body.values() or not _TAKEN.issuperset(body):
        rest = {key: value for key, value in body.items() if value is None or key not in _TAKEN}
    return Response(
        id=answer_id,
        model=model,
        created=created,
        candidates=(candidate,),
        usage=decode_usage(usage, "$.usage"),
        service_tier=tier,
        extra=Extra(dialect=NAME, fields=rest) if rest else None,
    )


def _candidate(choice: JSON) -> Candidate | None:
    """Return the first choice, if its unusual fields are all null."""
    if type(choice) is not dict or type(choice.get("index")) is not int or choice["index"]:
        return None
    rest = {key: value for key, value in choice.items() if key not in _CHOICE}
    raw, message = choice.get("finish_reason"), choice.get("message")
    if type(raw) is not str or not raw or type(message) is not dict or not all(map(_is_null, rest.values())):
        return None
    calls = _calls(message.get("tool_calls"))
    form = None if calls is None else _form(message, calls=bool(calls))
    if calls is None or form is None:
        return None
    text = message["content"]
    return Candidate(
        content=(Text(text=text), *calls) if text else calls,
        finish=decode_finish(raw, None, calls=bool(calls), refused=False),
        extra=Extra(dialect=NAME, fields=rest, form=form) if rest or form else None,
    )


def _is_null(value: JSON) -> bool:
    return value is None


def _form(message: JSONObject, *, calls: bool) -> JSONObject | None:
    """Return how a message is spelled; `None` if it holds more than words and calls."""
    text = message.get("content", 0)
    if message.get("role") != "assistant" or not (text is None or type(text) is str):
        return None
    blanks: JSONObject = {}
    nulls: JSONObject = {}
    for key, value in message.items():
        if key in _SPOKEN or (calls and key == "tool_calls"):
            continue
        if value is None:
            nulls[key] = None
        elif key in BLANKS and value in ("", []):
            blanks[key] = value
        else:
            return None
    form: JSONObject = {}
    if blanks:
        form["blanks"] = {key: blanks[key] for key in BLANKS if key in blanks}
    if not text and (text is None) != calls:  # a null is usual beside calls alone
        form["content"] = "null" if text is None else "empty"
    if nulls:
        form["message"] = nulls
    return form


def _calls(items: JSON) -> tuple[Part, ...] | None:
    """Return calls of functions; `None` if one is something else or has more fields."""
    if not items:
        return () if items is None or items == [] else None
    if type(items) is not list:
        return None
    calls = [_call(item) for item in items]
    found = tuple(call for call in calls if call is not None)
    return found if len(found) == len(calls) else None


def _call(item: JSON) -> ToolCall | None:
    if type(item) is not dict or item.get("type") != "function":
        return None
    call_id, index, inner = item.get("id"), item.get("index"), item.get("function")
    if type(call_id) is not str or not call_id or type(inner) is not dict or len(inner) != _FUNCTION:
        return None
    name, arguments = inner.get("name"), inner.get("arguments")
    if not (type(name) is type(arguments) is str):
        return None
    if len(item) == _CALL:
        return ToolCall(id=call_id, name=name, arguments=arguments)
    if len(item) == _INDEXED and type(index) is int:
        return ToolCall(
            id=call_id, name=name, arguments=arguments, extra=Extra(dialect=NAME, form={"index": {"index": index}})
        )
    return None


@shortcut("messages")
def plain_message(parts: Sequence[Part]) -> JSONObject | None:
    """Return the message that holds words and, after them, calls of functions; `None` if there is more to write."""
    texts: list[str] = []
    calls: list[JSONObject] = []
    for part in parts:
        said = plain_words(part, NAME)
        if said is not None and not calls:
            texts.append(said)
        elif type(part) is ToolCall and is_plain_call(part, NAME):
            function = {"name": part.name, "arguments": part.arguments or NO_ARGUMENTS}
            calls.append({"id": part.id, "type": "function", "function": function})
        else:
            return None
    words: str | None = "".join(texts)
    if calls:
        return {"role": "assistant", "content": words or None, "tool_calls": calls}
    return {"role": "assistant", "content": words}
