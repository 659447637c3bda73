"""A gateway in front of an upstream that wants signatures of AWS: each request has one; refused keys are replaced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.backends.remote.sign_in.signature_check import refusal
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject

CHAT: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES: JSONObject = {**CHAT, "max_tokens": 100}
KEYS = {"AKIDEXAMPLE": ("the-secret-key", "the-session-token"), "AKIDANOTHER": ("another-key", "the-session-token")}
JSON_TYPE = (("content-type", "application/json"),)
AWS: JSONObject = {"auth": "aws", "sign_in": {"region": "eu-central-1", "service": "bedrock"}, "retry": {"attempts": 1}}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """A server of messages, with its count of tokens."""
    counted = ScriptRule(
        when=RequestMatcher(path="/v1/messages/count_tokens"), steps=(Respond(200, JSON_TYPE, b'{"input_tokens":3}'),)
    )
    with Upstream(counted, *answers("messages", text=("Hel", "lo.")).rules()) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: Upstream) -> Iterator[DialectGateway]:
    """A gateway with keys of AWS in its environment."""
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        environ.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
        environ.setenv("AWS_SESSION_TOKEN", "the-session-token")
        with DialectGateway(upstream, "messages", {}, upstream=AWS) as running:
            yield running


def refusals(upstream: Upstream, now: datetime | None = None) -> list[str | None]:
    """Return how a server of AWS judges the signature of each request that came, by its own clock."""
    return [
        refusal(
            request.method,
            request.path,
            dict(request.headers),
            request.body,
            keys=KEYS,
            scope=("eu-central-1", "bedrock"),
            now=now,
        )
        for request in upstream.requests
    ]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/messages", MESSAGES, id="same-dialect"),
        pytest.param("/v1/messages", {**MESSAGES, "stream": True}, id="same-dialect-stream"),
        pytest.param("/v1/chat/completions", CHAT, id="translated"),
        pytest.param("/v1/chat/completions", {**CHAT, "stream": True}, id="translated-stream"),
        pytest.param("/v1/messages/count_tokens", CHAT, id="count"),
    ],
)
def test_every_request_is_signed(upstream: Upstream, gateway: DialectGateway, path: str, body: JSONObject) -> None:
    upstream.forget()
    answer = httpx2.post(f"{gateway.url}{path}", json=body, timeout=TIMEOUT)
    assert answer.status_code == 200, answer.text
    assert refusals(upstream) == [None]
    assert not any(secret in answer.text + str(answer.headers) for secret in ("the-secret-key", "the-session-token"))


def test_refused_keys_are_replaced_without_a_failed_request(
    upstream: Upstream, gateway: DialectGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an instance with a role sees whose session token expired in the middle of its work."""
    monkeypatch.setattr("xenoglot.backends.remote.sign_in.refreshed_credential.RENEWAL_SECONDS", 0.0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDANOTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-key")
    upstream.forget()
    expired = b'{"message":"The security token included in the request is expired"}'
    headers = (*JSON_TYPE, ("x-amzn-errortype", "ExpiredTokenException"))
    refusing = ScriptRule(steps=(Respond(403, headers, expired),), times=1)
    upstream.script(refusing, *answers("messages", text=("Hel", "lo.")).rules())
    answer = httpx2.post(f"{gateway.url}/v1/messages", json=MESSAGES, timeout=TIMEOUT)
    assert (answer.status_code, answer.json()["content"][0]["text"]) == (200, "Hello.")
    assert refusals(upstream) == [None, None]


def test_a_wrong_clock_costs_no_failed_request(upstream: Upstream, gateway: DialectGateway) -> None:
    """A server an hour ahead refuses the signature once; from then on requests are signed for its time."""
    upstream.forget()
    ahead = datetime.now(UTC) + timedelta(hours=1)
    headers = (
        *JSON_TYPE,
        ("x-amzn-errortype", "InvalidSignatureException"),
        ("date", format_datetime(ahead, usegmt=True)),
    )
    late = Respond(403, headers, b'{"message":"Signature expired"}')
    upstream.script(ScriptRule(steps=(late,), times=1), *answers("messages", text=("Hel", "lo.")).rules())
    for _ in range(2):
        answer = httpx2.post(f"{gateway.url}/v1/messages", json=MESSAGES, timeout=TIMEOUT)
        assert (answer.status_code, answer.json()["content"][0]["text"]) == (200, "Hello.")
    assert refusals(upstream) == [None, "InvalidSignatureException", "InvalidSignatureException"]
    assert refusals(upstream, ahead) == ["InvalidSignatureException", None, None]
