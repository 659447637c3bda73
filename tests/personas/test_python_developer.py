"""Ten minutes in Python: an answer, a stream, a typed value, a tool, asyncio, a translation; and first mistakes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.personas.new_home import Home

FIRST = """
import asyncio
from dataclasses import dataclass
from typing import Literal

import xenoglot


@dataclass
class City:
    name: str
    continent: Literal["Africa", "America", "Asia", "Europe"]


@xenoglot.tool
def weather(city: str) -> str:
    '''Look up today's weather.'''
    return f"In {city} it is sunny."


async def later() -> str:
    async with xenoglot.AsyncClient() as client:
        return str(await client.complete("What is the capital of France?", max_tokens=40))


with xenoglot.Client() as client:
    reply = client.complete("What is the capital of France?", max_tokens=40)
    print("Paris" in str(reply), reply.finish.reason, reply.losses)
    with client.stream("What is the capital of France?", max_tokens=40) as stream:
        print("".join(stream.texts()) == reply.text)
    print(client.parse("Describe Paris.", City, max_tokens=60).value.continent)
    result = client.run("What is the weather in Paris?", [weather], tool_choice="required", max_tokens=100)
    print(result.outcome, result.calls)
print("Paris" in asyncio.run(later()))
"""
BODY = {"model": "m", "max_tokens": 9, "top_k": 3, "messages": [{"role": "user", "content": "Hi"}]}
TRANSLATED = """
import json

import xenoglot

losses = xenoglot.Losses()
with open("request.json") as file:
    print(json.dumps(xenoglot.translate_request(json.load(file), "messages", "chat", losses)))
print(*losses)
"""
WRONG = """
import xenoglot

with xenoglot.Client("http://127.0.0.1:9") as client:
    client.complete("Hi", model="m")
"""


def test_from_an_import_to_a_tool_loop(home_with_weights: Home) -> None:
    home = home_with_weights
    home.write("first.py", FIRST)
    assert home.run("python first.py").splitlines() == ["True stop ()", "True", "Europe", "answered 1", "True"]


def test_a_request_is_translated_without_a_server(home: Home) -> None:
    home.write("request.json", json.dumps(BODY))
    home.write("translated.py", TRANSLATED)
    body, losses = home.run("python translated.py").splitlines()
    assert json.loads(body)["messages"] == BODY["messages"]
    assert "top_k" in losses


def test_a_server_that_is_not_there_is_named(home: Home) -> None:
    home.write("wrong.py", WRONG)
    printed = home.run("python wrong.py", code=1)
    assert printed.splitlines()[-1].endswith(
        "cannot connect to http://127.0.0.1:9: connection refused; is the server running?"
    )
