"""Each way to be refused, between every two dialects: which error the SDK raises, with what in it, and no more."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import anthropic
import httpx2
import openai
import pytest

from tests.matrix.case import HI
from tests.matrix.matrix_gateway import DIALECTS, MatrixGateway, model
from tests.matrix.refusals import IN_SEVEN_SECONDS, REFUSALS, REQUEST, Refusal
from tests.matrix.sdk import MODES, Sdk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON, JSONObject

APIError = (openai.APIError, anthropic.APIError)
WAYS = ("whole", "streamed")
ADVICE = ("retry-after", "retry-after-ms", "x-should-retry")
SECONDS = 7

PARAMETERS = [
    pytest.param(refusal, (speaks, upstream), way, mode, id=f"{refusal.name}-{speaks}-to-{upstream}-{way}-{mode}")
    for refusal in REFUSALS
    for speaks in DIALECTS
    for upstream in refusal.answered
    for way in WAYS
    for mode in MODES
]


def raised(call: Callable[[], JSON]) -> Exception:
    """Return the error that a call raises: the SDK's, or what slipped through the SDK."""
    with pytest.raises((*APIError, httpx2.HTTPError, ValueError)) as caught:
        call()
    return caught.value


def error_of(error: Exception) -> JSONObject:
    """Return all that an error tells: its class, an SDK's also the body, and where there is a status, the advice."""
    told: JSONObject = {"class": type(error).__name__}
    if isinstance(error, APIError):
        told["body"] = error.body
    if isinstance(error, openai.APIStatusError | anthropic.APIStatusError):
        headers = error.response.headers
        told["status"] = error.status_code
        told |= {name: headers[name] for name in headers if name in ADVICE or "ratelimit" in name}
    return told


def without_id(told: JSONObject, request_id: str) -> JSONObject:
    """Return what an error tells, with the request's id checked and replaced."""
    body = told.get("body")
    if isinstance(body, dict) and body.get("request_id") == request_id:
        return told | {"body": body | {"request_id": REQUEST}}
    return told


def pinned(told: JSONObject, request_id: str, before: float) -> JSONObject:
    """Return what an error tells, with the request's id and the one moment checked and replaced."""
    told = without_id(told, request_id)
    reset = told.get("anthropic-ratelimit-requests-reset")
    if reset is not None:
        moment = datetime.fromisoformat(reset).timestamp()
        assert int(before) <= moment - SECONDS <= time.time()
        told |= {"anthropic-ratelimit-requests-reset": IN_SEVEN_SECONDS}
    return told


@pytest.mark.parametrize(("refusal", "pair", "way", "mode"), PARAMETERS)
def test_a_refusal(  # noqa: PLR0913, PLR0917  four axes, and what they need
    refusal: Refusal,
    pair: tuple[str, str],
    way: str,
    mode: str,
    matrix_gateway: MatrixGateway,
    client: Callable[..., Sdk],
    lines: AccessLines,
) -> None:
    speaks, upstream = pair
    sdk, before = client(speaks, mode), time.time()
    matrix_gateway.upstreams[upstream].script(refusal.answered[upstream])
    call = sdk.create if way == "whole" else sdk.stream
    error = raised(lambda: call(model=model(upstream), **HI[speaks]))
    line = lines.next()
    assert len(matrix_gateway.upstreams[upstream].received()) == 1  # nobody tries again
    assert sdk.tap.headers["x-request-id"] == sdk.tap.headers["request-id"] == line["request"]
    assert pinned(error_of(error), line["request"], before) == refusal.raised[pair]
    assert isinstance(error, openai.APIStatusError | anthropic.APIStatusError)
    assert error.request_id == line["request"]
    assert line["status"] == error.status_code
