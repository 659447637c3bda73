"""Endpoints that are forwarded untranslated, by the official SDK through a served gateway and a scripted server."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import openai
import pytest
from python_multipart.multipart import parse_options_header

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.server_on_loop import RawConnection
from xenoglot.gateway.config.load import check
from xenoglot.gateway.http.server import HTTPServer
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import bind
from xenoglot.testing.script import Body, Close, End, RequestMatcher, Respond, ResponseHead, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

JSON_TYPE = ("content-type", "application/json")
MEGABYTE = 1024 * 1024
TOKENS = {"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}
TRANSCRIPT = {"text": "Hello.", "usage": TOKENS}
MODERATION = {
    "id": "modr-1",
    "model": "omni-moderation-latest",
    "results": [{"flagged": False, "categories": {}, "category_scores": {}, "category_applied_input_types": {}}],
}
IMAGE = {
    "created": 1,
    "data": [{"b64_json": "aGk="}],
    "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
}
SPEECH = b"ID3" + bytes(range(256)) * 512


class Served(NamedTuple):
    """A gateway that is served, and the records of what it has answered."""

    gateway: Gateway
    address: tuple[str, int]
    records: list[RequestLog]

    def client(self, key: str = "none") -> openai.AsyncOpenAI:
        """Return the official SDK before it."""
        host, port = self.address
        return openai.AsyncOpenAI(base_url=f"http://{host}:{port}/v1", api_key=key, max_retries=0, timeout=TIMEOUT)

    async def raw(self, data: bytes) -> bytes:
        """Return what the gateway sends back for these bytes."""
        connection = RawConnection(*await asyncio.open_connection(*self.address))
        try:
            return await connection.exchange(data)
        finally:
            await connection.close()


@asynccontextmanager
async def served(
    upstreams: JSONObject, models: list[JSON], environ: Mapping[str, str] = {}, **more: JSON
) -> AsyncGenerator[Served]:
    """Serve a gateway."""
    plain: JSONObject = {
        "server": {"port": 0},
        "upstreams": upstreams,
        "models": models,
        "store": {"url": "off"},
        **more,
    }
    async with build_gateway(check(plain, environ, "a test")) as gateway:
        records: list[RequestLog] = []
        count = gateway.observer.count

        def note(record: RequestLog) -> None:
            records.append(record)
            count(record)

        gateway.observer.count = note
        server = HTTPServer(gateway)
        with bind("127.0.0.1", 0) as listener:
            server.open([listener])
            try:
                yield Served(gateway, listener.getsockname()[:2], records)
            finally:
                server.stop_accepting()
                await server.drained(0.0)


def one(upstream: Upstream, **more: JSON) -> tuple[JSONObject, list[JSON]]:
    """Return the settings of one upstream, which knows the model `m` as `big`."""
    return (
        {"u": {"dialect": "chat", "base_url": upstream.url, **more}},
        [{"name": "m", "upstream": "u", "model": "big"}],
    )


def form_of(request: Received) -> dict[str, list[bytes]]:
    """Return the values of the fields of a form, as the server got them."""
    _, options = parse_options_header(request.header("content-type") or "")
    _, *parts, last = request.body.split(b"--" + options[b"boundary"])
    assert last.strip() == b"--"
    found: dict[str, list[bytes]] = {}
    for part in parts:
        head, _, value = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = head.partition(b'name="')[2].partition(b'"')[0].decode()
        found.setdefault(name, []).append(value.removesuffix(b"\r\n"))
    return found


def answering(path: str, answer: JSON | bytes, media_type: str = "application/json") -> ScriptRule:
    """Answer requests to `path`."""
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    steps = (Respond(200, (("content-type", media_type),), body),)
    return ScriptRule(steps=steps, when=RequestMatcher(method="POST", path=path))


async def test_every_endpoint_by_the_official_sdk() -> None:
    rules = (
        answering("/v1/moderations", MODERATION),
        answering("/v1/audio/transcriptions", TRANSCRIPT),
        answering("/v1/audio/translations", {"text": "Hello."}),
        answering("/v1/audio/speech", SPEECH, "audio/mpeg"),
        answering("/v1/images/generations", IMAGE),
        answering("/v1/images/edits", IMAGE),
        answering("/v1/images/variations", IMAGE),
    )
    sound = ("a.wav", b"RIFF" + bytes(1000), "audio/wav")
    picture = ("a.png", b"\x89PNG" + bytes(1000), "image/png")
    async with Upstream(*rules) as upstream, served(*one(upstream)) as running, running.client() as client:
        moderated = await client.moderations.create(model="m", input="Hi")
        heard = await client.audio.transcriptions.create(model="m", file=sound, language="en")
        with pytest.warns(DeprecationWarning, match="deprecated"):
            translated = await client.audio.translations.create(model="m", file=sound)  # type: ignore[deprecated]
        spoken = await client.audio.speech.create(model="m", input="Hi", voice="alloy")
        drawn = await client.images.generate(model="m", prompt="A cat", size="1024x1024")
        edited = await client.images.edit(model="m", image=picture, prompt="A hat")
        with pytest.warns(DeprecationWarning, match="deprecated"):
            varied = await client.images.create_variation(model="m", image=picture)  # type: ignore[deprecated]
        assert moderated.model_dump(exclude_unset=True) == MODERATION
        assert heard.model_dump(exclude_unset=True) == TRANSCRIPT
        assert translated.text == "Hello."
        assert spoken.content == SPEECH
        assert [made.model_dump(exclude_unset=True) for made in (drawn, edited, varied)] == [IMAGE] * 3
        bodies = {request.path: request for request in upstream.requests}
        assert bodies["/v1/moderations"].json == {"model": "big", "input": "Hi"}
        assert bodies["/v1/audio/speech"].json == {"model": "big", "input": "Hi", "voice": "alloy"}
        assert bodies["/v1/images/generations"].json == {"model": "big", "prompt": "A cat", "size": "1024x1024"}
        assert form_of(bodies["/v1/audio/transcriptions"]) == {
            "model": [b"big"],
            "language": [b"en"],
            "file": [sound[1]],
        }
        assert form_of(bodies["/v1/images/edits"]) == {"model": [b"big"], "prompt": [b"A hat"], "image": [picture[1]]}
        noted = {record.route: record for record in running.records}
    assert {route: record.operation for route, record in noted.items()} == {
        "/v1/moderations": "moderation",
        "/v1/audio/transcriptions": "transcription",
        "/v1/audio/translations": "translation",
        "/v1/audio/speech": "speech",
        "/v1/images/generations": "image_generation",
        "/v1/images/edits": "image_edit",
        "/v1/images/variations": "image_variation",
    }
    assert {(record.model, record.target, record.status, record.failure) for record in noted.values()} == {
        ("m", "big", 200, None)
    }
    counts = {
        route: (record.usage.input_tokens, record.usage.output_tokens)
        for route, record in noted.items()
        if record.usage
    }
    images = dict.fromkeys(("/v1/images/generations", "/v1/images/edits", "/v1/images/variations"), (5, 7))
    assert counts == {"/v1/audio/transcriptions": (14, 45), **images}


async def test_a_stream_of_events_passes_as_it_comes_and_its_usage_is_noted() -> None:
    frames = [
        b'data: {"type":"transcript.text.delta","delta":"Hel"}\n\n',
        b'data: {"type":"transcript.text.delta","delta":"lo."}\n\n',
        b'data: {"type":"transcript.text.done","text":"Hello.","usage":' + json.dumps(TOKENS).encode() + b"}\n\n",
    ]
    steps = (ResponseHead(headers=(("content-type", "text/event-stream"),)), Body(b"".join(frames), split=7), End())
    async with Upstream(steps) as upstream, served(*one(upstream)) as running, running.client() as client:
        stream = await client.audio.transcriptions.create(model="m", file=("a.wav", b"RIFF"), stream=True)
        events = [event.type async for event in stream]
        assert events == ["transcript.text.delta", "transcript.text.delta", "transcript.text.done"]
        (record,) = running.records
    assert record.usage is not None
    assert (record.usage.input_tokens, record.usage.output_tokens) == (14, 45)


MISTRAL: JSONObject = {
    "id": "m1",
    "model": "mistral-moderation-2603",
    "results": [
        {
            "categories": {"sexual": False, "violence_and_threats": True, "selfharm": False, "pii": False},
            "category_scores": {"sexual": 0.1, "violence_and_threats": 0.9, "selfharm": 0.2, "pii": 0.3},
        },
        {"categories": {"sexual": False, "pii": False}, "category_scores": {"sexual": 0.1, "pii": 0.3}},
    ],
    "usage": {"prompt_tokens": 9, "total_tokens": 98, "completion_tokens": 0, "request_count": 1},
}
"""Source: https://docs.mistral.ai/api/endpoint/classifiers."""


async def test_a_moderation_of_another_form_has_what_clients_read() -> None:
    """Without `flagged` the official SDK has no such attribute, and most programs take that for harmless."""
    async with (
        Upstream(answering("/v1/moderations", MISTRAL)) as upstream,
        served(*one(upstream)) as running,
        running.client() as client,
    ):
        raw = await client.moderations.with_raw_response.create(model="m", input=["I hit", "Hi"])
        (record,) = running.records
    made = raw.parse()
    assert [result.flagged for result in made.results] == [True, False]
    first = made.results[0]
    assert (first.categories.violence, first.categories.self_harm, first.category_scores.violence) == (True, False, 0.9)
    assert first.categories.model_dump()["violence_and_threats"] is True  # the names of the server stay
    assert "results[0] flagged emulated" in raw.headers["x-xenoglot-losses"]
    assert (record.usage and record.usage.input_tokens, record.operation) == (9, "moderation")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(json.dumps(MODERATION, indent=3).encode(), id="openais"),
        pytest.param(b'{"results": 3}', id="no-results"),
        pytest.param(b'{"results": [{"categories": null}, 3]}', id="no-categories"),
        pytest.param(b"not JSON", id="no-json"),
        pytest.param(b'{"results": [], "more": "' + b"x" * 5 * MEGABYTE + b'"}', id="large"),
    ],
)
async def test_other_moderations_pass_byte_for_byte(body: bytes) -> None:
    async with (
        Upstream(answering("/v1/moderations", body)) as upstream,
        served(*one(upstream)) as running,
        running.client() as client,
    ):
        raw = await client.moderations.with_raw_response.create(model="m", input="Hi")
    assert raw.content == body
    assert "x-xenoglot-losses" not in raw.headers


async def test_a_conversation_is_moderated() -> None:
    async with (
        Upstream(answering("/v1/chat/moderations", MISTRAL)) as upstream,
        served(*one(upstream)) as running,
        running.client() as client,
    ):
        turns: JSONObject = {"model": "m", "input": [{"role": "user", "content": "Hi"}]}
        answer = await client.post("/chat/moderations", body=turns, cast_to=object)
        assert upstream.requests[0].json == {**turns, "model": "big"}
    assert answer == MISTRAL


FILE = b"RIFF" + bytes(range(256)) * 4 * 4096


def multipart(*parts: tuple[str, bytes]) -> bytes:
    """Return the parts as a form with the boundary `XX`; that of a file has a name."""
    written = []
    for name, value in parts:
        file = b'; filename="a.wav"\r\ncontent-type: audio/wav' if name == "file" else b""
        written.append(
            b'--XX\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (name.encode(), file, value)
        )
    return b"".join([*written, b"--XX--\r\n"])


def post(body: bytes, *, chunked: bool = False, path: str = "/v1/audio/transcriptions") -> bytes:
    """Return the bytes of a request with that form."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Connection: close",
        "Content-Type: multipart/form-data; boundary=XX",
    ]
    if not chunked:
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    pieces = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return "\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode() + framed + b"0\r\n\r\n"


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize("order", ["model-first", "model-last", "no-model"])
async def test_a_large_form_arrives_whole_with_the_model_of_the_upstream(order: str, *, chunked: bool) -> None:
    file, language = ("file", FILE), ("language", b"en")
    parts = {
        "model-first": [("model", b"m"), file, language],
        "model-last": [file, language, ("model", b"m")],
        "no-model": [language, file],
    }[order]
    async with (
        Upstream(answering("/v1/audio/transcriptions", TRANSCRIPT)) as upstream,
        served(*one(upstream)) as running,
    ):
        answer = await running.raw(post(multipart(*parts), chunked=chunked))
        (sent,) = upstream.requests
    assert answer.startswith(b"HTTP/1.1 200")
    assert form_of(sent) == {"model": [b"big"], "file": [FILE], "language": [b"en"]}
    assert (sent.header("transfer-encoding"), sent.header("content-length") is None) == (
        ("chunked", True) if chunked and order == "model-first" else (None, False)
    )


async def test_a_form_is_never_held_whole() -> None:
    """The client waits until the upstream has all but a few pieces of what it sent: nothing waits for the end."""
    piece, held = (
        bytes(256 * 1024),
        4 * MEGABYTE,
    )  # held: what is kept to be sent again, and the buffers of four sockets
    received, grown = 0, asyncio.Event()

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        while received < size:
            received += len(await reader.read(65536))
            grown.set()
        answer = json.dumps(TRANSCRIPT).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
        writer.write(head.encode() + answer)
        await writer.drain()
        writer.close()

    begin, _, end = multipart(("model", b"big"), ("file", b"@")).partition(b"@")
    size = len(begin) + 80 * len(piece) + len(end)
    async with await asyncio.start_server(upstream, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings: JSONObject = {"u": {"dialect": "chat", "base_url": f"http://127.0.0.1:{port}"}}
        async with served(settings, [{"name": "big", "upstream": "u"}]) as running:
            reader, writer = await asyncio.open_connection(*running.address)
            head = post(b"").replace(b"Content-Length: 0", b"Content-Length: %d" % size)
            writer.write(head + begin)
            sent = len(begin)
            async with asyncio.timeout(TIMEOUT):
                for _ in range(80):
                    writer.write(piece)
                    sent += len(piece)
                    while sent - received > held:
                        grown.clear()
                        await grown.wait()
                writer.write(end)
                answer = await reader.read()
            writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert received == size


WRONG: dict[str, tuple[bytes, str]] = {
    "two-models": (multipart(("model", b"m"), ("model", b"other")), "model: the form has two of it: send one"),
    "second-model-behind-the-file": (
        multipart(("model", b"m"), ("file", FILE), ("model", b"other")),
        "model: the form has two of it: send one",
    ),
    "empty-model": (multipart(("model", b"")), "model: is empty"),
    "no-form": (b"hello", "the body is not valid for its content type"),
    "cut-off": (multipart(("model", b"m"), ("file", b"RIFF"))[:-8], "the form ends before its last boundary"),
    "cut-off-far-on": (multipart(("model", b"m"), ("file", FILE))[:-8], "the form ends before its last boundary"),
    "unknown-model": (multipart(("model", b"x"), ("file", b"RIFF")), "the model `x` does not exist here"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_form_that_is_wrong_is_refused_and_no_upstream_takes_it_for_whole(case: str) -> None:
    body, told = WRONG[case]
    async with (
        Upstream(answering("/v1/audio/transcriptions", TRANSCRIPT)) as upstream,
        served(*one(upstream)) as running,
    ):
        answer = await running.raw(post(body))
        assert upstream.requests == []
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.split(b" ", 2)[1] in (b"400", b"404")
    assert (
        told in json.loads(content)["error"]["message"]
        or told.removeprefix("model: ") in json.loads(content)["error"]["message"]
    )


async def test_a_small_form_is_sent_again_to_another_upstream_and_a_large_one_is_not() -> None:
    failing = Upstream((Respond(503, (JSON_TYPE,), b'{"error":{"message":"down"}}'),))
    async with failing, Upstream(answering("/v1/audio/transcriptions", TRANSCRIPT)) as good:
        upstreams: JSONObject = {
            "a": {"dialect": "chat", "base_url": failing.url, "retry": {"attempts": 1}},
            "b": {"dialect": "chat", "base_url": good.url},
        }
        models: list[JSON] = [
            {
                "name": "m",
                "strategy": "ordered",
                "targets": [{"upstream": "a", "model": "big"}, {"upstream": "b", "model": "big"}],
            }
        ]
        async with served(upstreams, models) as running:
            small = await running.raw(post(multipart(("model", b"m"), ("file", b"RIFF"))))
            large = await running.raw(post(multipart(("model", b"m"), ("file", FILE))))
    assert small.startswith(b"HTTP/1.1 200")
    assert large.startswith(b"HTTP/1.1 503")
    assert len(good.requests) == 1


async def test_an_answer_that_breaks_off_does_not_end_like_a_whole_one() -> None:
    steps: Sequence[Step] = (
        ResponseHead(headers=(("content-type", "audio/mpeg"),), length=1000),
        Body(b"ID3"),
        Close(),
    )
    async with Upstream(steps) as upstream, served(*one(upstream)) as running, running.client() as client:
        with pytest.raises(openai.APIConnectionError):
            await client.audio.speech.create(model="m", input="Hi", voice="alloy")
        assert running.records[-1].failure == "upstream"
        assert [one.running for one in running.gateway.dispatcher.ward.measures(0.0)] == [0]


async def test_an_upstream_of_a_dialect_without_such_endpoints_is_named_as_the_reason() -> None:
    async with (
        Upstream() as upstream,
        served(*one(upstream, dialect="messages")) as running,
        running.client() as client,
    ):
        with pytest.raises(openai.BadRequestError) as found:
            await client.moderations.create(model="m", input="Hi")
    assert found.value.body["message"] == (  # type: ignore[index]
        "`m` is at an upstream that has no such endpoint: ask for a model of an upstream that has it"
    )


async def test_a_key_asks_for_its_models_only() -> None:
    async with Upstream(answering("/v1/moderations", MODERATION)) as upstream:
        limits: JSONObject = {"tenants": {"ada": {"key_env": "ADA", "models": ["other"]}}}
        async with (
            served(*one(upstream), environ={"ADA": "key-of-ada"}, **limits) as running,
            running.client("key-of-ada") as client,
            running.client("wrong") as stranger,
        ):
            with pytest.raises(openai.NotFoundError):
                await client.moderations.create(model="m", input="Hi")
            with pytest.raises(openai.AuthenticationError):
                await stranger.moderations.create(model="m", input="Hi")
        assert upstream.requests == []


async def test_a_moderation_without_a_model_asks_for_the_documented_one() -> None:
    async with Upstream(answering("/v1/moderations", MODERATION)) as upstream:
        models: list[JSON] = [
            {"name": "m", "upstream": "u", "model": "big"},
            {"name": "omni-moderation-latest", "upstream": "u"},
        ]
        async with served(one(upstream)[0], models) as running, running.client() as client:
            await client.moderations.create(input="Hi")
            (sent,) = upstream.requests
    assert sent.json == {"input": "Hi", "model": "omni-moderation-latest"}
