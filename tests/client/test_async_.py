"""The asynchronous client: every kind of call, in every dialect, and what is left when it is left early."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.client.server_scripts import HELLO, HELLO_STREAMED, chunk, scripted_client, streamed
from tests.exact import exact
from xenoglot.backends.backend import Backend, Call, EventAnswer
from xenoglot.backends.callable import Callable
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.wrappers.emulation_settings import Emulation
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.answer_stream import AsyncReplyStream
from xenoglot.dialect_registry import names
from xenoglot.errors import (
    ConfigurationError,
    DeadlineError,
    IncompleteError,
    InvalidRequestError,
    LossError,
    UpstreamError,
)
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import BlockStarted, Event, Ping, Started, TextDelta
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.providers.costs import Price, Prices
from xenoglot.testing import (
    SILENT,
    RequestMatcher,
    Respond,
    ResponseHead,
    ScriptRule,
    Upstream,
    WaitEvent,
    answers,
    polyglot,
)

DONE = Finish(reason="stop")
SAID = Response(id="r1", model="m1", candidates=(Candidate(content=(Text(text="Hello."),), finish=DONE),))


@pytest.mark.parametrize("dialect", [name for name in names() if name not in {"completions", "generate"}])
async def test_every_dialect(dialect: str) -> None:
    async with (
        Upstream(*polyglot(usage=Usage(input_tokens=7, output_tokens=3))) as server,
        AsyncClient(server.url, dialect=dialect, model="scripted", key="k", proxy=None) as client,
    ):
        reply = await client.complete("Hi", system="Be brief.", max_tokens=9)
        async with client.stream("Hi") as stream:
            texts = [text async for text in stream.texts()]
    assert (reply.text, "".join(texts)) == ("Hello.", "Hello.")
    assert reply.finish is not None
    assert reply.finish.reason == "stop"


@pytest.mark.parametrize("dialect", [name for name in names() if name not in {"completions", "generate"}])
async def test_the_models_of_every_dialect(dialect: str) -> None:
    rules = answers(dialect).rules()
    async with Upstream(*rules) as server, AsyncClient(server.url, dialect=dialect, proxy=None) as client:
        assert [model.id.removeprefix("models/") for model in await client.models()] == ["scripted"]


async def test_a_text_is_continued_where_that_is_the_dialect() -> None:
    async with (
        Upstream(*polyglot()) as server,
        AsyncClient(server.url, dialect="completions", model="scripted", proxy=None) as client,
    ):
        assert (await client.raw({"prompt": "Once"}, "completions"))["choices"][0]["text"] == "Hello."


class Watched:
    """A backend that says its words one by one, and notes when it is closed."""

    name = "watched"

    def __init__(self) -> None:
        self.closed = 0
        self.said = 0

    async def answer(self, _call: Call) -> EventAnswer:
        """Begin."""
        batches = self._batches()

        async def aclose() -> None:
            self.closed += 1
            await batches.aclose()

        return EventAnswer(batches=batches, aclose=aclose)

    async def count(self, _call: Call) -> int | None:
        """Nobody knows."""
        return None

    async def models(self) -> Sequence[ModelInfo]:
        """None."""
        return ()

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _batches(self) -> AsyncGenerator[Sequence[Event], None]:
        yield (Ping(),)
        yield (Started(), BlockStarted(part=Text(text="")))
        while True:
            self.said += 1
            yield (TextDelta(text="a"),)


async def test_a_stream_left_early_closes_its_source_at_once() -> None:
    backend = Watched()
    async with AsyncClient(backend) as client:
        async with client.stream("Hi") as stream:
            async for _ in stream.texts():
                break
            assert backend.closed == 0
        assert (backend.closed > 0, backend.said) == (True, 1)
        assert [event async for event in stream] == []
        with pytest.raises(RuntimeError, match="no whole answer"):
            await stream.reply()


async def test_a_stream_left_early_closes_the_connection_at_once() -> None:
    script = streamed(chunk({"content": "a"}), done=False, then=SILENT)
    async with scripted_client(script) as (client, server):
        async with client.stream("Hi") as stream:
            async for _ in stream.texts():
                break
        await server.connections[0].gone()


async def test_a_stream_may_be_stopped_by_somebody_else() -> None:
    script = streamed(chunk({"content": "a"}), done=False, then=SILENT)
    async with scripted_client(script) as (client, server):
        stream = client.stream("Hi")
        begun = asyncio.Event()
        reading = asyncio.create_task(_texts(stream, begun))
        await begun.wait()
        await stream.aclose()
        assert await reading == ["a"]
        await server.connections[0].gone()


async def test_a_backend_of_this_process_may_be_stopped_by_somebody_else() -> None:
    go = asyncio.Event()

    async def say(_request: Request) -> AsyncGenerator[str]:
        yield "a"
        await go.wait()
        yield "b"

    async with AsyncClient(Callable(say, "slow")) as client:
        stream = client.stream("Hi")
        begun = asyncio.Event()
        reading = asyncio.create_task(_texts(stream, begun))
        await begun.wait()
        await stream.aclose()
        go.set()
        assert await reading == ["a"]


async def _texts(stream: AsyncReplyStream, begun: asyncio.Event) -> list[str]:
    found: list[str] = []
    async for text in stream.texts():
        found.append(text)
        begun.set()
    return found


async def test_a_cancelled_call_closes_the_connection() -> None:
    async with scripted_client(SILENT) as (client, server):
        call = asyncio.create_task(client.complete("Hi"))
        await server.until(lambda: len(server.requests) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.connections[0].gone()


async def test_a_stream_shows_how_the_answer_grows() -> None:
    async with scripted_client(HELLO_STREAMED) as (client, _), client.stream("Hi") as stream:
        grown = [stream.response.candidates[0].content async for event in stream if isinstance(event, TextDelta)]
        whole = await stream.reply()
    assert grown == [(Text(text="Hel"),), (Text(text="Hello."),)]
    assert whole.text == "Hello."


async def test_a_backend_without_an_end_is_told() -> None:
    async with AsyncClient(Scripted([Started()])) as client:
        with pytest.raises(IncompleteError):
            await client.complete("Hi")
    whole = Response(candidates=(Candidate(content=(Text(text="a"),)),))
    async with AsyncClient(Scripted(whole)) as client:
        with pytest.raises(IncompleteError):
            await client.stream("Hi").reply()


@pytest.mark.parametrize(
    ("deadlines", "script"),
    [
        pytest.param(Deadlines(first_byte=0.05), SILENT, id="first-byte"),
        pytest.param(Deadlines(idle=0.05), streamed(chunk({"content": "a"}), done=False, then=SILENT), id="idle"),
        pytest.param(Deadlines(total=0.05), SILENT, id="total"),
    ],
)
@pytest.mark.parametrize("once", [False, True], ids=["of-the-client", "of-one-call"])
async def test_deadlines(deadlines: Deadlines, script: tuple[ResponseHead, ...], once: bool) -> None:  # noqa: FBT001  a case
    async with scripted_client(script, deadlines=None if once else deadlines) as (client, server):
        with pytest.raises(DeadlineError):
            await client.stream("Hi", timeout=deadlines if once else None).reply()
        await server.connections[0].gone()


async def test_calls_with_deadlines_of_their_own_share_the_connection() -> None:
    async with scripted_client(HELLO) as (client, server):
        await client.complete("Hi")
        await client.complete("Hi", timeout=Deadlines(idle=3.0))
        assert len(server.connections) == 1


async def test_losses_are_told_and_may_be_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted_client(HELLO, on_loss="warn") as (client, _):
        reply = await client.complete("Hi", top_k=3)
    assert [(loss.what, loss.how) for loss in reply.losses] == [("top_k", "dropped")]
    assert "top_k dropped" in caplog.text
    caplog.clear()
    async with scripted_client(HELLO, on_loss="ignore") as (client, _):
        assert (await client.complete("Hi", top_k=3)).losses
    assert caplog.text == ""
    async with scripted_client(HELLO, on_loss="refuse") as (client, server):
        with pytest.raises(LossError, match="top_k"):
            await client.complete("Hi", top_k=3)
        with pytest.raises(LossError, match="top_k"):
            await client.stream("Hi", top_k=3).reply()
        assert server.requests == []


async def test_a_model_that_writes_its_calls_is_read() -> None:
    text = '<think>Hm.</think><tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    tool = {"name": "add", "input_schema": {"type": "object"}}
    async with AsyncClient(Callable(lambda _: text, "local"), text_syntax="auto") as client:
        reply = await client.complete("Hi", tools=[tool])
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", '{"a": 1}')]
        assert reply.reasoning == "Hm."
    seen: list[Request] = []

    def say(request: Request) -> str:
        seen.append(request)
        return text

    async with AsyncClient(Callable(say, "local"), emulate=Emulation(tools=True)) as client:
        assert [call.name for call in (await client.stream("Hi", tools=[tool]).reply()).tool_calls] == ["add"]
    assert "add" in exact(seen[0].messages[0])


async def test_an_opening_is_opened_once_and_closed() -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def opening() -> AsyncGenerator[Backend]:
        opened.append("in")
        yield Scripted(SAID)
        opened.append("out")

    async with AsyncClient(opening) as client:
        assert opened == []
        await asyncio.gather(*(client.complete("Hi") for _ in range(3)))
        assert opened == ["in"]
    assert opened == ["in", "out"]
    with pytest.raises(RuntimeError, match="closed"):
        await client.complete("Hi")


async def test_a_backend_is_asked_for_its_own_name() -> None:
    backend = Scripted(SAID, name="toy")
    async with AsyncClient(backend) as client:
        await client.complete("Hi")
        await client.complete("Hi", model="other")
        await client.complete(Request(model="third"))
    assert [request.model for request in backend.requests] == ["toy", "other", "third"]


async def test_a_server_has_to_be_asked_for_a_model() -> None:
    async with scripted_client(HELLO, model=None) as (client, server):
        with pytest.raises(InvalidRequestError, match="pass `model=`"):
            await client.complete("Hi")
        assert server.requests == []


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"dialect": "chat"}, id="dialect"),
        pytest.param({"key": "k"}, id="key"),
        pytest.param({"headers": {"a": "b"}}, id="headers"),
        pytest.param({"text_syntax": "nonsense"}, id="text-syntax"),
        pytest.param({"on_loss": "weep"}, id="on-loss"),
    ],
)
def test_what_a_backend_has_no_use_for_is_a_mistake(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        AsyncClient(Scripted(SAID), **settings)  # type: ignore[arg-type]


async def test_embeddings() -> None:
    body = {
        "object": "list",
        "model": "e",
        "data": [{"index": 0, "embedding": [0.5, 1.0]}],
        "usage": {"prompt_tokens": 2},
    }
    script = (Respond(headers=(("content-type", "application/json"),), body=json.dumps(body).encode()),)
    async with scripted_client(script, prices=Prices({"e": Price(input=500_000, output=0)})) as (client, server):
        reply = await client.embed("Hi", dimensions=2)
        assert server.requests[0].path == "/v1/embeddings"
        assert server.requests[0].json == {"model": "m", "input": ["Hi"], "dimensions": 2}
        with pytest.raises(InvalidRequestError, match=r"inputs\[1\]"):
            await client.embed(["a", 3])  # type: ignore[list-item]
        with pytest.raises(InvalidRequestError, match="inputs"):
            await client.embed([])
    assert (reply.vectors, reply.model) == (((0.5, 1.0),), "e")
    async with AsyncClient(Scripted(SAID)) as client:
        with pytest.raises(InvalidRequestError, match="makes no embeddings"):
            await client.embed("Hi")


async def test_documents_are_ranked() -> None:
    body = {
        "model": "r",
        "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}],
        "usage": {"total_tokens": 2},
    }
    script = (Respond(headers=(("content-type", "application/json"),), body=json.dumps(body).encode()),)
    async with scripted_client(script) as (client, server):
        reply = await client.rerank("tides", ["A cat sat.", {"text": "The sea."}], top_n=2)
        assert server.requests[0].path == "/v1/rerank"
        assert server.requests[0].json == {
            "model": "m",
            "query": "tides",
            "documents": ["A cat sat.", {"text": "The sea."}],
            "top_n": 2,
        }
        for documents in ("a text", [], ["a", 3], ["\udfff"]):
            with pytest.raises(InvalidRequestError):
                await client.rerank("tides", documents)  # type: ignore[arg-type]
        assert len(server.requests) == 1
    assert [one.index for one in reply.result.results] == [1, 0]
    assert (reply.usage, reply.losses) == (Usage(input_tokens=2), ())
    async with AsyncClient(Scripted(SAID)) as client:
        with pytest.raises(InvalidRequestError, match="ranks no documents"):
            await client.rerank("tides", ["a"])


async def test_tokens_are_counted_where_that_can_be_asked() -> None:
    counted = (Respond(headers=(("content-type", "application/json"),), body=b'{"input_tokens": 12}'),)
    async with scripted_client(counted, dialect="messages") as (client, server):
        assert await client.count_tokens("Hi") == 12
        assert server.requests[0].path == "/v1/messages/count_tokens"
    async with scripted_client(HELLO) as (client, server):
        assert await client.count_tokens("Hi") is None
        assert server.requests == []


async def test_costs() -> None:
    said = Response(model="m1", candidates=SAID.candidates, usage=Usage(input_tokens=1_000_000, output_tokens=0))
    async with AsyncClient(Scripted(said), prices=Prices({"m1": Price(input=3, output=6)})) as client:
        cost = (await client.complete("Hi")).cost
        assert cost is not None
        assert cost.total == 3.0
        assert (await client.stream("Hi").reply()).cost == cost
    async with AsyncClient(Scripted(said)) as client:
        assert (await client.complete("Hi")).cost is None


async def test_the_other_conversation_is_kept_while_one_is_slow() -> None:
    slow = ScriptRule(steps=(WaitEvent("go"), *HELLO), when=RequestMatcher(contains=b"slow"))
    async with scripted_client(slow, HELLO) as (client, server):
        waiting = asyncio.create_task(client.complete("slow"))
        await server.until(lambda: len(server.requests) == 1)
        assert (await client.complete("Hi")).text == "Hello."
        server.release("go")
        assert (await waiting).text == "Hello."


async def test_a_conversation_goes_on_with_the_reply() -> None:
    calls = Candidate(content=(ToolCall(id="c", name="add", arguments="{}"),), finish=Finish(reason="tool_calls"))
    backend = Scripted(Response(candidates=(calls,)), SAID)
    async with AsyncClient(backend) as client:
        first = await client.complete("Hi")
        result = {"role": "tool", "tool_call_id": "c", "content": "3"}
        reply = await client.complete(["Hi", first.message, result])
    assert reply.text == "Hello."
    assert [message.role for message in backend.requests[1].messages] == ["user", "assistant", "tool"]


async def test_the_embedded_model_answers_in_process() -> None:
    async with AsyncClient() as client:
        reply = await client.complete("Say hello.", max_tokens=4)
        assert reply.text
        assert reply.usage is not None
        assert reply.usage.output_tokens == 4
        assert await client.count_tokens("Say hello.")
        async with client.stream("Say hello.", max_tokens=4) as stream:
            assert "".join([text async for text in stream.texts()]) == reply.text


async def test_c_w17_an_answer_without_an_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xenoglot.client.call.attempt.LONGEST", 100)
    backend = Watched()
    async with AsyncClient(backend) as client:
        with pytest.raises(UpstreamError, match="larger than allowed"):
            await client.complete("Hi")
    assert (backend.said, backend.closed > 0) == (101, True)
