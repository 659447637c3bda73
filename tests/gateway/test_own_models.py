"""One's own models behind a gateway on a real socket: each kind in each dialect, whole and streamed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, aclosing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.local_models import tiny
from tests.backends.local_models.engines import Engine
from tests.backends.local_models.requests import request_of, turn
from tests.gateway.running_gateway import TIMEOUT, read_until, run_gateway
from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.http.client import Transport
from xenoglot.backends.local_models.adapt import backend_of
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.fold import fold
from xenoglot.model.request import Request, Sampling, Tool
from xenoglot.model.response import Response, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.content import Part

EVERY = dialects.names()
WITH_TOOLS = [name for name in EVERY if name in ("chat", "gemini", "llama_stack", "messages", "ollama", "responses")]
WORDS = "one two three four five"
LIMIT = 16  # the least that every dialect can say
SAID_BY_TINY = tiny.tokenizer().decode([65] * LIMIT)
WEATHER = Tool(name="weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})


def parrot(request: Request) -> Iterator[str]:
    """A generator of a request."""
    for part in request.messages[-1].content if request.messages else ():
        yield getattr(part, "text", "")
    for text in request.prompt.texts if request.prompt else ():
        yield str(text)


def shout(prompt: str) -> Iterator[str]:
    """A function of a prompt."""
    for word in prompt.split():
        yield word.upper() + " "


def thinker(prompt: str) -> Iterator[str]:
    """A model that writes its thoughts and calls as text, however it is cut."""
    assert '"name":"weather"' in prompt
    yield from "<think>Hm.</think>I look.\n"
    yield from '<tool_call>\n{"name": "weather", "arguments": {"city": "Lyon"}}\n</tool_call>'


def failing_model(prompt: str) -> str:
    """A model that fails, and would tell what it was asked."""
    raise RuntimeError(prompt)


async def answer_to(running: RunningGateway, dialect: str, request: Request) -> Response:
    """What a client of a dialect reads."""
    async with aclosing(Transport()) as transport:
        client = Remote("client", dialects.get(dialect), running.url, transport=transport)
        answer = await client.answer(Call(request=request, losses=Losses()))
        async with aclosing(answer):
            assert isinstance(answer, EventAnswer)
            response = fold([event async for batch in answer.batches for event in batch])
    assert isinstance(response, Response)
    return response


def comparable(response: Response) -> tuple[list[Part], str | None, Usage | None]:
    """What was said, why it ended, and its counts, without what every dialect adds of its own."""
    (candidate,) = response.candidates
    usage = response.usage and Usage(
        input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens
    )
    reason = None if candidate.finish is None else candidate.finish.reason
    return [_bare(part) for part in candidate.content], reason, usage


def _bare(part: Part) -> Part:
    match part:
        case Text(text=text):
            return Text(text=text)
        case Reasoning():
            return Reasoning(text=part.text or "".join(part.summary or ()))
        case ToolCall(name=name, arguments=arguments):
            return ToolCall(id="", name=name, arguments=arguments.replace(" ", ""))
        case _:
            return part


class Words:
    """A tokenizer for which each word is a token."""

    def encode(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]


def _gives_texts(dialect: str) -> bool:
    """Whether a dialect has texts to be continued, and no turns."""
    made = dialects.get(dialect)
    return made.decode_request(made.encode_request(request_of("x"), Losses(), Target())).prompt is not None


def _accepts_bias(dialect: str) -> bool:
    """Whether a dialect can say how likely a token is to be."""
    losses = Losses()
    dialects.get(dialect).encode_request(request_of("x", sampling=Sampling(logit_bias={"1": 1.0})), losses, Target())
    return all(loss.what != "logit_bias" for loss in losses)


def _biased(request: Request, dialect: str) -> Request:
    if not _accepts_bias(dialect):
        return request
    return replace(request, sampling=replace(request.sampling, logit_bias={"65": 100.0}))


def tokens(prompt: str) -> int:
    return len(tiny.tokenizer().encode(prompt))


@pytest.fixture(scope="module")
def gateways() -> Iterator[dict[str, RunningGateway]]:
    """A gateway in front of each kind of model."""
    backends = {
        "request": backend_of(parrot),
        "prompt": backend_of(shout, tokenizer=Words()),
        "engine": backend_of(Engine()),
        "transformers": backend_of((tiny.model(), tiny.tokenizer())),
        "text": backend_of(thinker, text_syntax="auto"),
        "broken": backend_of(failing_model),
    }
    with ExitStack() as stack:
        yield {kind: stack.enter_context(run_gateway({"own": backend})) for kind, backend in backends.items()}
    for backend in backends.values():
        asyncio.run(backend.aclose())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", EVERY)
def test_every_kind_speaks_every_dialect(gateways: dict[str, RunningGateway], dialect: str, *, stream: bool) -> None:
    """The counts are those of the prompt as the model read it: no template stands around a text to be continued."""
    request = replace(request_of(WORDS, sampling=Sampling(max_tokens=LIMIT)), stream=stream)
    templated = WORDS if _gives_texts(dialect) else f"<|user|>{WORDS}<|end|><|assistant|>"
    engine = len(f"<|user|>{WORDS}\n<|assistant|>") + 1
    wanted = {
        "request": (WORDS, "stop", None),
        "prompt": (f"{WORDS.upper()} ", "stop", Usage(input_tokens=5, output_tokens=5)),
        "engine": (WORDS[::-1][:LIMIT], "length", Usage(input_tokens=engine, output_tokens=LIMIT)),
        "transformers": (SAID_BY_TINY, "length", Usage(input_tokens=tokens(templated), output_tokens=LIMIT)),
    }
    heard = {
        kind: comparable(asyncio.run(answer_to(gateways[kind], dialect, _biased(request, dialect)))) for kind in wanted
    }
    for kind, (text, reason, usage) in wanted.items():
        parts, finish, counts = heard[kind]
        assert (kind, finish, counts if usage else None) == (kind, reason, usage)
        if kind != "transformers" or _accepts_bias(dialect):
            assert (kind, parts) == (kind, [Text(text=text)])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", WITH_TOOLS)
def test_calls_and_thoughts_in_text_are_what_they_are(
    gateways: dict[str, RunningGateway], dialect: str, *, stream: bool
) -> None:
    """R3, R4, R-W2: more than one call, words around, and a thought, in each dialect's own form."""
    request = replace(request_of("Rain?", sampling=Sampling(max_tokens=400)), tools=(WEATHER,), stream=stream)
    parts, finish, _ = comparable(asyncio.run(answer_to(gateways["text"], dialect, request)))
    call = ToolCall(id="", name="weather", arguments='{"city":"Lyon"}')
    spoken = [part for part in parts if not isinstance(part, Reasoning)]
    assert spoken in ([Text(text="I look.\n"), call], [Text(text="I look."), call])
    assert [part for part in parts if isinstance(part, Reasoning)] in ([Reasoning(text="Hm.")], [])
    assert finish == "tool_calls"


def test_a_client_that_leaves_ends_the_model() -> None:
    """A-W5, R-W1: the connection closes, and so does the generator."""
    closed = threading.Event()

    def endless(prompt: str) -> Iterator[str]:
        try:
            while True:
                yield f"{prompt} "
        finally:
            closed.set()

    with run_gateway({"own": backend_of(endless, tokenizer=Words(), text_syntax="auto")}) as running:
        with running.connect() as connection:
            body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"tick"}]}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            read_until(connection, b'"tick "')
        assert closed.wait(TIMEOUT)


@pytest.mark.parametrize("dialect", EVERY)
def test_a_failure_is_told_in_the_clients_dialect(gateways: dict[str, RunningGateway], dialect: str) -> None:
    """A-W9: and nothing of the model's own words."""
    made = dialects.get(dialect)
    body = made.encode_request(request_of(turn("user", "secret"), sampling=Sampling(max_tokens=9)), Losses(), Target())
    answer = gateways["broken"].request("POST", made.path.replace("{model}", "m"), body)
    assert answer.status == 500
    failure = made.decode_error(answer.status, answer.json)
    assert (failure.kind, b"secret" in answer.body) == ("internal", False)
