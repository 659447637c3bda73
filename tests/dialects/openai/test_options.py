"""Options that OpenAI's dialects share: how the prompt is cached, and who judges prompt and answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot import translate_request
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

MARKING = Target(cache_marks=True)
WISHES: JSONObject = {
    "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
    "prompt_cache_retention": "24h",
    "moderation": {"model": "omni-moderation-latest", "policy": {"input": {"mode": "block"}}},
}
ASKED: dict[str, JSONObject] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20},
    "responses": {"model": "m", "input": "Hi", "max_output_tokens": 20},
}


@pytest.mark.parametrize(("client", "upstream"), [("chat", "responses"), ("responses", "chat")])
@pytest.mark.parametrize("mode", ["explicit", "implicit", None])
def test_wishes_cross_to_a_server_that_takes_cache_marks(client: str, upstream: str, mode: str | None) -> None:
    options = {"ttl": "30m"} if mode is None else {"mode": mode, "ttl": "30m"}
    wishes = WISHES | {"prompt_cache_options": options}
    losses = Losses()
    body = translate_request(ASKED[client] | wishes, client, upstream, losses, MARKING)
    written = options if mode is not None else {"mode": "implicit", "ttl": "30m"}
    assert {key: body.get(key) for key in WISHES} == wishes | {"prompt_cache_options": written}
    assert [loss for loss in losses if "cach" in loss.what or loss.what == "moderation"] == []


@pytest.mark.parametrize(("client", "upstream"), [("chat", "responses"), ("responses", "chat")])
def test_to_an_unknown_server_the_wishes_for_its_cache_are_losses(client: str, upstream: str) -> None:
    losses = Losses()
    body = translate_request(ASKED[client] | WISHES, client, upstream, losses)
    assert {key for key in WISHES if key in body} == {"moderation"}
    assert [str(loss) for loss in losses if "cache" in loss.what] == [
        "$ cache_retention dropped (the server decides what it caches)",
        "$ cache dropped (the server decides what it caches)",
    ]


@pytest.mark.parametrize("client", ASKED)
def test_explicit_marks_are_what_messages_has_anyway(client: str) -> None:
    losses = Losses()
    body = translate_request(ASKED[client] | WISHES, client, "messages", losses)
    assert "cache_control" not in body
    assert sorted(str(loss) for loss in losses if loss.what != "max_tokens") == [
        "$ cache emulated (without a mark for the whole the server caches up to the marks inside)",
        "$ cache.ttl dropped (each mark has a lifetime of its own)",
        "$ cache_retention dropped (the dialect has no such field)",
        "$ moderation dropped (the dialect has no such field)",
    ]


def test_a_lifetime_of_another_dialect_is_left_to_the_server() -> None:
    asked: JSONObject = {
        "model": "m",
        "max_tokens": 20,
        "messages": [{"role": "user", "content": "Hi"}],
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }
    losses = Losses()
    body = translate_request(asked, "messages", "chat", losses, MARKING)
    assert body["prompt_cache_options"] == {"mode": "implicit"}
    assert [str(loss) for loss in losses] == ["$ cache.ttl approximated (the server's default lifetime)"]


@pytest.mark.parametrize("client", ASKED)
def test_an_unknown_mode_is_carried(client: str) -> None:
    options = {"mode": "later", "ttl": "30m"}
    body = ASKED[client] | {"prompt_cache_options": options}
    assert translate_request(body, client, client)["prompt_cache_options"] == options
