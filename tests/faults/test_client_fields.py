"""Fields, names and headers that nobody knows, images that are none, and what must not count as a completion.

C18, C20, C21, C30 and C31. Each harness counts the sockets of the process, so its cases stand together, in the order in
which the harnesses are opened.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import quote

import anthropic
import httpx2
import pytest

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_requests import client_request
from tests.faults.client_view import error_codes, error_status, read_error
from tests.faults.harness import GatewayHarness
from tests.faults.manual_clock import wait_until
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import DIALECTS, WITH_TOOLS, error_body
from xenoglot.testing.canned import answers
from xenoglot.testing.script import Respond, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.faults.raw_client import RawResponse
    from xenoglot.model.json import JSON, JSONObject

every_client = pytest.mark.parametrize("client", DIALECTS)


async def post_json(harness: GatewayHarness, path: str, body: JSON, *headers: str) -> RawResponse:
    """What a client gets for a body."""
    return await harness.read_response(await harness.post(path, json.dumps(body).encode(), *headers))


# -- C18: what nobody knows


STRANGE = "hologram_quality"


@every_client
@pytest.mark.parametrize("upstream", DIALECTS)
def test_c18_an_unknown_field_goes_home_or_is_told_of(harness: GatewayHarness, client: str, upstream: str) -> None:
    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        path, body = client_request(client, f"{upstream}-small", "Hi", streamed=False)
        answer = await post_json(harness, path, body | {STRANGE: {"deep": 1}})
        assert_completed(client, answer, streamed=False)
        got = STRANGE.encode() in harness.upstream.requests[0].body
        spelled = "hologramQuality" if client == "gemini" else STRANGE
        told = [loss for loss in harness.access_log_line()["losses"] if spelled in loss]
        assert (got, told) == (
            (True, []) if client == upstream else (False, [f"$ {spelled} dropped (only {client} has it)"])
        )

    harness.run(scenario())


BETA = "never-heard-of-2031-01-01"


@pytest.mark.parametrize("upstream", WITH_TOOLS)
def test_c18_an_unknown_beta_goes_home_or_is_told_of(harness: GatewayHarness, upstream: str) -> None:
    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        path, body = client_request("messages", f"{upstream}-small", "Hi", streamed=False)
        assert_completed("messages", await post_json(harness, path, body, f"anthropic-beta: {BETA}"), streamed=False)
        told = "1 harmless: header anthropic-beta" in [
            loss.removeprefix("and ") for loss in harness.access_log_line()["losses"]
        ]
        home = upstream == "messages"
        assert (harness.upstream.requests[0].header("anthropic-beta"), told) == (
            (BETA, False) if home else (None, True)
        )

    harness.run(scenario())


@pytest.mark.parametrize("client", ["messages"])
def test_c18_what_a_server_says_of_a_field_is_passed_on(harness: GatewayHarness, client: str) -> None:
    """Clients leave out what they are told is not permitted."""

    async def scenario() -> None:
        said = "hologram_quality: Extra inputs are not permitted"
        steps = Respond(
            400,
            (("content-type", "application/json"), ("connection", "close")),
            error_body(client, said, "invalid_request_error"),
        )
        harness.upstream.script((steps,))
        path, body = client_request(client, f"{client}-small", "Hi", streamed=False)
        answer = await post_json(harness, path, body | {STRANGE: 1})
        assert assert_refused(client, answer, error_codes(client, "invalid_request"), 400).message == said

    harness.run(scenario())


# -- C20: images

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HUGE = "iVBORw0KGgoAAAANSUhEUgAANrAAADawCAYAAAAfFcSJ"
"""The head of a picture of 14,000 by 14,000 points, which are nowhere."""


def image_part(client: str, url: str) -> JSON:
    """A picture as a client gives it."""
    kind, comma, data = url.removeprefix("data:").partition(";base64,")
    match client:
        case "chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case "responses":
            return {"type": "input_image", "image_url": url}
        case "gemini" if comma:
            return {"inlineData": {"mimeType": kind, "data": data}}
        case "gemini":
            return {"fileData": {"fileUri": url, "mimeType": "image/png"}}
        case "messages" if comma:
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case "messages":
            return {"type": "image", "source": {"type": "url", "url": url}}
        case _:
            raise AssertionError(client)


def images_upstream(client: str, upstream: str, pictures: list[JSON]) -> tuple[str, JSON]:
    """Where a client posts pictures, and the request."""
    path, body = client_request(client, f"{upstream}-small", "Hi", streamed=False)
    match client:
        case "gemini":
            body["contents"][0]["parts"] += pictures
        case "responses":
            body["input"][0]["content"] = [*pictures, {"type": "input_text", "text": "Hi"}]
        case _:
            body["messages"][0]["content"] = [*pictures, {"type": "text", "text": "Hi"}]
    return path, body


WITH_IMAGES = ("chat", "gemini", "messages", "responses")
TURNS = {"chat": "messages", "gemini": "contents", "messages": "messages", "responses": "input"}
"""The field of a body that holds the turns, by dialect: an error about a picture gives its path there."""
INVALID_IMAGES = {
    "file": "file:///etc/passwd",
    "file-in-capitals": "FILE:///etc/passwd",
    "a-path": "/etc/passwd",
    "ftp": "ftp://pictures.test/a.png",
    "a-script": "javascript:alert(1)",
    "a-line-break": "https://pictures.test/a.png\r\nx: y",
    "nothing": "data:image/png;base64,",
    "no-base64": "data:image/png;base64,@@@@",
    "text": "data:image/png;base64,\u00e9\u00e8",
}


@pytest.mark.parametrize("upstream", WITH_IMAGES)
@pytest.mark.parametrize("client", WITH_IMAGES)
@pytest.mark.parametrize("name", [pytest.param(name, id=f"C20-{name}") for name in INVALID_IMAGES])
def test_what_is_no_picture_is_refused(harness: GatewayHarness, name: str, client: str, upstream: str) -> None:
    async def scenario() -> None:
        path, body = images_upstream(client, upstream, [image_part(client, INVALID_IMAGES[name])])
        answer = await post_json(harness, path, body)
        told = assert_refused(client, answer, error_codes(client, "invalid_request"), 400)
        assert told.message.startswith(TURNS[client]), told
        assert (b"passwd" in answer.raw, harness.upstream.requests) == (False, [])

    harness.run(scenario())


IMAGES = {
    "huge": [f"data:image/png;base64,{HUGE}"],
    "of-another-kind-than-it-says": [f"data:image/jpeg;base64,{PIXEL}"],
    "a-hundred": [f"data:image/png;base64,{PIXEL}"] * 100,
    "in-lines": [f"data:image/png;base64,{PIXEL[:40]}\n{PIXEL[40:]}"],
    "a-url": ["https://pictures.test/a.png?b=c"],
}


@pytest.mark.parametrize("upstream", WITH_IMAGES)
@pytest.mark.parametrize("client", WITH_IMAGES)
@pytest.mark.parametrize("name", [pytest.param(name, id=f"C20-{name}") for name in IMAGES])
def test_a_picture_is_passed_on_and_not_looked_at(
    harness: GatewayHarness, name: str, client: str, upstream: str
) -> None:
    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        path, body = images_upstream(client, upstream, [image_part(client, url) for url in IMAGES[name]])
        answer = await post_json(harness, path, body)
        assert_completed(client, answer, streamed=False)
        got = harness.upstream.requests[0].body.decode()
        sent = IMAGES[name][0].rpartition("base64,")[2].partition("\n")[0]
        lost = [loss for loss in harness.access_log_line()["losses"] if "image" in loss]
        assert got.count(sent) == len(IMAGES[name]) or lost, got

    harness.run(scenario())


@pytest.mark.parametrize("upstream", WITH_IMAGES)
@pytest.mark.parametrize("client", WITH_IMAGES)
def test_c20_a_drawing_is_passed_on_or_told_of(harness: GatewayHarness, client: str, upstream: str) -> None:
    async def scenario() -> None:
        harness.upstream.script(valid_response(upstream, streamed=False))
        path, body = images_upstream(client, upstream, [image_part(client, "data:image/svg+xml;base64,PHN2Zy8+")])
        assert_completed(client, await post_json(harness, path, body), streamed=False)
        lost = any("image dropped" in loss for loss in harness.access_log_line()["losses"])
        assert (b"PHN2Zy8+" in harness.upstream.requests[0].body) != lost

    harness.run(scenario())


# -- C21: names of models

NAMES = {
    "unknown": "none-such",
    "long": "x" * 20_000,
    "lines": "a\r\nset-cookie: b",
    "a-terminal": "a\t\x1b[31mred",
    "nul": "a\x00b",
    "above": "../../etc/passwd",
    "escaped": "%2e%2e%2fetc",
    "a-path": "a/b",
    "backwards": "chat-\u202egnp",
    "capitals": "CHAT-SMALL",
    "blanks": " chat-small",
    "a-pattern": "*",
    "a-label": 'a"} 1\n# HELP b',
}


@every_client
@pytest.mark.parametrize("name", [pytest.param(name, id=f"C21-{name}") for name in NAMES])
def test_a_model_that_is_not_here_is_nowhere_in_a_raw_form(harness: GatewayHarness, name: str, client: str) -> None:
    model = NAMES[name]

    async def scenario() -> None:
        path, body = client_request(client, "MODEL", "Hi", streamed=False)
        path = path.replace("MODEL", quote(model, safe=""))
        answer = await post_json(
            harness, path, {key: model if value == "MODEL" else value for key, value in body.items()}
        )
        refused_as_unknown(client, answer)
        head, _, told = answer.raw.decode().partition("\r\n\r\n")
        assert "set-cookie" not in head.lower()
        assert told.isprintable()
        assert len(told) < 1_000
        line = json.dumps(harness.access_log_line(), ensure_ascii=False)
        assert line.isprintable()
        assert len(line) < 1_000
        metrics = harness.gateway.metrics().decode()
        assert not any(word in metrics for word in (model, "none-such", "passwd", "x" * 50))
        assert harness.upstream.requests == []

    harness.run(scenario())


def refused_as_unknown(client: str, answer: RawResponse) -> None:
    """Assert that the model is said to be unknown, in the client's words."""
    words = (
        ("invalid_request_error", "model_not_found")
        if client in ("chat", "completions", "responses")
        else error_codes(client, "not_found")
    )
    assert "does not exist here" in assert_refused(client, answer, words, error_status(client, "not_found")).message


@every_client
@pytest.mark.parametrize("value", [None, 5, ["chat-small"], {}, True])
def test_c21_a_name_that_is_no_text(harness: GatewayHarness, client: str, value: JSON) -> None:
    async def scenario() -> None:
        path, body = client_request(client, "MODEL", "Hi", streamed=False)
        if client == "gemini":
            return  # it stands in the path
        answer = await post_json(harness, path, {key: value if said == "MODEL" else said for key, said in body.items()})
        told = assert_refused(client, answer, error_codes(client, "invalid_request"), 400)
        assert told.message.startswith(("model", "model_id"))

    harness.run(scenario())


OUT_OF_THE_WAY = {
    "up": "gemini-../../admin",
    "here": "gemini-a/./b",
    "a-question": "gemini-a?key=b#c",
    "escaped": "gemini-%2e%2e/x",
    "another-host": "gemini-//evil/x",
    "deeper": "gemini-/publishers/x/models/y",
}


@every_client
@pytest.mark.parametrize("name", [pytest.param(name, id=f"C21-{name}") for name in OUT_OF_THE_WAY])
def test_a_name_leads_to_no_other_path_of_the_upstream(harness: GatewayHarness, name: str, client: str) -> None:
    model = OUT_OF_THE_WAY[name]

    async def scenario() -> None:
        harness.upstream.script(valid_response("gemini", streamed=False))
        path, body = client_request(client, "MODEL", "Hi", streamed=False)
        path = path.replace("MODEL", quote(model, safe=""))
        answer = await post_json(
            harness, path, {key: model if value == "MODEL" else value for key, value in body.items()}
        )
        assert answer.status == (200 if harness.upstream.requests else 400), answer.raw
        for request in harness.upstream.requests:
            place, _, query = request.target.partition("?")
            assert (place.startswith("/v1beta/models/gemini-"), query) == (True, "")
            assert place.count("/") == len(("", "v1beta", "models"))
            assert place.endswith(":generateContent")

    harness.run(scenario())


# -- C31: threads


@pytest.mark.parametrize("upstream", ["messages", "chat"])
@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}], ids=["create", "continue"]
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_c31_a_thread_is_refused_in_the_words_for_it(
    harness: GatewayHarness, thread: JSON, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        path, body = client_request("messages", f"{upstream}-small", "Hi", streamed=streamed)
        answer = await post_json(harness, path, body | {"thread": thread})
        assert_refused("messages", answer, error_codes("messages", "invalid_request"), 400)
        assert json.loads(answer.body)["error"]["details"]["error_code"] == "thread_unsupported_request"
        assert "full conversation" in read_error("messages", answer.body).message
        assert harness.upstream.requests == []

    harness.run(scenario())


@pytest.mark.parametrize("upstream", ["messages", "chat"])
def test_c31_the_tool_runner_of_anthropics_library_sends_the_whole_history(
    harness: GatewayHarness, upstream: str
) -> None:
    """Its first request asks for a thread; refused so, it goes on without, and every turn is there."""

    @anthropic.beta_async_tool
    async def weather(place: str) -> str:
        """Tell the weather.

        Args:
            place: where
        """
        return f"rain in {place}"

    async def scenario() -> None:
        steps = iter(
            [answers(upstream, text=(), tool=("weather", '{"place": "Paris"}')), answers(upstream, text=("It rains.",))]
        )
        harness.upstream.script(ScriptRule(steps=lambda _: next(steps).complete(headers=(("connection", "close"),))))
        limits = httpx2.Limits(max_keepalive_connections=0)
        client = anthropic.AsyncAnthropic(
            base_url=f"http://127.0.0.1:{harness.port}",
            api_key=harness.canaries.client_key,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(limits=limits, trust_env=False),
        )
        async with client:
            runner = client.beta.messages.tool_runner(
                model=f"{upstream}-small",
                max_tokens=64,
                messages=[{"role": "user", "content": "How is the weather?"}],
                tools=[weather],
            )
            last = await runner.until_done()
        assert last.content[0].text == "It rains."  # type: ignore[union-attr]
        history = harness.upstream.requests[-1].body
        assert all(word in history for word in (b"How is the weather?", b"Paris", b"rain in"))
        assert b'"thread"' not in history
        await wait_until(lambda: len(harness.access_log.lines) == 3, "two answers and a refusal")

    harness.run(scenario())


# -- C30: counting is not asking


class RateLimitedHarness(GatewayHarness):
    """Lets each client ask once in an hour, and one at a time."""

    def _config(self) -> JSONObject:
        limits = {"requests": ["1/1h"], "tokens": ["5000/1h"], "concurrency": 1, "queue": 0}
        return super()._config() | {"keys": {"env": ["CLIENT_KEY"], "limits": limits}}


@pytest.fixture(scope="module")
def limited() -> Generator[GatewayHarness]:
    """Give such a harness."""
    with ExitStack() as stack:
        yield RateLimitedHarness().start(stack)


COUNTERS: dict[str, tuple[str, JSONObject]] = {
    "messages": ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "Hi " * 900}]}),
    "responses": ("/v1/responses/input_tokens", {"input": "Hi " * 900}),
    "gemini": (
        "/v1beta/models/chat-small:countTokens",
        {"contents": [{"role": "user", "parts": [{"text": "Hi " * 900}]}]},
    ),
}
BURST = 26
"""What Claude Code asks at once for its `/context`."""


@pytest.mark.parametrize("client", COUNTERS)
def test_c30_counts_are_not_limited_as_answers_are(limited: GatewayHarness, client: str) -> None:
    async def scenario() -> None:
        path, body = COUNTERS[client]
        raw_clients = [
            await limited.post(path, json.dumps(body | {"model": "chat-small"}).encode()) for _ in range(BURST)
        ]
        told = [await limited.read_response(raw_client) for raw_client in raw_clients]
        assert [answer.status for answer in told] == [200] * BURST
        assert (
            len({answer.body for answer in told}) == len({answer.headers["x-xenoglot-count"] for answer in told}) == 1
        )
        assert limited.upstream.requests == []

    limited.run(scenario())


def test_c30_counts_of_a_server_are_asked_for_side_by_side(limited: GatewayHarness) -> None:
    async def scenario() -> None:
        count = Respond(200, (("content-type", "application/json"), ("connection", "close")), b'{"input_tokens": 7}')
        limited.upstream.script(ScriptRule(steps=(WaitEvent("go on"), count)))
        path, body = COUNTERS["messages"]
        sent = json.dumps(body | {"model": "messages-small"}).encode()
        raw_clients = [await limited.post(path, sent) for _ in range(BURST)]
        await limited.wait_for_upstream_requests(BURST)
        limited.upstream.release("go on")
        told = [await limited.read_response(raw_client) for raw_client in raw_clients]
        assert {(answer.status, answer.body) for answer in told} == {(200, b'{"input_tokens":7}')}

    limited.run(scenario())


# -- C18 again, where nothing may be lost


class StrictHarness(GatewayHarness):
    """Refuses what would be lost."""

    def _config(self) -> JSONObject:
        return super()._config() | {"on_loss": "refuse"}


@pytest.fixture(scope="module")
def strict() -> Generator[GatewayHarness]:
    """Give a harness that refuses what would be lost."""
    with ExitStack() as stack:
        yield StrictHarness().start(stack)


@every_client
@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_c18_strictly_an_unknown_field_is_refused_in_the_usual_words(
    strict: GatewayHarness, client: str, upstream: str
) -> None:
    async def scenario() -> None:
        strict.upstream.script(valid_response(upstream, streamed=False))
        path, body = client_request(client, f"{upstream}-small", "Hi", streamed=False)
        answer = await post_json(strict, path, body | {STRANGE: {"deep": 1}})
        if client == upstream:
            assert_completed(client, answer, streamed=False)
            return
        told = assert_refused(client, answer, error_codes(client, "invalid_request"), 400)
        spelled = "hologramQuality" if client == "gemini" else STRANGE
        assert told.message.startswith(f"{spelled}: Extra inputs are not permitted; the target cannot express: ")
        assert strict.upstream.requests == []

    strict.run(scenario())
