"""A server whose model writes calls and thoughts as text, behind real clients: conversations with a tool.

The upstream is a real HTTP server of the dialect `chat` that knows nothing of tools; what it is sent is compared whole.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Self

import anthropic
import openai
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory
from xenoglot.model.content import Text
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.text import registry
from xenoglot.text.tools.render import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject

FAMILIES = ("hermes", "qwen3_coder", "llama3", "mistral", "deepseek_v31", "kimi_k2", "glm45", "gpt_oss")
ARGUMENTS = '{"city": "Paris"}'
TOOL: JSONObject = {
    "name": "get_weather",
    "description": "Tell the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class TextModels:
    """A gateway before a server that takes no tools: each model is called as the family whose text it writes."""

    def __init__(self) -> None:
        self.speaker = DialectServer(dialects.get("chat"))
        self.url = ""
        self._stack = ExitStack()
        self._ready = threading.Event()
        self._server: GatewayServer | None = None
        self._thread = threading.Thread(target=lambda: asyncio.Runner(loop_factory=loop_factory()).run(self._serve()))

    def __enter__(self) -> Self:
        self._stack.enter_context(self.speaker)
        self._thread.start()
        if not self._ready.wait(TIMEOUT):
            self._stack.close()
            pytest.fail("the gateway did not start")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(TIMEOUT)
        self._stack.close()

    async def _serve(self) -> None:
        plain = {
            "server": {"port": 0, "drain_seconds": 0.0},
            "upstreams": {"main": {"dialect": "chat", "base_url": self.speaker.url, "emulate": {"tools": True}}},
            "models": [{"name": name, "text_syntax": name} for name in FAMILIES],
            "store": {"url": "memory"},
        }
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(build_gateway(check(plain, {}, "the tests")))
            self._server = GatewayServer(gateway)
            listener = stack.enter_context(bind("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._ready.set()
            await self._server.serve([listener])


@pytest.fixture(scope="module")
def models() -> Iterator[TextModels]:
    """Give the gateway and its server."""
    with TextModels() as running:
        yield running


def text_response(text: str) -> Response:
    """An answer of words, as the model has it."""
    return Response(
        id="chatcmpl-1",
        candidates=(Candidate(content=(Text(text=text),), finish=Finish(reason="stop")),),
        usage=Usage(input_tokens=9, output_tokens=4),
    )


def seen(models: TextModels) -> list[tuple[str, str]]:
    """The last request that the server was sent: its turns; it has no tools."""
    request = models.speaker.requests[-1]
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == ((), None, None)
    return [
        (turn.role, "".join(part.text for part in turn.content if isinstance(part, Text))) for turn in request.messages
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_openai_sdk(models: TextModels, family: str, stream: bool) -> None:  # noqa: FBT001  a case
    call = written(registry.get(family), [("get_weather", ARGUMENTS)])
    models.speaker.script(text_response(call), text_response("It is sunny."))
    with openai.OpenAI(base_url=f"{models.url}/v1", api_key="none", max_retries=0) as client:
        messages: list[JSONObject] = [{"role": "user", "content": "Weather in Paris?"}]
        said = {"model": family, "messages": messages, "tools": [{"type": "function", "function": TOOL}]}
        if stream:
            with client.chat.completions.stream(**said) as events:  # type: ignore[arg-type]
                completion = events.get_final_completion()
        else:
            completion = client.chat.completions.create(**said)  # type: ignore[call-overload]
        choice = completion.choices[0]
        assert choice.message.tool_calls is not None
        (made,) = choice.message.tool_calls
        assert (choice.finish_reason, choice.message.content or None) == ("tool_calls", None)
        assert (made.function.name, json.loads(made.function.arguments)) == ("get_weather", {"city": "Paris"})
        first = seen(models)
        assert [role for role, _ in first] == ["system", "user"]
        assert "get_weather" in first[0][1]
        messages += [
            {"role": "assistant", "tool_calls": [made.model_dump(include={"id", "type", "function"})]},
            {"role": "tool", "tool_call_id": made.id, "content": "sunny"},
        ]
        assert client.chat.completions.create(**said).choices[0].message.content == "It is sunny."  # type: ignore[call-overload]
        second = seen(models)
        assert second[:2] == first
        assert [role for role, _ in second[2:]] == ["assistant", "user"]
        assert second[2][1] == written(registry.get(family), [("get_weather", made.function.arguments)])
        assert "sunny" in second[3][1]


@pytest.mark.parametrize("family", FAMILIES)
def test_anthropic_sdk(models: TextModels, family: str) -> None:
    call = written(registry.get(family), [("get_weather", ARGUMENTS)])
    models.speaker.script(text_response(call), text_response("It is sunny."))
    with anthropic.Anthropic(base_url=models.url, api_key="none", max_retries=0) as client:
        tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
        messages: list[JSONObject] = [{"role": "user", "content": "Weather in Paris?"}]
        said = {"model": family, "max_tokens": 99, "messages": messages, "tools": [tool]}
        with client.messages.stream(**said) as events:  # type: ignore[arg-type]
            message = events.get_final_message()
        (block,) = message.content
        assert block.type == "tool_use"
        assert (message.stop_reason, block.name, block.input) == ("tool_use", "get_weather", {"city": "Paris"})
        messages += [
            {"role": "assistant", "content": [block.model_dump(include={"type", "id", "name", "input"})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}]},
        ]
        last = client.messages.create(**said)  # type: ignore[call-overload]
        assert [part.text for part in last.content] == ["It is sunny."]
        assert [role for role, _ in seen(models)] == ["system", "user", "assistant", "user"]
