"""`POST /v1/parse`: text in, structure out, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import Backend
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines, RunningGateway
    from xenoglot.model.json import JSON

TOOLS = [{"type": "function", "function": {"name": "weather"}}]


def test_a_text_is_parsed(gateway_server: Callable[..., RunningGateway], access_lines: AccessLines) -> None:
    """No backend is asked: this one refuses whatever it is asked."""
    running = gateway_server({"nobody": Backend()})
    text = '<think>Hm</think><tool_call>{"name": "weather", "arguments": {}}</tool_call>'
    answer = running.request("POST", "/v1/parse", {"text": text, "tools": TOOLS, "tool_call_parser": "qwen25"})
    line = access_lines.next()
    said = answer.json
    assert said["content"][1].pop("id").startswith("call_")
    assert (answer.status, said) == (
        200,
        {
            "syntax": "auto",
            "content": [
                {"type": "reasoning", "text": "Hm"},
                {"type": "tool_call", "name": "weather", "arguments": "{}"},
            ],
            "finish_reason": "tool_calls",
            "text": "",
            "normal_text": "",
            "reasoning_text": "Hm",
            "calls": [{"tool_index": 0, "name": "weather", "parameters": "{}"}],
            "losses": [
                {"where": "$", "what": "tool_call_parser", "how": "dropped", "why": "the endpoint has no such field"}
            ],
        },
    )
    assert (line["route"], line["status"], line["backend"]) == ("/v1/parse", 200, None)


def test_a_call_is_mended(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"nobody": Backend()})
    text = "<tool_call>{'name': 'weather', 'arguments': {'city': 'Lyon'}}</tool_call>"
    said = running.request("POST", "/v1/parse", {"text": text, "syntax": "hermes", "tools": TOOLS, "repair": True}).json
    assert [(call["name"], call["parameters"]) for call in said["calls"]] == [("weather", '{"city":"Lyon"}')]
    assert [(loss["what"], loss["how"]) for loss in said["losses"]] == [("tool_call", "approximated")]


@pytest.mark.parametrize(
    ("body", "problem", "param"),
    [
        pytest.param(b"{", "not valid JSON: Input data was truncated", "$", id="no-json"),
        pytest.param({}, "text: required, expected str", "text", id="no-text"),
        pytest.param({"text": "", "tools": [1]}, "tools[0]: expected object, got int", "tools[0]", id="tools"),
        pytest.param({"text": "", "syntax": "latin"}, "there is no text syntax `latin`", "syntax", id="syntax"),
    ],
)
def test_what_cannot_be_parsed(
    gateway_server: Callable[..., RunningGateway], body: JSON | bytes, problem: str, param: str
) -> None:
    answer = gateway_server({"nobody": Backend()}).request("POST", "/v1/parse", body)
    error = answer.json["error"]
    assert (answer.status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert error["message"].startswith(problem)


def test_it_is_behind_the_key(gateway_server: Callable[..., RunningGateway]) -> None:
    config = config_for("nobody", keys=KeySettings(env=("KEY",)), secrets=Secrets({"KEY": "k"}))
    running = gateway_server({"nobody": Backend()}, config)
    statuses = [
        running.request("POST", "/v1/parse", {"text": "Hi"}, headers).status
        for headers in ({}, {"authorization": "Bearer k"})
    ]
    assert statuses == [401, 200]
