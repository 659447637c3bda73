"""What is asked beside the answers of models: lists of models, and counts of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.matrix.matrix_gateway import MatrixGateway, model
from tests.matrix.sdk import SyncChat, SyncMessages, to_json
from tests.matrix.test_matrix import upstream_headers
from tests.matrix.upstream import json_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject

LISTED: dict[str, JSONObject] = {
    "chat": {
        "object": "list",
        "data": [{"id": "chat-small", "object": "model", "created": 1_700_000_000, "owned_by": "somebody"}],
    },
    "messages": {
        "data": [
            {
                "type": "model",
                "id": "messages-small",
                "display_name": "Small",
                "created_at": "2026-01-02T03:04:05Z",
                "max_input_tokens": 200_000,
                "max_tokens": 64_000,
                "lifecycle": "deprecated",
            }
        ],
        "has_more": False,
        "first_id": "messages-small",
        "last_id": "messages-small",
    },
}

KNOWN = {"created": 1_700_000_000, "owned_by": "somebody"}
MESSAGES_SMALL = {
    "created": 1_767_323_045,
    "owned_by": "",
    "name": "Small",
    **dict.fromkeys(("context_length", "context_window", "max_model_len"), 200_000),
    "max_completion_tokens": 64_000,
    "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000},
}
IN_2023 = "2023-11-14T22:13:20Z"

COUNTED: JSONObject = {
    "messages": [{"role": "user", "content": "Hi"}],
    "system": "Be brief.",
    "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
}


@pytest.fixture
def chat(matrix_gateway: MatrixGateway) -> Iterator[SyncChat]:
    """Give openai."""
    client = SyncChat(matrix_gateway.url)
    yield client
    client.close()


@pytest.fixture
def messages(matrix_gateway: MatrixGateway) -> Iterator[SyncMessages]:
    """Give anthropic."""
    client = SyncMessages(matrix_gateway.url)
    yield client
    client.close()


def will_list(matrix_gateway: MatrixGateway) -> None:
    """Have both upstreams say which models they have."""
    for name, upstream in matrix_gateway.upstreams.items():
        upstream.script(json_reply(LISTED[name]))


def assert_lists_requested(matrix_gateway: MatrixGateway) -> None:
    """Assert that both upstreams were asked, with nothing of the client's."""
    for name, upstream in matrix_gateway.upstreams.items():
        (received,) = upstream.received()
        path = {"messages": "/v1/models?limit=1000"}.get(name, "/v1/models")
        assert (received.method, received.path, received.body) == ("GET", path, b"")
        told = upstream_headers("nobody", name, "whole")
        del told["content-type"]
        assert received.lasting == told


def openai_model(name: str, fields: JSONObject) -> JSONObject:
    """Return one model in the shape of openai."""
    return {"id": name, "object": "model", **fields}


def test_models_for_openai(matrix_gateway: MatrixGateway, chat: SyncChat) -> None:
    will_list(matrix_gateway)
    assert [to_json(one) for one in chat.client.models.list()] == [
        openai_model("renamed", KNOWN),
        openai_model("alias", MESSAGES_SMALL),
        openai_model("chat-small", KNOWN),
        openai_model("messages-small", MESSAGES_SMALL),
    ]
    assert_lists_requested(matrix_gateway)


def test_models_for_anthropic(matrix_gateway: MatrixGateway, messages: SyncMessages) -> None:
    will_list(matrix_gateway)
    of_chat = {"type": "model", "created_at": IN_2023, "lifecycle": "active"}
    of_messages = LISTED["messages"]["data"][0]
    assert [to_json(one) for one in messages.client.models.list(limit=1000)] == [
        of_chat | {"id": "renamed", "display_name": "renamed"},
        of_messages | {"id": "alias"},
        of_chat | {"id": "chat-small", "display_name": "chat-small"},
        of_messages,
    ]
    assert_lists_requested(matrix_gateway)


def test_one_model(matrix_gateway: MatrixGateway, chat: SyncChat, messages: SyncMessages) -> None:
    will_list(matrix_gateway)
    assert to_json(chat.client.models.retrieve("chat-small")) == openai_model("chat-small", KNOWN)
    assert_lists_requested(matrix_gateway)
    will_list(matrix_gateway)
    assert to_json(messages.client.models.retrieve("messages-small")) == LISTED["messages"]["data"][0]
    assert_lists_requested(matrix_gateway)


def test_a_count_by_the_upstream(matrix_gateway: MatrixGateway, messages: SyncMessages) -> None:
    matrix_gateway.upstreams["messages"].script(json_reply({"input_tokens": 42}))
    counted = messages.client.beta.messages.count_tokens(model=model("messages"), betas=["counting-1"], **COUNTED)
    (received,) = matrix_gateway.upstreams["messages"].received()
    assert to_json(counted) == {"input_tokens": 42}
    assert messages.tap.headers["x-xenoglot-count"] == "exact"
    assert (received.method, received.path) == ("POST", "/v1/messages/count_tokens")
    assert received.json == {"model": model("messages"), **COUNTED}
    assert received.lasting == upstream_headers("messages", "messages", "whole") | {
        "anthropic-beta": "counting-1,token-counting-2024-11-01"
    }


def test_a_count_by_estimate(matrix_gateway: MatrixGateway, messages: SyncMessages) -> None:
    """The upstream is not asked where its dialect has no way to count."""
    counted = messages.client.messages.count_tokens(model=model("chat"), **COUNTED)
    assert (to_json(counted), messages.tap.headers["x-xenoglot-count"]) == ({"input_tokens": 29}, "estimate")
    assert [upstream.received() for upstream in matrix_gateway.upstreams.values()] == [[], []]


def test_a_count_where_the_upstream_has_none(matrix_gateway: MatrixGateway, messages: SyncMessages) -> None:
    error = {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}}
    matrix_gateway.upstreams["messages"].script(json_reply(error, 404))
    counted = messages.client.messages.count_tokens(model=model("messages"), **COUNTED)
    assert (to_json(counted), messages.tap.headers["x-xenoglot-count"]) == ({"input_tokens": 29}, "estimate")
