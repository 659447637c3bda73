"""Losses are marked at the value of the body that was lost, whatever its index is in the canonical model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import Losses, translate
from xenoglot.gateway.admin.requests import CapturedBody
from xenoglot.gateway.console.inspection import loss_places
from xenoglot.gateway.console.inspection.bodies import compare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSON, JSONObject

MARK: JSONObject = {"type": "ephemeral"}
MESSAGES: JSONObject = {
    "model": "m",
    "max_tokens": 9,
    "top_k": 3,
    "system": [{"type": "text", "text": "Be kind.", "cache_control": MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hello there", "cache_control": MARK}]},
        {"role": "assistant", "content": "Hm"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Read."},
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "A poem"},
                    "citations": {"enabled": True},
                },
            ],
        },
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": MARK, "eager_input_streaming": True}],
}
CHAT: JSONObject = {
    "model": "m",
    "seed": 3,
    "messages": [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "name": "bob",
            "content": [
                {"type": "text", "text": "Hear"},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            ],
        },
    ],
    "tools": [{"type": "function", "function": {"name": "name", "parameters": {"type": "object"}}}],
}
ANSWER: JSONObject = {
    "id": "a",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "One"}, "finish_reason": "stop"},
        {"index": 1, "message": {"role": "assistant", "content": "Two"}, "finish_reason": "stop"},
    ],
}


def marked(part: str, body: JSON, source: str, target: str) -> Mapping[str, set[str]]:
    """Return what is marked at each place of a body that is translated."""
    losses = Losses()
    text = json.dumps(body)
    translate(text.encode(), source, target, losses)
    one = CapturedBody(request="r", part=part, media="application/json", truncated=False, text=text, expires=0.0)
    spoken = (source, target) if part == "client_request" else (target, source)
    (side,) = compare({part: one}, spoken, list(losses)).sides
    path: list[str] = []
    found: dict[str, set[str]] = {}
    for row in side.rows:
        path[row.depth :] = [row.key]
        if row.losses:
            found[".".join(path)] = {loss.what for loss in row.losses}
    return found


@pytest.mark.parametrize(
    ("part", "body", "source", "target", "expected"),
    [
        pytest.param(
            "client_request",
            MESSAGES,
            "messages",
            "chat",
            {
                "top_k": {"top_k"},
                "system.0.cache_control": {"cache"},
                "messages.0.content.0.cache_control": {"cache"},
                "messages.2.content.1.source.data": {"citable", "file"},
                "tools.0.cache_control": {"cache"},
                "tools.0.eager_input_streaming": {"eager_input_streaming"},
            },
            id="indexes-differ",
        ),
        pytest.param(
            "client_request",
            CHAT,
            "chat",
            "messages",
            {"seed": {"seed"}, "messages.1.name": {"name"}, "messages.1.content.1.input_audio.data": {"audio"}},
            id="name-of-a-message-not-of-a-tool",
        ),
    ],
)
def test_places(part: str, body: JSON, source: str, target: str, expected: Mapping[str, set[str]]) -> None:
    assert marked(part, body, source, target) == expected


def test_a_second_answer_is_marked_in_the_answer() -> None:
    found = marked("upstream_response", ANSWER, "chat", "messages")
    assert any(place.startswith("choices.1.") for place in found)


def test_a_body_that_cannot_be_decoded_has_losses_of_fields() -> None:
    broken: JSON = {**MESSAGES, "messages": "none"}
    text = json.dumps(broken)
    one = CapturedBody(request="r", part="client_request", media="", truncated=False, text=text, expires=0.0)
    losses = Losses()
    translate(json.dumps(MESSAGES).encode(), "messages", "chat", losses)
    found = compare({"client_request": one}, ("messages", "chat"), list(losses))
    assert [place.loss.what for place in found.losses if place.id] == ["top_k"]


def test_a_value_with_many_losses_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    plain = loss_places._Finder._anchor

    def counted(self: loss_places._Finder, where: str) -> object:
        looked.append(where)
        return plain(self, where)

    monkeypatch.setattr(loss_places._Finder, "_anchor", counted)
    marked("client_request", MESSAGES, "messages", "chat")
    assert len(looked) == len(set(looked))


def test_values_that_only_one_side_has_are_marked_there() -> None:
    """Counts that the client's dialect requires, and the id that its answer has no field for."""
    chat: JSONObject = {
        "id": "a",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    for client, expected in (
        ("responses", {("client_response", "cached_tokens"), ("client_response", "reasoning_tokens")}),
        ("converse", {("upstream_response", "id")}),
    ):
        losses = Losses()
        made = translate(chat, "chat", client, losses)
        bodies = {
            part: CapturedBody(
                request="r", part=part, media="application/json", truncated=False, text=json.dumps(body), expires=0.0
            )
            for part, body in (("upstream_response", chat), ("client_response", made))
        }
        shown = compare(bodies, (client, "chat"), list(losses))
        marks = {(side.part, row.key) for side in shown.sides for row in side.rows if row.losses}
        assert expected <= marks
        assert [one.loss for one in shown.losses if not one.id] == []
