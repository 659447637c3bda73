"""Ready answers are what a server of the dialect says: our own decoders read them, and so do the vendors' SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from tests.backends.raw_server import leakless
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.response import Response
from xenoglot.testing import BROKEN, CUT, SILENT, AsyncRawClient, Upstream, answers, polyglot, refusal
from xenoglot.testing.client import RawClient

if TYPE_CHECKING:
    from xenoglot.testing.script import Steps

CALL = ("look_up", '{"city":"Oslo"}')


def answer_bytes(response: Response | Failure) -> tuple[str, list[tuple[str, str]], str | None]:
    assert isinstance(response, Response)
    (candidate,) = response.candidates
    text = "".join(part.text for part in candidate.content if isinstance(part, Text))
    calls = [(part.name, part.arguments) for part in candidate.content if isinstance(part, ToolCall)]
    return text, calls, candidate.finish.reason if candidate.finish else None


@pytest.mark.parametrize("name", names())
def test_whole_and_streamed_say_the_same(name: str) -> None:
    made, dialect = answers(name), get(name)
    events = list(through([made.stream], Pipeline(dialect.framing.decoder(), dialect.stream_decoder(), Grammar())))
    assert (
        answer_bytes(fold(events))
        == answer_bytes(dialect.decode_response(decode_json(made.body)))
        == ("Hello.", [], "stop")
    )
    assert [event.text for event in events if isinstance(event, TextDelta) and event.text] == ["Hel", "lo."]


@pytest.mark.parametrize("name", ["chat", "messages", "responses", "gemini", "ollama", "llama_stack"])
def test_a_call(name: str) -> None:
    made, dialect = answers(name, tool=CALL, reasoning="Hm."), get(name)
    events = through([made.stream], Pipeline(dialect.framing.decoder(), dialect.stream_decoder(), Grammar()))
    expected = ("Hello.", [CALL], "tool_calls")
    assert answer_bytes(fold(events)) == answer_bytes(dialect.decode_response(decode_json(made.body))) == expected


@pytest.mark.parametrize("then", [CUT, BROKEN, SILENT], ids=["cut", "broken", "silent"])
@leakless
async def test_a_stream_that_does_not_end(then: Steps) -> None:
    made = answers("chat")
    async with Upstream(made.streamed(upto=-1, then=then)) as upstream, AsyncRawClient(upstream.url) as client:
        await client.send(b"GET / HTTP/1.1\r\n\r\n")
        begun = await client.read_until(b'"usage":{')
        assert begun.count(b"data: ") == len(made.frames) - 1
        if then is not SILENT:
            reply = await client.reply(begun=begun)
            assert reply.ending == ("fin" if then is CUT else "reset")


def test_the_sdks_read_them() -> None:
    with Upstream(*polyglot(tool=CALL)) as upstream:
        with openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0) as client:
            ask: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            whole = client.chat.completions.create(**ask)
            with client.chat.completions.stream(**ask) as stream:
                streamed = stream.get_final_completion()
            assert [each.choices[0].message.content for each in (whole, streamed)] == ["Hello."] * 2
            assert client.responses.create(model="m", input="x").output_text == "Hello."
            assert [model.id for model in client.models.list()] == ["scripted"]
        with anthropic.Anthropic(base_url=upstream.url, api_key="k", max_retries=0) as claude:
            message = claude.messages.create(max_tokens=5, **ask)
            with claude.messages.stream(max_tokens=5, **ask) as events:
                again = events.get_final_message()
            assert [block.type for block in message.content] == [block.type for block in again.content]


@pytest.mark.parametrize("name", names())
def test_a_refusal(name: str) -> None:
    steps = refusal(name, Failure(kind="rate_limit", message="slow down"), (("retry-after", "3"),))
    with Upstream(steps) as upstream, RawClient(upstream.url) as client:
        reply = client.request("POST", "/", b"{}")
    failure = get(name).decode_error(reply.status or 0, reply.json)
    assert (reply.status, reply.header("retry-after"), failure.kind) == (429, "3", "rate_limit")


def test_a_dialect_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError):
        answers("klingon")
