"""What is read and written in one step is what the general way makes of it: model, bytes, losses and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.mutations import WRONG, changed, mutations, places
from tests.laws.strategies import requests
from tests.laws.vectors import Case, each
from tests.shortcuts import switched
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.dialects.chat.request import decoder as chat_reading
from xenoglot.dialects.messages.part_decoder import BILLING_HEADER
from xenoglot.dialects.messages.request import decoder as messages_reading
from xenoglot.dialects.responses.request import input_decoder as responses_reading
from xenoglot.errors import FailureError, WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

pytestmark = pytest.mark.usefixtures("with_shortcuts")

DIALECTS = ("chat", "messages", "responses")

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}

PLAIN: dict[str, JSONObject] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "Fine"},
            {
                "role": "assistant",
                "content": "Again",
                "tool_calls": [
                    {"id": "b", "type": "function", "function": {"name": "f", "arguments": '{"city":"Rome"}'}},
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "Sun"},
            {"role": "tool", "tool_call_id": "c", "content": "Rain"},
            {"role": "assistant", "content": "Done"},
            {"role": "developer", "content": "Go on"},
            {"role": "user", "content": "And?"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "Weather", "parameters": SCHEMA}}],
        "max_tokens": 9,
        "temperature": 1,
    },
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Well"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"city": "Rome"}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "Sun"},
                    {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "Rain"}]},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Done"}]},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]},
            {"role": "assistant", "content": "So"},
            {"role": "user", "content": "And?"},
        ],
        "tools": [{"name": "f", "description": "Weather", "input_schema": SCHEMA}],
    },
    "responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Hi"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "One"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "b",
                "name": "f",
                "arguments": "",
                "status": "completed",
            },
            {"type": "function_call_output", "call_id": "a", "output": "Sun"},
            {"type": "function_call_output", "call_id": "b", "output": "Rain"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Done", "annotations": [], "logprobs": []}],
            },
            {"role": "assistant", "content": "So"},
            {"role": "user", "content": "And?"},
        ],
        "store": False,
        "tools": [{"type": "function", "name": "f", "description": "Weather", "parameters": SCHEMA, "strict": False}],
    },
}

ADDED: dict[str, tuple[JSON, ...]] = {
    "name": ("n", None),
    "id": ("x", ""),
    "status": ("completed", None),
    "strict": (True, None),
    "is_error": (True, False),
    "cache_control": ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {"type": "else"}),
    "type": ("message", "custom", None),
    "text": ("", " ", "[tool error] no"),
    "content": ("", " ", "[tool error] no", None),
    "output": ("", "[tool error] no"),
    "tool_calls": ([], None),
    "annotations": ([], None),
    "refusal": ("", "No"),
    "unknown": (1, None),
}
"""Fields that a message, a part, an item or a tool may have, or none of them has."""

CLOSED = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}

ODD: list[tuple[str, tuple[str | int, ...], JSON]] = [
    ("chat", ("messages", 3, "tool_calls", 0, "id"), "a b"),
    ("chat", ("messages", 4, "tool_call_id"), "a b"),
    ("chat", ("messages", 5, "tool_calls", 0, "function", "name"), "f.g"),
    ("chat", ("tools", 0, "function", "name"), "f" * 65),
    ("chat", ("tools", 0, "function", "strict"), True),
    *(("chat", ("temperature",), value) for value in (-1, 0, 2, 2.5, True, "1", None)),
    *(("chat", ("max_tokens",), value) for value in (0, 1, 5.0, 2**31, 2**40, True, None)),
    *(("chat", ("max_completion_tokens",), value) for value in (1, None)),
    *(("chat", ("stream_options",), value) for value in ({}, {"include_usage": True}, {"include_usage": None})),
    *(("chat", ("tool_choice",), value) for value in ("auto", "required", "any", "else", {"type": "auto"}, None)),
    *(("chat", ("stream",), value) for value in (True, False, None, 1)),
    *(("chat", ("store",), value) for value in (True, False, None)),
    ("messages", ("messages", 1, "content", 1, "id"), "a b"),
    ("messages", ("messages", 2, "content", 0, "tool_use_id"), "a b"),
    ("messages", ("tools", 0, "input_schema"), {"properties": {}}),
    ("messages", ("tools", 0, "input_schema"), {"type": "string"}),
    *(("messages", ("temperature",), value) for value in (-1, 0, 1, 1.5, True, None)),
    *(("messages", ("max_tokens",), value) for value in (-1, 0, 5.0, 2**31, 2**40, True, None)),
    *(("messages", ("top_k",), value) for value in (-1, 0, 5, None)),
    *(("messages", ("system",), value) for value in ("", "x", [], None, [{"type": "text", "text": BILLING_HEADER}])),
    *(("messages", ("metadata",), value) for value in ({}, {"user_id": "u"}, {"user_id": None}, None)),
    ("responses", ("tools", 0), {"type": "function", "name": "f", "description": "x", "parameters": CLOSED}),
    ("responses", ("input", 3, "call_id"), "a b"),
    ("responses", ("input", 5, "call_id"), "c" * 65),
    ("responses", ("input",), "Hi"),
    *(("responses", ("store",), value) for value in (True, None)),
    *(("responses", ("instructions",), value) for value in ("", None)),
    *(("responses", ("temperature",), value) for value in (0, 2, 2.5)),
    *(("responses", ("max_output_tokens",), value) for value in (0, 1, 5.0, 2**40)),
]
"""What stands just within the bounds, or just beyond."""

TARGETS = (
    Target(),
    Target(provider="p", custom_tools=True, developer_role=True, tool_result_media=True, prefill="native"),
    Target(text_parts=False, inline_system=False, reasoning_field="none", tool_name_limit=3, strict_tools=False),
)


def outcome(work: Callable[[], object]) -> object:
    """Return what `work` makes, or how it fails."""
    try:
        return work()
    except (WireError, FailureError) as error:
        return type(error), str(error)


def written(request: Request, dialect: str, target: Target) -> object:
    """Return the request as bytes, and its losses in their order."""
    losses = Losses()
    body = outcome(lambda: encode_json(get(dialect).encode_request(request, losses, target)))
    return body, tuple(losses)


def check_reading(dialect: str, body: JSON) -> None:
    decode = get(dialect).decode_request
    read = outcome(lambda: bounded(decode(body)))
    with switched(on=False):
        assert outcome(lambda: bounded(decode(body))) == read


def check_writing(request: Request) -> None:
    for dialect in DIALECTS:
        for target in TARGETS:
            made = written(request, dialect, target)
            with switched(on=False):
                assert written(request, dialect, target) == made


@st.composite
def near_plain(draw: st.DrawFn, dialect: str) -> JSON:
    """Return a plain request with some damage, or with more said of some of its objects."""
    body = PLAIN[dialect]
    for _ in range(draw(st.integers(0, 3))):
        objects = [path for path in places(body) if path and isinstance(_at(body, path), dict)]
        if not objects or draw(st.booleans()):
            body = draw(mutations(body))
            if not isinstance(body, dict):
                break
            continue
        key = draw(st.sampled_from(sorted(ADDED)))
        value = draw(st.sampled_from((*ADDED[key], draw(st.sampled_from(WRONG)))))
        path = draw(st.sampled_from(objects))
        body = changed(body, (*path, key), _putting(value))
    return body


def _at(body: JSON, path: tuple[str | int, ...]) -> JSON:
    for step in path:
        body = body[step]
    return body


def _putting(value: JSON) -> Callable[[JSON, str | int], None]:
    def put(inside: JSON, key: str | int) -> None:
        inside[key] = value

    return put


@each("request.json", where=lambda case: case.dialect.name in DIALECTS)
def test_vectors(case: Case) -> None:
    """Every request on disk is read and written alike both ways."""
    check_reading(case.dialect.name, case.request)
    check_writing(case.asked())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_plain_need_nothing_else(dialect: str) -> None:
    """Of a plain request every message and tool is read in one step."""
    general = {
        "chat": (chat_reading, "_decode_message"),
        "messages": (messages_reading, "_decode_message"),
        "responses": (responses_reading.InputDecoder, "_item"),
    }
    with patch.object(*general[dialect], side_effect=AssertionError("read the general way")):
        request = get(dialect).decode_request(PLAIN[dialect])
    check_reading(dialect, PLAIN[dialect])
    check_writing(request)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_the_nearly_plain(dialect: str, data: st.DataObject) -> None:
    """What is almost plain is read, refused and written as if there were no other way."""
    body = data.draw(near_plain(dialect))
    check_reading(dialect, body)
    try:
        request = get(dialect).decode_request(body)
    except (WireError, FailureError):
        return
    check_writing(request)


@pytest.mark.parametrize(("dialect", "path", "value"), ODD)
def test_bounds(dialect: str, path: tuple[str | int, ...], value: JSON) -> None:
    """R50: what is refused, fitted or left alone is so both ways."""
    body = changed(PLAIN[dialect], path, _putting(value))
    check_reading(dialect, body)
    try:
        request = get(dialect).decode_request(body)
    except WireError:
        return
    check_writing(request)


@given(requests())
def test_any_request(request: Request) -> None:
    """Whatever the model can hold is written alike both ways."""
    check_writing(request)
