"""What a client is made with, and how long its calls may take: wrong things are refused before anything is sent."""

import copy
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.client.server_scripts import HELLO, scripted_client
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.sync import Client
from xenoglot.errors import ConfigurationError, DeadlineError, InvalidRequestError
from xenoglot.model.json import JSONObject
from xenoglot.testing import SILENT


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"upstream": 3}, "`upstream`: found a `int`", id="upstream"),
        pytest.param({"deadlines": 30}, "`deadlines`: found a `int`", id="deadlines"),
        pytest.param({"retry": 3}, "`retry`: found a `int`", id="retry"),
        pytest.param({"proxy": 3}, "`proxy`: found a `int`", id="proxy"),
        pytest.param({"emulate": True}, "`emulate`: found a `bool`", id="emulate"),
    ],
)
def test_a_client_of_wrong_things_is_not_made(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        AsyncClient(**settings)


HI: JSONObject = {"messages": [{"role": "user", "content": "Hi"}]}
TIMED: dict[str, Callable[[AsyncClient, Any], Awaitable[object]]] = {
    "complete": lambda client, timeout: client.complete("Hi", timeout=timeout),
    "stream": lambda client, timeout: client.stream("Hi", timeout=timeout).reply(),
    "embed": lambda client, timeout: client.embed("Hi", timeout=timeout),
    "rerank": lambda client, timeout: client.rerank("Hi", ["a"], timeout=timeout),
    "count": lambda client, timeout: client.count_tokens("Hi", timeout=timeout),
    "raw": lambda client, timeout: client.raw(HI, timeout=timeout),
    "raw-stream": lambda client, timeout: anext(client.raw_stream(HI, timeout=timeout)),
}


@pytest.mark.parametrize("call", TIMED)
@pytest.mark.parametrize("limit", [0, "long", True, float("nan")])
async def test_a_timeout_that_is_no_time_is_refused(call: str, limit: object) -> None:
    async with scripted_client(HELLO) as (client, server):
        with pytest.raises(InvalidRequestError) as caught:
            await TIMED[call](client, limit)
    assert (caught.value.failure.param, server.requests) == ("$.timeout", [])


@pytest.mark.parametrize("call", sorted(TIMED.keys() - {"count"}))
@pytest.mark.parametrize("limit", [0.05, Deadlines(first_byte=0.05)], ids=["total", "first-byte"])
async def test_every_call_has_its_time(call: str, limit: object) -> None:
    async with scripted_client(SILENT) as (client, _):
        with pytest.raises(DeadlineError):
            await TIMED[call](client, limit)


@pytest.mark.parametrize("kind", [AsyncClient, Client])
def test_a_client_is_not_moved(kind: type[AsyncClient | Client]) -> None:
    client = kind("http://127.0.0.1:9", key="secret")
    for move in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="make one there"):
            move(client)
