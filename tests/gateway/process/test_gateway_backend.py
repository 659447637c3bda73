"""A configuration as one backend: it answers as its gateway would, and opens no socket to listen on."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.client.server_scripts import HELLO, HELLO_STREAMED, chunk, error_answer, streamed
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.sync import Client
from xenoglot.errors import (
    ConfigurationError,
    IncompleteError,
    LossError,
    NotFoundError,
    OverloadedError,
    UpstreamError,
)
from xenoglot.model.json import JSONObject
from xenoglot.python_gateway import configured
from xenoglot.testing import Respond, ScriptRule, Upstream

BUSY = error_answer(503, {"message": "busy"})
ONCE = {"attempts": 1}


def two(first: Upstream, second: Upstream, **model: Any) -> JSONObject:  # noqa: ANN401  what stands in a file
    """A name that two servers answer to."""
    return {
        "upstreams": {
            "a": {"dialect": "chat", "base_url": first.url, "retry": ONCE},
            "b": {"dialect": "chat", "base_url": second.url, "retry": ONCE},
        },
        "models": [
            {"name": "fast", "targets": [{"upstream": "a", "model": "m1"}, {"upstream": "b", "model": "m2", "tier": 1}]}
            | model
        ],
    }


async def test_another_target_takes_over() -> None:
    async with Upstream(BUSY) as first, Upstream(HELLO) as second:
        async with AsyncClient(configured(two(first, second)), model="fast") as client:
            reply = await client.complete("Hi", top_k=3)
            assert reply.text == "Hello."
            assert [loss.what for loss in reply.losses] == ["top_k"]
            assert [model.id for model in await client.models()] == ["fast"]
        asked = second.requests[0].json
        assert isinstance(asked, dict)
        assert (len(first.requests), asked["model"]) == (1, "m2")


async def test_the_first_name_is_the_usual_one() -> None:
    async with (
        Upstream(HELLO_STREAMED) as first,
        Upstream(HELLO) as second,
        AsyncClient(configured(two(first, second))) as client,
    ):
        assert (await client.stream("Hi").reply()).text == "Hello."


async def test_errors_are_typed() -> None:
    async with (
        Upstream(BUSY) as first,
        Upstream(error_answer(401, {"message": "key sk-1"})) as second,
        AsyncClient(configured(two(first, second)), model="fast") as client,
    ):
        with pytest.raises(
            UpstreamError, match=f"401 from {second.url}/v1/chat/completions: no key was sent; set `key_env` under"
        ):
            await client.complete("Hi")
        with pytest.raises(NotFoundError, match="`other`"):
            await client.complete("Hi", model="other")


async def test_a_stream_that_breaks_off_raises() -> None:
    broken = streamed(chunk({"content": "a"}), done=False)
    async with (
        Upstream(broken) as first,
        Upstream(HELLO) as second,
        AsyncClient(configured(two(first, second))) as client,
    ):
        with pytest.raises(IncompleteError):
            await client.stream("Hi").reply()


async def test_what_the_file_refuses_to_lose_is_refused() -> None:
    async with Upstream(HELLO) as first, Upstream(HELLO) as second:
        async with AsyncClient(configured(two(first, second, on_loss="refuse"))) as client:
            with pytest.raises(LossError, match="top_k"):
                await client.complete("Hi", top_k=3)
        assert first.requests == second.requests == []


async def test_bytes_of_the_same_dialect_pass() -> None:
    async with Upstream(HELLO) as first, Upstream(HELLO) as second:
        async with AsyncClient(configured(two(first, second))) as client:
            body = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}], "zz": 1}
            assert (await client.raw(body))["id"] == "chatcmpl-1"
        assert first.requests[0].json == {**body, "model": "m1"}


async def test_embeddings_and_counts() -> None:
    body = {"object": "list", "model": "e", "data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 2}}
    made = (Respond(headers=(("content-type", "application/json"),), body=json.dumps(body).encode()),)
    async with Upstream(made) as first, Upstream(HELLO) as second:
        async with AsyncClient(configured(two(first, second)), model="fast") as client:
            assert (await client.embed("Hi")).vectors == ((0.5,),)
            assert await client.count_tokens("Hi") is None
        asked = first.requests[0].json
        assert isinstance(asked, dict)
        assert asked["model"] == "m1"


async def test_a_server_that_fails_is_tried_again_by_the_file_alone() -> None:
    async with Upstream(ScriptRule(steps=BUSY, times=2), HELLO) as server:
        told = {"upstreams": {"a": {"dialect": "chat", "base_url": server.url, "retry": {"attempts": 3, "base": 0.0}}}}
        async with AsyncClient(configured(told), model="m") as client:
            assert (await client.complete("Hi")).text == "Hello."
        assert len(server.requests) == 3


async def test_how_often_is_tried_is_the_files_to_say() -> None:
    async with Upstream(BUSY) as first, Upstream(BUSY) as second:
        async with AsyncClient(configured(two(first, second))) as client:
            with pytest.raises(OverloadedError):
                await client.complete("Hi")
        assert (len(first.requests), len(second.requests)) == (1, 1)
    async with Upstream(BUSY) as server:
        told = {"upstreams": {"a": {"dialect": "chat", "base_url": server.url, "retry": ONCE}}}
        async with AsyncClient(configured(told), model="m") as client:
            with pytest.raises(OverloadedError):
                await client.complete("Hi")
        assert len(server.requests) == 1


def test_a_file_for_a_program_that_blocks(tmp_path: Path) -> None:
    with Upstream(HELLO) as server:
        path = tmp_path / "xenoglot.toml"
        path.write_text(f'[upstreams.a]\ndialect = "chat"\nbase_url = "{server.url}"\n', encoding="utf-8")
        path.chmod(0o600)
        with Client(configured(str(path)), model="m") as client:
            assert client.complete("Hi").text == "Hello."


def test_mistakes_in_a_configuration_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError, match="upstreams"):
        configured({"upstreams": {"a": {"dialect": "latin"}}})
