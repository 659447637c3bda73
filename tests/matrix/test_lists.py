"""What is asked beside the answers of models: lists of models, and counts of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.matrix.house import House, model
from tests.matrix.sdk import SyncChat, SyncMessages, said
from tests.matrix.test_matrix import headers_told
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
MESSAGES_SMALL = {"created": 1_767_323_045, "owned_by": "", "name": "Small", "context_length": 200_000}
IN_2023 = "2023-11-14T22:13:20Z"

COUNTED: JSONObject = {
    "messages": [{"role": "user", "content": "Hi"}],
    "system": "Be brief.",
    "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
}


@pytest.fixture
def chat(house: House) -> Iterator[SyncChat]:
    """Give openai."""
    client = SyncChat(house.url)
    yield client
    client.close()


@pytest.fixture
def messages(house: House) -> Iterator[SyncMessages]:
    """Give anthropic."""
    client = SyncMessages(house.url)
    yield client
    client.close()


def will_list(house: House) -> None:
    """Have both upstreams say which models they have."""
    for name, upstream in house.upstreams.items():
        upstream.will(json_reply(LISTED[name]))


def assert_asked_for_lists(house: House) -> None:
    """Assert that both upstreams were asked, with nothing of the client's."""
    for name, upstream in house.upstreams.items():
        (received,) = upstream.received()
        path = {"messages": "/v1/models?limit=1000"}.get(name, "/v1/models")
        assert (received.method, received.path, received.body) == ("GET", path, b"")
        told = headers_told("nobody", name, "whole")
        del told["content-type"]
        assert received.lasting == told


def openai_model(name: str, fields: JSONObject) -> JSONObject:
    """Return one model in the shape of openai."""
    return {"id": name, "object": "model", **fields}


def test_models_for_openai(house: House, chat: SyncChat) -> None:
    will_list(house)
    assert [said(one) for one in chat.client.models.list()] == [
        openai_model("renamed", KNOWN),
        openai_model("alias", MESSAGES_SMALL),
        openai_model("chat-small", KNOWN),
        openai_model("messages-small", MESSAGES_SMALL),
    ]
    assert_asked_for_lists(house)


def test_models_for_anthropic(house: House, messages: SyncMessages) -> None:
    will_list(house)
    of_chat = {"type": "model", "created_at": IN_2023, "lifecycle": "active"}
    of_messages = LISTED["messages"]["data"][0]
    assert [said(one) for one in messages.client.models.list(limit=1000)] == [
        of_chat | {"id": "renamed", "display_name": "renamed"},
        of_messages | {"id": "alias"},
        of_chat | {"id": "chat-small", "display_name": "chat-small"},
        of_messages,
    ]
    assert_asked_for_lists(house)


def test_one_model(house: House, chat: SyncChat, messages: SyncMessages) -> None:
    will_list(house)
    assert said(chat.client.models.retrieve("chat-small")) == openai_model("chat-small", KNOWN)
    assert_asked_for_lists(house)
    will_list(house)
    assert said(messages.client.models.retrieve("messages-small")) == LISTED["messages"]["data"][0]
    assert_asked_for_lists(house)


def test_a_count_by_the_upstream(house: House, messages: SyncMessages) -> None:
    house.upstreams["messages"].will(json_reply({"input_tokens": 42}))
    counted = messages.client.beta.messages.count_tokens(model=model("messages"), betas=["counting-1"], **COUNTED)
    (received,) = house.upstreams["messages"].received()
    assert said(counted) == {"input_tokens": 42}
    assert messages.tap.headers["x-xenoglot-count"] == "exact"
    assert (received.method, received.path) == ("POST", "/v1/messages/count_tokens")
    assert received.json == {"model": model("messages"), **COUNTED}
    assert received.lasting == headers_told("messages", "messages", "whole") | {
        "anthropic-beta": "counting-1,token-counting-2024-11-01"
    }


def test_a_count_by_estimate(house: House, messages: SyncMessages) -> None:
    """The upstream is not asked where its dialect has no way to count."""
    counted = messages.client.messages.count_tokens(model=model("chat"), **COUNTED)
    assert (said(counted), messages.tap.headers["x-xenoglot-count"]) == ({"input_tokens": 29}, "estimate")
    assert [upstream.received() for upstream in house.upstreams.values()] == [[], []]


def test_a_count_where_the_upstream_has_none(house: House, messages: SyncMessages) -> None:
    error = {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}}
    house.upstreams["messages"].will(json_reply(error, 404))
    counted = messages.client.messages.count_tokens(model=model("messages"), **COUNTED)
    assert (said(counted), messages.tap.headers["x-xenoglot-count"]) == ({"input_tokens": 29}, "estimate")
