"""Clients of Bedrock: what they read of an answer's head, and those that sign requests for a gateway with keys."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import boto3
import httpx2
import pytest
from anthropic import AnthropicBedrock
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing.canned import answers
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

TURN: Any = {"role": "user", "content": [{"text": "Hi"}]}
PATHS = [
    "/model/m/converse",
    "/model/m/converse-stream",
    "/model/m/invoke",
    "/model/m/invoke-with-response-stream",
    "/model/m/count-tokens",
]


@pytest.fixture(scope="module", name="gateway")
def gateway_with_keys() -> Iterator[DialectGateway]:
    """A gateway with a key."""
    with (
        Upstream(*answers("messages", text=("Hi",)).rules()) as server,
        DialectGateway(server, "messages", {"KEYS": "sk-gateway"}, keys={"env": ["KEYS"]}) as running,
    ):
        yield running


def boto(url: str) -> Any:  # noqa: ANN401  made of the service's model
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_a_signed_request_is_told_what_to_send(gateway: DialectGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    with closing(boto(gateway.url)) as client, pytest.raises(ClientError) as raised:
        client.converse(modelId="m", messages=[TURN])
    error = raised.value.response
    assert (error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"]) == (403, "UnrecognizedClientException")
    assert "set AWS_BEARER_TOKEN_BEDROCK to a key of the gateway" in error["Error"]["Message"]


def test_the_key_beside_the_signature(gateway: DialectGateway) -> None:
    """boto3 sends no bearer token over plain HTTP (`BearerAuth` in `botocore/auth.py`)."""
    with closing(boto(gateway.url)) as client:
        client.meta.events.register(
            "before-sign.bedrock-runtime",
            lambda request, **_: request.headers.add_header("x-xenoglot-key", "sk-gateway"),
        )
        answer = client.converse(modelId="m", messages=[TURN], inferenceConfig={"maxTokens": 9})
    assert answer["output"]["message"]["content"] == [{"text": "Hi"}]
    assert answer["ResponseMetadata"]["RequestId"].startswith("req_")


def test_the_key_as_bearer_token(gateway: DialectGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "sk-gateway")
    with AnthropicBedrock(base_url=gateway.url, aws_region="us-east-1", max_retries=0) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
    assert answer.to_dict()["content"] == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize("path", PATHS)
def test_every_error_has_the_headers_of_the_api(gateway: DialectGateway, path: str) -> None:
    """Before a request is read, where it is malformed, and where it came too far to be read."""
    key = {"authorization": "Bearer sk-gateway"}
    refused = httpx2.post(f"{gateway.url}{path}", json={}, timeout=TIMEOUT)
    malformed = httpx2.post(f"{gateway.url}{path}", content=b"[]", headers=key, timeout=TIMEOUT)
    wrong = httpx2.put(f"{gateway.url}{path}", json={}, headers=key, timeout=TIMEOUT)
    told = [(answer.status_code, answer.headers["x-amzn-errortype"]) for answer in (refused, malformed, wrong)]
    assert told == [
        (403, "UnrecognizedClientException"),
        (400, "ValidationException"),
        (405, "ValidationException"),
    ]
    for answer in (refused, malformed, wrong):
        assert answer.json()["__type"] == answer.headers["x-amzn-errortype"]
        assert answer.headers["x-amzn-requestid"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_other_dialects_have_none_of_them(gateway: DialectGateway, path: str) -> None:
    answer = httpx2.post(f"{gateway.url}{path}", json={}, timeout=TIMEOUT)
    assert answer.status_code == 401
    assert not [name for name in answer.headers if name.startswith("x-amzn")]
