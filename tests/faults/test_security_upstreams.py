"""What goes to an upstream and what comes back from it: keys, hosts, headers, words (R20, R32, S08, S11, S14, S18)."""

from __future__ import annotations

import json
import tomllib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.faults.canaries import Canaries, capture_logs
from tests.faults.direct_exchange import DirectExchange
from tests.faults.test_security_ranges import REQUESTS
from tests.gateway.running_gateway import config_for
from xenoglot import dialect_registry as dialects
from xenoglot import testing
from xenoglot.backends.http.client import Transport
from xenoglot.backends.redaction import MASK, Redactor
from xenoglot.backends.remote.backend import Remote
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings, UpstreamSettings
from xenoglot.model.failure import Failure
from xenoglot.policy.target_health import BreakerSettings, Retry
from xenoglot.testing import Respond, ScriptRule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSONObject
    from xenoglot.testing import Received, Step

TEXT = (Path(__file__).parent / "foreign.toml").read_text(encoding="utf-8")
WORDS = tomllib.loads(TEXT)
CANARIES = Canaries("upstreams")
DIALECTS = list(REQUESTS)
PAIRS = [(client, upstream) for client in DIALECTS for upstream in DIALECTS]


@asynccontextmanager
async def gateway_and_upstream(
    upstream: str, *rules: ScriptRule | Sequence[Step]
) -> AsyncGenerator[tuple[Gateway, testing.Upstream]]:
    """Give a gateway before a scripted server of one dialect, and that server."""
    async with testing.Upstream(*rules) as server:
        transport = Transport()
        dialect = dialects.get(upstream)
        remote = Remote("main", dialect, server.url, transport=transport, keys=(CANARIES.upstream_key,))
        config = config_for(
            upstreams={
                "main": UpstreamSettings(
                    dialect=upstream,
                    base_url=server.url,
                    key_env="MAIN",
                    retry=Retry(attempts=1),
                    breaker=BreakerSettings(failures=10_000),
                )
            },
            keys=KeySettings(env=("CLIENTS",)),
            secrets=Secrets({"MAIN": CANARIES.upstream_key, "CLIENTS": CANARIES.client_key}),
        )
        yield Gateway(config, {"main": remote}), server
        await transport.aclose()


def streamed_body(client: str, body: JSONObject) -> tuple[str, JSONObject]:
    """Where a client asks for a stream, and how."""
    path, _ = REQUESTS[client]
    if client == "gemini":
        return "/v1beta/models/m:streamGenerateContent?alt=sse", body
    return path, {**body, "stream": True}


async def ask(
    gateway: Gateway, client: str, more: JSONObject, headers: Sequence[tuple[str, str]] = (), *, stream: bool = False
) -> DirectExchange:
    """Ask as a client does, with its key, and with `more` in the body."""
    path, body = REQUESTS[client]
    body = {**body, **more}
    if stream:
        path, body = streamed_body(client, body)
    asked = DirectExchange("POST", path, body, [("authorization", f"Bearer {CANARIES.client_key}"), *headers])
    await gateway.handle(asked)
    return asked


KINDS: tuple[FailureKind, ...] = (
    "invalid_request",
    "context_overflow",
    "authentication",
    "permission",
    "not_found",
    "rate_limit",
    "overloaded",
    "upstream",
)


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
async def test_s08_r32_an_upstream_that_quotes_our_key_is_not_quoted(client: str, upstream: str) -> None:
    key = CANARIES.upstream_key
    words = f"the key {key} of /srv/app.py may not, see http://10.0.0.7/?key={key} and {json.dumps({'k': key})}"
    with capture_logs() as heard:
        async with gateway_and_upstream(upstream) as (gateway, server):
            answers = []
            for kind in KINDS:
                server.script(
                    ScriptRule(steps=testing.refusal(upstream, Failure(kind=kind, message=words, code=key, param=key)))
                )
                answers += [await ask(gateway, client, {}, stream=stream) for stream in (False, True)]
    assert {answer.status for answer in answers} & {200, 401} == set()
    CANARIES.check_answers(f"{answer.response_headers}{answer.body!r}" for answer in answers)
    CANARIES.check(heard.texts)
    for answer in answers:
        if answer.status >= 500:
            assert b"/srv/app.py" not in answer.body
            assert b"10.0.0.7" not in answer.body


FOREIGN = tuple((name, value) for name, value in WORDS["of_upstreams"])
OURS = {
    "content-type",
    "content-length",
    "x-request-id",
    "request-id",
    "x-content-type-options",
    "cache-control",
    "x-accel-buffering",
    "x-xenoglot-losses",
    "x-xenoglot-target",
    "x-should-retry",
    "retry-after",
}


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
async def test_s18_of_an_upstreams_headers_none_is_passed_on(client: str, upstream: str) -> None:
    ready = testing.answers(upstream, text=("Hel", "lo."))
    answers = []
    async with gateway_and_upstream(upstream) as (gateway, server):
        for steps, stream in (
            (ready.complete(headers=FOREIGN), False),
            (ready.streamed(headers=FOREIGN), True),
            (testing.refusal(upstream, Failure(kind="overloaded", message="no"), FOREIGN), False),
            (testing.refusal(upstream, Failure(kind="not_found", message="no"), FOREIGN), True),
        ):
            server.script(ScriptRule(steps=steps))
            answers.append(await ask(gateway, client, {}, stream=stream))
    for answer in answers:
        assert set(answer.response_headers) <= OURS
        assert answer.response_headers["x-content-type-options"] == "nosniff"
        assert answer.response_headers["x-request-id"].startswith("req_")
        assert "forged" not in answer.response_headers.get("x-xenoglot-losses", "")
        assert not {"org-secret", "proj-secret", "req_theirs", "10.0.0.7"} & set(
            str(answer.response_headers).split("'")
        )


def model_choosing_headers(host: str) -> JSONObject:
    """Fields by which some gateways let a request choose where it goes."""
    fields: JSONObject = tomllib.loads(TEXT.replace("http://EVIL", host))["choosing"]
    return fields


def steering_headers(host: str) -> list[tuple[str, str]]:
    """Headers by which some do."""
    said = [(name, value.replace("http://EVIL", host)) for name, value in WORDS["steering"]]
    return [(name, value.replace("EVIL", host.removeprefix("http://"))) for name, value in said]


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
async def test_s11_r20_no_request_chooses_where_it_goes(client: str, upstream: str) -> None:
    ready = testing.answers(upstream, text=("Hello",))
    async with (
        testing.Upstream((Respond(200, (), b"{}"),)) as evil,
        gateway_and_upstream(upstream, *ready.rules()) as (gateway, server),
    ):
        asked = [await ask(gateway, client, model_choosing_headers(evil.url), steering_headers(evil.url), stream=False)]
        if client == upstream:  # where the bytes pass untouched, each on its own
            asked += [
                await ask(gateway, client, {name: said}) for name, said in model_choosing_headers(evil.url).items()
            ]
        assert evil.connections == []
        received = server.requests
        assert {answer.status for answer in asked} <= {200, 400}
        assert len(received) == sum(answer.status == 200 for answer in asked)
        for one in received:
            check_sent(one, server, evil.url)


def check_sent(received: Received, server: testing.Upstream, evil: str) -> None:
    """Fail unless a request is for its server, with our key, and with no header that a client made up."""
    told = dict(received.headers)
    assert told["host"] == server.url.removeprefix("http://")
    keys = [told[name] for name in ("authorization", "x-api-key", "x-goog-api-key") if name in told]
    assert all(CANARIES.upstream_key in key for key in keys)
    CANARIES_OF_CLIENT.check_answers([f"{received.headers}{received.target}"])
    values = " ".join(value for name, value in received.headers)
    assert "evil" not in values
    assert evil.removeprefix("http://") not in values + received.target
    names = {name for name, _ in steering_headers("")}
    assert set(told) & names == set()


class _OfClient(Canaries):
    """Whose keys are the client's alone: ours may be in what goes upstream."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The client's key."""
        return (self.client_key,)


CANARIES_OF_CLIENT = _OfClient("upstreams")


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("location", ["http://127.0.0.1:9/", "https://evil.example/", "/v1/elsewhere"])
async def test_r20_no_redirect_is_followed(upstream: str, location: str) -> None:
    async with gateway_and_upstream(upstream, (Respond(307, (("location", location),), b""),)) as (gateway, server):
        asked = await ask(gateway, "chat", {})
    assert (asked.status, len({one.target for one in server.requests})) == (502, 1)
    assert location.encode() not in asked.body


LINES = (
    '\r\n\r\n{"request":"req_forged","status":200}\ndata: [DONE]\n\nevent: error\nid: 1\r\n'
    "\x1b[31mred\x1b[0m\x00\u2028<script>alert(1)</script>"
)


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
async def test_s14_c22_words_that_look_like_frames_or_lines_are_words(client: str, upstream: str) -> None:
    ready = testing.answers(upstream, text=(LINES[:20], LINES[20:]), model=LINES)
    with capture_logs() as heard:
        async with gateway_and_upstream(upstream, *ready.rules()) as (gateway, _):
            stream = await ask(gateway, client, {}, stream=True)
            whole = await ask(gateway, client, {})
    for answer in (stream, whole):
        assert (answer.status, answer.complete) == (200, True)
        assert all(
            "\n" not in f"{name}{value}" and "\r" not in value for name, value in answer.response_headers.items()
        )
    frames = stream.body.split(b"\n")
    assert [frame for frame in frames if frame.startswith((b'{"request":"req_forged"', b"<script>", b"id: 1"))] == []
    assert [text for text in heard.texts if "\x1b" in text or "\nevent: error" in text] == []
    lines = [text for text in heard.texts if "req_forged" in text and "\n" in text.strip()]
    assert lines == []


@pytest.mark.parametrize(
    "secret", ["plain-secret-0123", 'quote"back\\slash-secret', "blanks and/slash?&=secret", "ünïcödé-secret-ключ"]
)
def test_r30_s08_a_secret_is_masked_however_it_is_spelled(secret: str) -> None:
    redact = Redactor([secret])
    spelled = [secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret), quote(secret, safe="")]
    for text in spelled:
        assert MASK in redact(f"before {text} after"), text
        assert redact(text).replace(MASK, "").strip("\"'") == "", text


def test_r30_a_secret_of_any_bytes_can_be_looked_for() -> None:
    secret = b"secret-\xff\xfe-of-bytes".decode("utf-8", "surrogateescape")
    assert Redactor([secret])(f"x {secret} y") == f"x {MASK} y"
