"""What goes over the wires: the requests that the load tool sends, and the canned answers that the mock plays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from bench import samples
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.model.content import Extra, Image, Inline, Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, Started, TextDelta, UsageReported
from xenoglot.model.request import Message, Prompt, Request, Sampling, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xenoglot.codec.dialect import Dialect

STAMP: Final = "@T0000000000000000"
"""Where the mock writes the microsecond at which it sends a token (`tools/wire.h`)."""

CONTINUING: Final = ("completions", "llama_stack_completion", "ollama_generate")
"""The dialects in which a text is continued, and no turn answered."""

LONG_TURNS: Final = 1000
PICTURE_BYTES: Final = 10_000_000

_ANSWER: Final = "The tide comes in twice a day, a little later each time, for the moon moves on. " * 5
_ID: Final = "chatcmpl-Bq7t1c0mYw3Zx5Kd9RfJ2sQvT8aLe"
_MODEL: Final = "large-1-2026-08-06"
_CREATED: Final = 1_700_000_000
_USAGE: Final = Usage(input_tokens=180, output_tokens=100)
_PIXELS: Final = "iVBORw0KGgoAAAANSUhEUgAA"

_END: Final = {
    "converse": "latencyMs",
    "messages": "message_stop",
    "responses": '"logprobs":[]}]}]}}',  # the last event has the whole text in it
    "ollama": '"done":true',
    "ollama_generate": '"done":true',
    "gemini": "STOP",
    "llama_stack": '"complete"',
    "llama_stack_completion": "end_of_turn",
}
"""What is found near the end of a whole stream, where that is not `[DONE]`."""


class Canned(Struct, frozen=True):
    """An answer of the mock: whole, and as the beginning, the piece that repeats, and the end of a stream."""

    whole: bytes
    first: bytes
    piece: bytes
    last: bytes


class Question(Struct, frozen=True):
    """A request of the load tool: where it is posted, with which headers, and what ends a stream that answers it."""

    path: str
    headers: tuple[str, ...]
    body: bytes
    end: str


def canned(dialect: Dialect) -> Canned:
    """Return the answers of a server of `dialect`; in its stream each piece is one token, which is a stamp."""
    asked = replace(small(dialect.name, model="m", stream=True), stream_usage=True)
    candidate = Candidate(content=(Text(text=_ANSWER),), finish=Finish(reason="stop"))
    whole = Response(id=_ID, model=_MODEL, created=_CREATED, candidates=(candidate,), usage=_USAGE)
    return Canned(encode_json(dialect.encode_response(whole, asked, Losses())), *_stream(dialect, asked))


def mock_options(folder: Path) -> list[str]:
    """Write the canned answers of every dialect to `folder`; return the options with which the mock plays them."""
    options: list[str] = []
    for name in sorted(names(), key=lambda name: -len(get(name).path)):  # the longest first: it may hold a shorter one
        dialect = get(name)
        options += ["--answer", dialect.path.partition("{model}")[0], "--type", dialect.framing.media_type]
        options += _written(folder, name, canned(dialect))
    return options


def question(name: str, request: Request, key: str) -> Question:
    """Return `request` as a client of the dialect `name` sends it with `key`."""
    dialect = get(name)
    path, query, body = addressed(dialect.encode_request(request, Losses(), Target()), dialect)
    headers = tuple(f"{field}: {value}" for field, value in dialect.authorize(key))
    end = _END.get(name, "[DONE]") if request.stream else ""
    return Question(f"{path}?{query}" if query else path, headers, encode_json(body), end)


def small(client: str, *, model: str, stream: bool = False) -> Request:
    """Return a request of about a kilobyte, for a client of the dialect `client`."""
    if client not in CONTINUING:
        return replace(samples.small(stream=stream), model=model)
    sampling = Sampling(max_tokens=512, temperature=0.7)
    return Request(model=model, prompt=Prompt(texts=(samples.SENTENCE * 9,)), sampling=sampling, stream=stream)


def agent(_client: str, *, model: str, stream: bool = False) -> Request:
    """Return what a coding agent asks in the middle of its work: 15 tools, 24 calls and their results, 115 kB."""
    return replace(samples.agent(stream=stream), model=model)


def long(_client: str, *, model: str, stream: bool = False) -> Request:
    """Return a conversation of a thousand turns."""
    return replace(samples.conversation(LONG_TURNS, stream=stream), model=model)


def picture(_client: str, *, model: str, stream: bool = False) -> Request:
    """Return a question about a picture of ten million characters of base64."""
    image = Image(source=Inline(data=_PIXELS * (PICTURE_BYTES // len(_PIXELS)), media_type="image/png"))
    message = Message(role="user", content=(Text(text="What is this?"), image))
    return Request(model=model, messages=(message,), stream=stream, sampling=Sampling(max_tokens=64))


def with_tool(client: str, *, model: str, stream: bool = False) -> Request:
    """Return the small request with a tool, so that there is a reason to look for calls in the text of the answer."""
    schema = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
    tool = Tool(name="get_weather", description="The weather at a place.", parameters=schema)
    return replace(small(client, model=model, stream=stream), tools=(tool,))


def _written(folder: Path, name: str, answers: Canned) -> list[str]:
    options: list[str] = []
    for part in ("whole", "first", "piece", "last"):
        file = folder / f"{name}.{part}"
        file.write_bytes(getattr(answers, part))
        options += [f"--{part}", str(file)]
    return options


def _stream(dialect: Dialect, asked: Request) -> tuple[bytes, bytes, bytes]:
    """Return the beginning, one token, and the end of a stream in the bytes of `dialect`."""
    encoder, framer = dialect.stream_encoder(asked, Losses()), dialect.framing.encoder()
    write = _writer(lambda event: b"".join(b for item in encoder.feed(event) for b in framer.feed(item)))
    extra = Extra(dialect="chat", fields={"system_fingerprint": "fp_44709d6fcb"})
    first = write(
        Started(id=_ID, model=_MODEL, created=_CREATED, service_tier="default", extra=extra),
        UsageReported(usage=Usage(input_tokens=_USAGE.input_tokens)),
        BlockStarted(part=Text(text="")),
    )
    piece = write(TextDelta(text=STAMP))
    last = write(BlockEnded(), UsageReported(usage=_USAGE), Finished(finish=Finish(reason="stop")))
    closing = b"".join(b for item in encoder.close() for b in framer.feed(item))
    return first, piece, last + closing + b"".join(framer.close())


def _writer(write: Callable[[Event], bytes]) -> Callable[..., bytes]:
    return lambda *events: b"".join(map(write, events))
