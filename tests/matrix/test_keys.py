"""Keys of clients, in the headers in which the SDKs send them: taken or refused, never passed on (S01, pitfall-125)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anthropic
import pytest

from tests.matrix.case import HELLO, HI, whole_body
from tests.matrix.matrix_gateway import CLIENT_KEY, DIALECTS, MatrixGateway, model
from tests.matrix.refusals import anthropic_error, openai_error
from tests.matrix.sdk import Sdk, SyncChat, SyncMessages
from tests.matrix.test_matrix import upstream_headers
from tests.matrix.test_refusals import error_of, raised, without_id
from tests.matrix.upstream import json_reply

WRONG = "a-key-that-nobody-knows"

Carrier = Callable[[str, str], Sdk]


def openai_bearer(url: str, key: str) -> Sdk:
    """Return openai with a key, as everybody uses it."""
    return SyncChat(url, api_key=key)


def anthropic_bearer(url: str, key: str) -> Sdk:
    """Return anthropic with a key: since 2.0 it goes as a bearer token."""
    return SyncMessages(url, api_key=key)


def anthropic_token(url: str, key: str) -> Sdk:
    """Return anthropic with a token."""
    return SyncMessages(url, auth_token=key)


def anthropic_x_api_key(url: str, key: str) -> Sdk:
    """Return anthropic with a key in the header in which it went before 2.0."""
    return SyncMessages(url, default_headers={"X-Api-Key": key, "Authorization": anthropic.Omit()})


def anthropic_both(url: str, key: str) -> Sdk:
    """Return anthropic with the same key in both headers."""
    return SyncMessages(url, api_key=key, default_headers={"X-Api-Key": key})


CARRIERS: Mapping[str, Carrier] = {
    carrier.__name__: carrier
    for carrier in (openai_bearer, anthropic_bearer, anthropic_token, anthropic_x_api_key, anthropic_both)
}

NOT_OURS = "the API key is not one of this gateway's"
NOT_KNOWN = {
    "chat": openai_error(
        "AuthenticationError", 401, NOT_OURS, "authentication_error", "invalid_api_key", x_should_retry="false"
    ),
    "messages": anthropic_error("AuthenticationError", 401, NOT_OURS, "authentication_error", x_should_retry="false"),
}


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("carrier", [pytest.param(carrier, id=name) for name, carrier in CARRIERS.items()])
def test_a_key_is_taken_and_kept(carrier: Carrier, upstream: str, matrix_gateway: MatrixGateway) -> None:
    client = carrier(matrix_gateway.url, CLIENT_KEY)
    matrix_gateway.upstreams[upstream].script(json_reply(whole_body(upstream, HELLO[upstream].whole)))
    client.create(model=model(upstream), **HI[client.dialect])
    (received,) = matrix_gateway.upstreams[upstream].received()
    client.close()
    assert received.lasting == upstream_headers(client.dialect, upstream, "whole")
    assert CLIENT_KEY not in f"{received}"


@pytest.mark.parametrize("key", [WRONG, CLIENT_KEY[:-1], CLIENT_KEY + "0"])
@pytest.mark.parametrize("carrier", [pytest.param(carrier, id=name) for name, carrier in CARRIERS.items()])
def test_another_key_is_not(carrier: Carrier, key: str, matrix_gateway: MatrixGateway) -> None:
    client = carrier(matrix_gateway.url, key)
    error = raised(lambda: client.create(model=model("chat"), **HI[client.dialect]))
    client.close()
    assert without_id(error_of(error), client.tap.headers["request-id"]) == NOT_KNOWN[client.dialect]
    assert [upstream.received() for upstream in matrix_gateway.upstreams.values()] == [[], []]
