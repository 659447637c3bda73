"""The gateway over HTTP: what is where, who may, and what every answer has."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import AccessLines, RunningGateway, config_for, endpoint_rows, run_gateway
from tests.gateway.scripted_backends import (
    CHAT,
    HELLO,
    MESSAGES,
    PATHS,
    Backend,
    CountingBackend,
    FailingBackend,
    RateLimitedBackend,
)
from xenoglot.backends.scripted import Scripted
from xenoglot.dialect_registry import get
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.settings import KeySettings, ModelSettings, ServerSettings
from xenoglot.gateway.endpoint import request_runner
from xenoglot.model.failure import Failure
from xenoglot.model.limits import RateBudget, RateLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from xenoglot.model.json import JSON

KEY, OTHER = "sk-client-0123456789", "sk-client-9876543210"
FORMS: dict[str, Callable[[str], dict[str, str]]] = {
    "bearer": lambda key: {"authorization": f"Bearer {key}"},
    "x-api-key": lambda key: {"x-api-key": key},
    "api-key": lambda key: {"api-key": key},
}
CREDENTIALS = {"none": None, "wrong": "sk-client-012345678", "right": KEY, "two": KEY}
ROWS = {
    **{
        f"{row.method} {row.path}": (row.method, re.sub(r"\{\w+\}", "scripted", row.path), row.policy, row.dialect)
        for row in endpoint_rows()
        if not row.path.startswith("/console")  # which has sessions of its own: tests/gateway/console
    },
    "unknown route": ("POST", "/v1/nothing", "key", None),
    "wrong method": ("DELETE", "/v1/messages", "key", get("messages")),
}


@pytest.fixture(scope="module")
def open_gateway() -> Generator[RunningGateway]:
    """Give a gateway that lets everybody in."""
    with run_gateway({"scripted": Scripted(HELLO)}) as running:
        yield running


@pytest.fixture(scope="module")
def locked_gateway() -> Generator[RunningGateway]:
    """Give the same, for those who have a key."""
    keys = Config(keys=KeySettings(env=("CLIENTS",)), secrets=Secrets({"CLIENTS": f"{KEY} {OTHER}"}))
    config = config_for("scripted", keys=keys.keys, secrets=keys.secrets)
    with run_gateway({"scripted": Scripted(HELLO)}, config) as running:
        yield running


def forgetful(body: bytes) -> bytes:
    """Return `body` without ids of its request, its key and what it made, without times and what was counted."""
    body = re.sub(rb'"id":(null|"key_[0-9a-f]{12}"),"name":(null|"CLIENTS-1")', b"key", body)
    body = re.sub(rb"xenoglot_gateway.*\n", b"", body)
    return re.sub(rb'req_[0-9a-f]{26}|(?:conv|resp)_[0-9a-f]{24,48}|"created_at":[0-9]+', b"req", body)


def error_of(path: str, kind: str, message: str) -> JSON:
    """Return the error in the dialect of `path`, but for the id of its request."""
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req"}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("row", ROWS)
def test_s01_who_may_what(
    open_gateway: RunningGateway, locked_gateway: RunningGateway, row: str, credential: str, form: str
) -> None:
    method, path, policy, dialect = ROWS[row]
    body: JSON = {} if method == "POST" else None
    key = CREDENTIALS[credential]
    headers = FORMS[form](key) if key else {}
    if credential == "two":
        headers |= {"authorization": f"Bearer {OTHER}"} if form != "bearer" else {"x-api-key": OTHER}
    answer = locked_gateway.request(method, path, body, headers)
    let_in = open_gateway.request(method, path, body)
    refused = {"none": 401, "wrong": 401, "two": 400}
    if policy in ("view", "manage") and credential == "right":
        assert answer.status == 403
        assert get("chat").decode_error(answer.status, answer.json).kind == "permission"
    elif policy == "open" or credential == "right":
        assert (answer.status, forgetful(answer.body)) == (let_in.status, forgetful(let_in.body))
        assert answer.status not in (401, 403)
    else:
        unknown = (dialect or get("chat")).encode_error(Failure(kind="authentication", message=""))[0]
        assert answer.status == (unknown if refused[credential] == 401 else refused[credential])
        if method != "HEAD":
            failure = (dialect or get("chat")).decode_error(answer.status, answer.json)
            assert failure.kind == ("invalid_request" if credential == "two" else "authentication")


@pytest.mark.parametrize("query", ["key=", "api_key=", "x-api-key="])
def test_s07_a_key_in_the_query_is_none_and_not_written_down(
    locked_gateway: RunningGateway, access_lines: AccessLines, query: str
) -> None:
    answer = locked_gateway.request("GET", f"/v1/models?{query}{KEY}")
    assert answer.status == 401
    assert KEY not in str(access_lines.next())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("POST", "/v1/chat/completions", 200, id="chat"),
        pytest.param("POST", "/chat/completions", 200, id="C23-without-version"),
        pytest.param("POST", "/v1/chat/completions/", 200, id="C23-slash-at-the-end"),
        pytest.param("POST", "/v1/chat/completions?beta=true", 200, id="query"),
        pytest.param("POST", "/v1//chat/completions", 404, id="C23-double-slash"),
        pytest.param("POST", "//v1/chat/completions", 404, id="C23-double-slash-first"),
        pytest.param("POST", "/v1/x/../chat/completions", 404, id="C23-dots"),
        pytest.param("POST", "/v1/x/%2e%2e/chat/completions", 404, id="C23-encoded-dots"),
        pytest.param("POST", "/v1/chat%2Fcompletions", 404, id="C23-encoded-slash"),
        pytest.param("POST", "/v1/chat/completions;x", 404, id="C23-semicolon"),
        pytest.param("POST", "/v1/v1/chat/completions", 404, id="C23-version-twice"),
        pytest.param("POST", "/V1/chat/completions", 404, id="C23-case"),
        pytest.param("POST", "/v1/chat/completions//", 404, id="C23-two-slashes-at-the-end"),
        pytest.param("GET", "/v1/messages", 405, id="C23-wrong-method"),
        pytest.param("HEAD", "/v1/messages", 405, id="C23-head-of-a-post"),
        pytest.param("POST", "/health", 405, id="C23-post-to-a-get"),
        pytest.param("BREW", "/health", 405, id="C23-no-method"),
        pytest.param("OPTIONS", "/health", 405, id="C23-options"),
        pytest.param("HEAD", "/health", 200, id="head-of-a-get"),
        pytest.param("GET", "/v1/models/", 200, id="slash-of-the-list"),
        pytest.param("GET", "/models/scripted", 200, id="model-without-version"),
        pytest.param("GET", "/v1/models/..%2f..%2fetc%2fpasswd", 404, id="S13-traversal"),
        pytest.param("GET", "/", 200, id="root"),
        pytest.param("HEAD", "/", 200, id="head-of-the-root"),
        pytest.param("HEAD", "/api/hello", 200, id="claude-code-hello"),
        pytest.param("GET", "/api/hello", 405, id="get-hello"),
        pytest.param("GET", "/docs", 404, id="S17-no-documentation"),
        pytest.param("GET", "/metrics", 200, id="S17-metrics-for-this-machine"),
    ],
)
def test_paths(open_gateway: RunningGateway, method: str, path: str, status: int) -> None:
    assert open_gateway.request(method, path, CHAT if method == "POST" else None).status == status


@pytest.mark.parametrize(
    ("host", "said", "status"),
    [("127.0.0.1", None, 200), ("127.0.0.1", False, 404), ("0.0.0.0", None, 404), ("0.0.0.0", True, 200)],  # noqa: S104
)
def test_s17_metrics_are_not_on_a_public_listener(
    gateway_server: Callable[..., RunningGateway],
    host: str,
    said: bool | None,  # noqa: FBT001  a case
    status: int,
) -> None:
    config = config_for("own", server=ServerSettings(host=host, metrics=said, drain_seconds=0.0))
    running = gateway_server({"own": Scripted(HELLO)}, config)
    assert running.request("GET", "/metrics").status == status


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/messages", "POST"), ("/v1/models", "GET, HEAD"), ("/", "GET, HEAD"), ("/api/hello", "HEAD")],
)
def test_a_wrong_method_is_told_the_right_ones(open_gateway: RunningGateway, path: str, allowed: str) -> None:
    answer = open_gateway.request("DELETE", path)
    message = f"`DELETE` is not for this path: {allowed}"
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    expected = error_of(path, "invalid_request_error", message)
    assert answer.json == expected | ({"request_id": answer.headers["request-id"]} if "request_id" in expected else {})


@pytest.mark.parametrize(
    ("path", "mark", "style"),
    [
        pytest.param("/nothing", {}, "/v1/chat/completions", id="nobody-knows"),
        pytest.param("/nothing", {"anthropic-version": "2023-06-01"}, "/v1/messages", id="by-its-mark"),
        pytest.param("/v1/messages/nothing", {}, "/v1/messages", id="by-its-beginning"),
    ],
)
def test_pitfall_120_an_unknown_route_fails_in_the_clients_words(
    open_gateway: RunningGateway, path: str, mark: dict[str, str], style: str
) -> None:
    answer = open_gateway.request("POST", path, {}, mark)
    unmarked = forgetful(answer.body)
    assert answer.status == 404
    assert ("request_id" in answer.json) == (style == "/v1/messages"), unmarked
    assert answer.json["error"]["message"] == f"nothing is served at `{path}`"


def test_c28_a_websocket_that_no_path_has_is_refused_so_that_clients_fall_back(open_gateway: RunningGateway) -> None:
    head = (
        b"GET /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    with open_gateway.connect() as connection:
        connection.sendall(head)
        assert connection.recv(65536).split(b"\r\n")[0] == b"HTTP/1.1 426 Upgrade Required"


@pytest.mark.parametrize(
    ("asgi", "method", "path", "status"),
    [
        (False, "GET", "/health", 200),
        (False, "POST", "/v1/chat/completions", 200),
        (True, "GET", "/health", 200),
        (True, "POST", "/v1/chat/completions", 426),
    ],
)
def test_c28_an_upgrade_to_http2_is_passed_over_where_no_body_is_lost_by_it(
    gateway_server: Callable[..., RunningGateway],
    asgi: bool,  # noqa: FBT001  a case
    method: str,
    path: str,
    status: int,
) -> None:
    running = gateway_server({"scripted": Scripted(HELLO)}, asgi=asgi)
    headers = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": ""}
    assert running.request(method, path, CHAT if method == "POST" else None, headers).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"host": "localhost:1"}, 200, id="R41-loopback-name"),
        pytest.param({"host": "evil.example"}, 403, id="S03-rebinding"),
        pytest.param({"host": "localhost/admin"}, 400, id="S02-path"),
        pytest.param({"origin": "https://evil.example"}, 403, id="S04-foreign-origin"),
        pytest.param({"sec-fetch-mode": "cors"}, 200, id="R41-node-client"),
        pytest.param({"content-type": "text/plain"}, 415, id="S04-simple-request"),
        pytest.param({"content-type": "multipart/form-data; boundary=x"}, 415, id="C24-multipart"),
        pytest.param({"content-type": "application/json; charset=utf-8"}, 200, id="C24-charset"),
        pytest.param({"content-encoding": "gzip"}, 415, id="C09-compressed"),
        pytest.param({"accept": "application/json"}, 200, id="C25-accept"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_what_comes_in(open_gateway: RunningGateway, path: str, headers: dict[str, str], status: int) -> None:
    answer = open_gateway.request("POST", path, PATHS[path], headers)
    assert answer.status == status
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_preflight_from_an_allowed_origin() -> None:
    server = ServerSettings(allowed_origins=("https://app.example",), drain_seconds=0.0)
    origin = {"origin": "https://app.example", "access-control-request-headers": "authorization, content-type"}
    with run_gateway({"scripted": Scripted(HELLO)}, config_for("scripted", server=server)) as running:
        asked = running.request("OPTIONS", "/v1/messages", None, origin)
        answer = running.request("POST", "/v1/messages", MESSAGES, {"origin": "https://app.example"})
        foreign = running.request("OPTIONS", "/v1/messages", None, {"origin": "https://evil.example"})
    assert (asked.status, asked.headers["access-control-allow-headers"]) == (204, "authorization, content-type")
    assert (asked.headers["access-control-allow-methods"], asked.body) == ("POST", b"")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert (foreign.status, foreign.headers.get("access-control-allow-origin")) == (403, None)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/health", None),
        ("GET", "/v1/models", None),
        ("POST", "/v1/messages", MESSAGES),
        ("POST", "/v1/chat/completions", {**CHAT, "stream": True}),
        ("POST", "/v1/messages", b"{"),
        ("GET", "/nothing", None),
    ],
)
def test_s18_the_headers_of_every_answer(
    open_gateway: RunningGateway, access_lines: AccessLines, method: str, path: str, body: JSON
) -> None:
    answer = open_gateway.request(method, path, body)
    line = access_lines.next()
    identifier = line["request"]
    same = {name: answer.headers[name] for name in ("x-request-id", "request-id", "x-content-type-options")}
    assert same == {"x-request-id": identifier, "request-id": identifier, "x-content-type-options": "nosniff"}
    assert {"server", "set-cookie"}.isdisjoint(answer.headers)
    assert line["status"] == answer.status


def test_a_stream_is_not_kept_and_not_gathered(open_gateway: RunningGateway) -> None:
    answer = open_gateway.request("POST", "/v1/messages", {**MESSAGES, "stream": True})
    names = ("content-type", "cache-control", "x-accel-buffering", "transfer-encoding")
    assert [answer.headers[name].partition(";")[0] for name in names] == [
        "text/event-stream",
        "no-cache",
        "no",
        "chunked",
    ]
    assert answer.body.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


def test_health_says_nothing_more(open_gateway: RunningGateway) -> None:
    assert open_gateway.request("GET", "/health").body == b'{"status":"ok"}'


def test_the_line_of_an_answer(open_gateway: RunningGateway, access_lines: AccessLines) -> None:
    open_gateway.request("POST", "/v1/messages?beta=true", {**MESSAGES, "top_k": 3})
    line = access_lines.next()
    times = (line.pop("ttfb_ms"), line.pop("total_ms"))
    assert 0 < times[0] <= times[1]
    assert line | {"time": "", "request": "", "losses": []} == {
        "time": "",
        "level": "info",
        "event": "request",
        "request": "",
        "method": "POST",
        "route": "/v1/messages",
        "dialect": "messages",
        "tenant": None,
        "model": "m",
        "backend": "scripted",
        "target": "m",
        "substituted": False,
        "tries": 1,
        "stream": False,
        "status": 200,
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read": None, "cache_write": None, "reasoning": None},
        "finish": "stop",
        "failure": None,
        "losses": [],
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 400, id="empty"),
        pytest.param(b"{", 400, id="cut"),
        pytest.param(b"[]", 400, id="no-object"),
        pytest.param(b"null", 400, id="null"),
        pytest.param(b"\xff\xfe{\x00}\x00", 400, id="C12-utf16"),
        pytest.param(b'{"model": "\\ud800"}', 400, id="C12-lone-surrogate"),
        pytest.param(b"[" * 100_000, 400, id="C11-deep"),
        pytest.param(b'{"model": NaN}', 400, id="C14-nan"),
        pytest.param(b'{"model": 1, "messages": []}', 400, id="C15-wrong-type"),
        pytest.param(
            b'{"model": "", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}', 404, id="C21-empty-model"
        ),
        pytest.param(
            b'{"model": "a\\nb", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}',
            404,
            id="C21-control-characters",
        ),
    ],
)
@pytest.mark.parametrize("path", [*PATHS, "/v1/messages/count_tokens"])
def test_a_broken_body(open_gateway: RunningGateway, path: str, body: bytes, status: int) -> None:
    answer = open_gateway.request("POST", path, body)
    assert answer.status == status, answer.body
    assert ("request_id" in answer.json) == path.startswith("/v1/messages")
    assert answer.headers["x-should-retry"] == "false"


def test_a_body_may_say_nothing_of_itself(open_gateway: RunningGateway) -> None:
    assert open_gateway.request("POST", "/v1/chat/completions", CHAT, {}).status == 200


@pytest.mark.parametrize(
    ("failure", "path", "status", "headers"),
    [
        pytest.param(
            Failure(kind="rate_limit", message="slow down", retry_after=7.2),
            "/v1/messages",
            429,
            {"retry-after": "8"},
            id="U37-seconds",
        ),
        pytest.param(
            Failure(kind="rate_limit", message="slow down"),
            "/v1/chat/completions",
            429,
            {"retry-after": "5"},
            id="U37-none",
        ),
        pytest.param(
            Failure(kind="rate_limit", message="slow down", retry_after=1e9),
            "/v1/chat/completions",
            429,
            {"retry-after": "60"},
            id="U37-long",
        ),
        pytest.param(Failure(kind="overloaded", message="busy"), "/v1/messages", 529, {}, id="U38-overloaded-messages"),
        pytest.param(
            Failure(kind="overloaded", message="busy"), "/v1/chat/completions", 503, {}, id="U38-overloaded-chat"
        ),
        pytest.param(
            Failure(kind="not_found", message="gone"), "/v1/messages", 404, {"x-should-retry": "false"}, id="U41"
        ),
        pytest.param(Failure(kind="upstream", message="broken"), "/v1/chat/completions", 502, {}, id="U40"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_failures(  # noqa: PLR0913, PLR0917  the cases, and a fixture
    gateway_server: Callable[..., RunningGateway],
    failure: Failure,
    path: str,
    status: int,
    headers: dict[str, str],
    stream: bool,  # noqa: FBT001  a case
) -> None:
    running = gateway_server({"scripted": Scripted(failure)})
    answer = running.request("POST", path, {**PATHS[path], "stream": stream})
    told = {name: answer.headers[name] for name in ("retry-after", "x-should-retry") if name in answer.headers}
    assert (answer.status, told, answer.json["error"]["message"]) == (status, headers, failure.message)


def test_r32_a_bug_tells_nothing_but_an_id(
    gateway_server: Callable[..., RunningGateway], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_runner, "has_user_frames", lambda _: False)  # as in code of the gateway itself
    running = gateway_server({"scripted": FailingBackend()})
    with caplog.at_level(logging.DEBUG):
        answer = running.request("POST", "/v1/messages", MESSAGES)
        running.stop()
    assert answer.json == {
        "type": "error",
        "error": {
            "type": "api_error",
            "message": "internal error: the gateway failed; search its log for the request's id",
        },
        "request_id": answer.headers["request-id"],
    }
    assert answer.status == 500
    assert answer.headers["request-id"] in caplog.text
    assert "builtins.RuntimeError at" in caplog.text
    assert "canary-of-the-prompt" not in caplog.text


@pytest.mark.parametrize("failing", [False, True], ids=["answered", "refused"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_bug_where_headers_are_written_is_answered_too(
    gateway_server: Callable[..., RunningGateway],
    stream: bool,  # noqa: FBT001  a case
    failing: bool,  # noqa: FBT001  a case
) -> None:
    """What a dialect cannot write must not leave the client with the server's own page."""
    limits = RateLimits(requests=RateBudget(reset=1e300))
    running = gateway_server({"scripted": RateLimitedBackend(limits, failing=failing)})
    answer = running.request("POST", "/v1/messages", {**MESSAGES, "stream": stream})
    assert (answer.status, answer.json) == (
        500,
        {
            "type": "error",
            "error": {
                "type": "api_error",
                "message": "internal error: the gateway failed; search its log for the request's id",
            },
            "request_id": answer.headers["request-id"],
        },
    )


def test_models(open_gateway: RunningGateway) -> None:
    openai = open_gateway.request("GET", "/v1/models?limit=1000").json
    anthropic = open_gateway.request("GET", "/v1/models?limit=1000", None, {"anthropic-version": "2023-06-01"}).json
    assert [model["id"] for model in openai["data"]] == ["scripted"]
    assert openai["object"] == "list"
    assert [(model["id"], model["type"]) for model in anthropic["data"]] == [("scripted", "model")]
    assert anthropic["has_more"] is False
    assert open_gateway.request("GET", "/v1/models/scripted").json == openai["data"][0]


def test_a_model_that_is_not_there(open_gateway: RunningGateway) -> None:
    answer = open_gateway.request("GET", "/v1/models/gpt-4o")
    message = "the model `gpt-4o` does not exist here; GET /v1/models says which do"
    assert (answer.status, answer.json["error"]["message"]) == (404, message)
    assert answer.json["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("backend", "tokens", "how"),
    [
        pytest.param(CountingBackend(), 42, "exact", id="C30-exact"),
        pytest.param(Backend(), 5, "estimate", id="estimate"),
    ],
)
def test_f_s6_tokens_are_counted_or_said_to_be_estimated(
    gateway_server: Callable[..., RunningGateway], backend: Backend, tokens: int, how: str
) -> None:
    running = gateway_server({"scripted": backend})
    answer = running.request("POST", "/v1/messages/count_tokens?beta=true", CHAT)
    assert (answer.status, answer.json, answer.headers["x-xenoglot-count"]) == (200, {"input_tokens": tokens}, how)


def test_the_embedded_model_says_that_it_answers_instead(access_lines: AccessLines) -> None:
    config = Config(server=ServerSettings(drain_seconds=0.0))
    with run_gateway({"embedded": Scripted(HELLO)}, config, embedded_model="tiny") as running:
        instead = running.request("POST", "/v1/chat/completions", {**CHAT, "model": "gpt-4o"})
        itself = running.request("POST", "/v1/chat/completions", {**CHAT, "model": "tiny"})
    assert instead.headers["x-xenoglot-substituted-model"] == "tiny"
    assert "x-xenoglot-substituted-model" not in itself.headers
    lines = [access_lines.next() for _ in range(2)]
    assert [(line["model"], line["target"], line["substituted"]) for line in lines] == [
        ("gpt-4o", "tiny", True),
        ("tiny", "tiny", False),
    ]


def test_an_alias_has_its_defaults(gateway_server: Callable[..., RunningGateway]) -> None:
    backend = Scripted(HELLO)
    named = ModelSettings(name="claude-*", upstream="scripted", model="large")
    running = gateway_server({"scripted": backend}, config_for("scripted", models=(named,)))
    assert running.request("POST", "/v1/messages", {**MESSAGES, "model": "claude-x"}).status == 200
    assert running.request("POST", "/v1/messages", {**MESSAGES, "model": "gpt-x"}).status == 404
    assert [request.model for request in backend.requests] == ["large"]
