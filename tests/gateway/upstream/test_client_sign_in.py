"""The client's own sign-in reaches the host of its provider, nothing else, and no output of the gateway."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.auth.keys import Keyring
from xenoglot.model.failure import Failure
from xenoglot.policy.failure_policy import FailureAction, judge, of_clients_key
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.raw_http import Received

SECRET = "sk-ant-oat01-login-of-the-client"
KEY = "gw-key-of-the-gateway"
LOGIN = {"authorization": f"Bearer {SECRET}", "anthropic-beta": "oauth-2025-04-20", "x-xenoglot-key": KEY}
MESSAGES: JSONObject = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
CHAT: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
JSON_TYPE = (("content-type", "application/json"),)
COUNTED = ScriptRule(
    when=RequestMatcher(path="/v1/messages/count_tokens"), steps=(Respond(200, JSON_TYPE, b'{"input_tokens":3}'),)
)


def refusal(status: int, kind: str, *headers: tuple[str, str]) -> ScriptRule:
    """Refuse, and repeat the credential."""
    body = {"type": "error", "error": {"type": kind, "message": f"not accepted: Bearer {SECRET}"}}
    return ScriptRule(steps=(Respond(status, (*JSON_TYPE, *headers), json.dumps(body).encode()),))


def header(request: Received, name: str) -> list[str]:
    """Return the values of one header."""
    return [value for key, value in request.headers if key == name]


@contextmanager
def gateway(server: Upstream, keyed: bool = True, **more: JSON) -> Iterator[DialectGateway]:  # noqa: FBT001, FBT002
    """A gateway whose upstream wants the client's sign-in."""
    keys: JSONObject = {"keys": {"env": ["KEYS"]}} if keyed else {}
    with DialectGateway(server, "messages", {"KEYS": KEY}, upstream={"auth": "client"}, **keys, **more) as running:
        yield running


@pytest.fixture(scope="module", name="server")
def messages_server() -> Iterator[Upstream]:
    """A server of messages."""
    with Upstream(COUNTED, *answers("messages", text=("Hel", "lo.")).rules()) as server:
        yield server


@pytest.fixture(scope="module", name="running")
def keyed_gateway(server: Upstream) -> Iterator[DialectGateway]:
    """A gateway with keys in front of it."""
    with gateway(server) as running:
        yield running


def post(
    running: DialectGateway, path: str, body: JSONObject, headers: dict[str, str] | None = None
) -> httpx2.Response:
    """Send one request."""
    return httpx2.post(f"{running.url}{path}", json=body, headers=headers or LOGIN, timeout=TIMEOUT)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/messages", MESSAGES, id="whole"),
        pytest.param("/v1/messages", {**MESSAGES, "stream": True}, id="stream"),
        pytest.param("/v1/messages/count_tokens", CHAT, id="count"),
    ],
)
def test_the_login_goes_to_the_provider(server: Upstream, running: DialectGateway, path: str, body: JSONObject) -> None:
    server.forget()
    for _ in range(2):  # the second comes over a kept connection, without a task
        answer = post(running, path, body)
        assert answer.status_code == 200
        assert SECRET not in answer.text + str(answer.headers)
    for request in server.requests:
        assert header(request, "authorization") == [f"Bearer {SECRET}"]
        assert header(request, "anthropic-beta") == ["oauth-2025-04-20"]
        assert header(request, "x-xenoglot-key") == []
        assert KEY not in str(request.headers)


def test_logins_of_two_clients_are_not_mixed_up(server: Upstream, running: DialectGateway) -> None:
    server.forget()
    with httpx2.Client(base_url=running.url, timeout=TIMEOUT) as client:
        for name in ("one", "other", "one"):
            login = {"x-api-key": f"sk-ant-api03-{name}", "x-xenoglot-key": KEY}
            assert client.post("/v1/messages", json=MESSAGES, headers=login).status_code == 200
        missing = client.post("/v1/messages", json=MESSAGES, headers={"x-xenoglot-key": KEY})
    assert [header(request, "x-api-key") for request in server.requests] == [
        ["sk-ant-api03-one"],
        ["sk-ant-api03-other"],
        ["sk-ant-api03-one"],
    ]
    assert missing.status_code == 401
    assert "the provider of this model wants the client's own sign-in" in missing.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"authorization": f"Bearer {KEY}"}, 401, id="the-key-of-the-gateway-is-not-sent-on"),
        pytest.param({"authorization": f"Bearer {SECRET}"}, 401, id="no-key-of-the-gateway"),
        pytest.param({"authorization": f"Bearer {SECRET}", "x-xenoglot-key": "wrong"}, 401, id="a-wrong-key"),
        pytest.param(
            {"authorization": f"Bearer {KEY}", "x-xenoglot-key": KEY}, 401, id="the-same-key-in-both-is-not-sent-on"
        ),
        pytest.param({"x-api-key": SECRET, "x-litellm-api-key": f"Bearer {KEY}"}, 200, id="the-header-of-litellm"),
    ],
)
def test_the_key_of_the_gateway_has_a_header_of_its_own(
    server: Upstream, running: DialectGateway, headers: dict[str, str], status: int
) -> None:
    server.forget()
    assert post(running, "/v1/messages", MESSAGES, headers).status_code == status
    assert len(server.requests) == (status == 200)
    assert KEY not in str([request.headers for request in server.requests])


def test_a_client_of_another_dialect_has_no_login_for_the_provider(server: Upstream, running: DialectGateway) -> None:
    server.forget()
    answer = post(running, "/v1/chat/completions", CHAT)
    assert answer.status_code == 401
    assert server.requests == []


def test_a_fallback_to_another_host_has_no_login(server: Upstream) -> None:
    with Upstream(refusal(529, "overloaded_error")) as first, Upstream(refusal(529, "overloaded_error")) as second:
        server.forget()
        upstreams: JSONObject = {
            "first": {"dialect": "messages", "base_url": first.url, "auth": "client"},
            "second": {"dialect": "messages", "base_url": second.url, "auth": "client"},
            "third": {"dialect": "messages", "base_url": server.url, "key_env": "OTHER"},
        }
        models: JSON = [{"name": "m", "strategy": "ordered", "targets": [{"upstream": one} for one in upstreams]}]
        environ = {"KEYS": KEY, "OTHER": "sk-of-the-gateway"}
        config: JSONObject = {"keys": {"env": ["KEYS"]}, "models": models, "upstreams": upstreams}
        with DialectGateway(first, "messages", environ, **config) as running:
            answer = post(running, "/v1/messages", MESSAGES)
    assert answer.status_code == 200
    assert {value for request in first.requests for value in header(request, "authorization")} == {f"Bearer {SECRET}"}
    assert second.requests == []
    assert [header(request, "x-api-key") for request in server.requests] == [["sk-of-the-gateway"]]
    assert SECRET not in str([request.headers for request in server.requests])


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        pytest.param(401, "authentication_error", id="expired"),
        pytest.param(403, "permission_error", id="forbidden"),
        pytest.param(429, "rate_limit_error", id="quota"),
    ],
)
def test_a_refusal_is_the_clients_and_nobody_elses(status: int, kind: str) -> None:
    """A refused login must reach its client, which renews it; the requests of others go on."""
    once = [refusal(status, kind, ("retry-after", "600")) for _ in range(1)]
    rules = [ScriptRule(when=rule.when, steps=rule.steps, times=1) for rule in once]
    with Upstream(*rules, *answers("messages").rules()) as server, gateway(server) as running:
        refused = post(running, "/v1/messages", MESSAGES)
        other = post(running, "/v1/messages", MESSAGES, {"x-api-key": "sk-ant-api03-other", "x-xenoglot-key": KEY})
    assert (refused.status_code, refused.json()["error"]["type"]) == (status, kind)
    assert other.status_code == 200
    assert SECRET not in refused.text
    assert len(server.requests) == 2


def test_a_redirect_is_not_followed_with_the_login(server: Upstream) -> None:
    server.forget()
    moved = ScriptRule(steps=(Respond(307, (("location", f"{server.url}/v1/messages"),), b""),))
    with Upstream(moved) as first, gateway(first) as running:
        assert post(running, "/v1/messages", MESSAGES).status_code == 502
    assert server.requests == []


def test_a_gateway_without_keys_sends_the_login_on(server: Upstream) -> None:
    server.forget()
    with gateway(server, keyed=False) as running:
        assert post(running, "/v1/messages", MESSAGES, {"authorization": f"Bearer {SECRET}"}).status_code == 200
    assert [header(request, "authorization") for request in server.requests] == [[f"Bearer {SECRET}"]]


def test_no_output_has_the_login(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Log, ledger, captures, cache, idempotency, metrics, headers and the store, with errors that repeat it."""
    more: JSONObject = {
        "store": {"url": f"sqlite:///{tmp_path}/state.db"},
        "ledger": {},
        "capture": {"share": 1.0},
        "cache": {},
    }
    rule = refusal(400, "invalid_request_error")
    rules = [ScriptRule(when=rule.when, steps=rule.steps, times=2)]
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG), Upstream(*rules, *answers("messages").rules()) as server:
        with DialectGateway(
            server, "messages", {"KEYS": KEY}, upstream={"auth": "client"}, keys={"env": ["KEYS"]}, **more
        ) as running:
            for body in (MESSAGES, {**MESSAGES, "stream": True}, MESSAGES, MESSAGES, {**MESSAGES, "stream": True}):
                headers = {
                    **LOGIN,
                    "idempotency-key": f"key-{len(seen)}",
                    "traceparent": f"00-{'1' * 32}-{'2' * 16}-01",
                }
                answer = post(running, "/v1/messages", body, headers)
                seen.append(answer.text + str(answer.headers))
            for path in ("/metrics", "/v1/models", "/admin/v1/requests", "/admin/v1/usage"):
                answer = httpx2.get(f"{running.url}{path}", headers={"x-xenoglot-key": KEY}, timeout=TIMEOUT)
                seen.append(answer.text)
        assert len(server.requests) == 5  # none is answered from the cache: another login may not see it
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(stored) > 10_000
    for secret in (SECRET, KEY):
        assert secret.encode() not in stored
        assert secret not in caplog.text
        assert secret not in "".join(seen)


def test_which_headers_are_a_login() -> None:
    keyed, opened = Keyring([KEY]), Keyring()
    login = [("authorization", f"Bearer {SECRET}"), ("chatgpt-account-id", "a1"), ("accept", "*/*")]
    assert keyed.client_credential(login) is None
    found = keyed.client_credential([*login, ("x-xenoglot-key", KEY)])
    assert found is not None
    assert found == opened.client_credential(login)
    assert found.headers == (("authorization", f"Bearer {SECRET}"), ("chatgpt-account-id", "a1"))
    assert SECRET not in repr(found) + str(found)
    assert opened.client_credential([("accept", "*/*")]) is None


def test_the_key_of_a_client_is_not_to_blame_for_others() -> None:
    expired = Failure(kind="authentication", message="", status=401)
    quota = Failure(kind="rate_limit", message="", status=429)
    nobody = FailureAction(retry_same=False, retry_other=False, blame="none")
    assert of_clients_key(judge(expired), expired) == nobody
    assert of_clients_key(judge(quota), quota) == FailureAction(retry_same=False, retry_other=True, blame="none")
    broken = Failure(kind="overloaded", message="", status=529)
    assert of_clients_key(judge(broken), broken) == judge(broken)
