"""Every case, between every two dialects, streamed and whole, sync and async: what each side gets, whole."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.matrix.case import NOW, Case, response_envelope, stream_body, stream_options, whole_body
from tests.matrix.matrix_gateway import UPSTREAM_KEYS, MatrixGateway, model
from tests.matrix.sdk import MODES, Sdk
from tests.matrix.upstream import Reply, json_reply, stream_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON, JSONObject

FILES = sorted(path.stem for path in (Path(__file__).parent / "cases").glob("*.py"))
CASES = [case for name in FILES for case in import_module(f"tests.matrix.cases.{name}").CASES]
WAYS = ("whole", "streamed")

PARAMETERS = [
    pytest.param(case, pair, way, mode, id=f"{case.name}-{pair[0]}-to-{pair[1]}-{way}-{mode}")
    for case in CASES
    for pair in case.pairs
    for way in WAYS
    for mode in MODES
]

TOLD_HEADERS: dict[str, dict[str, str]] = {
    "chat": {"authorization": f"Bearer {UPSTREAM_KEYS['chat']}"},
    "messages": {"x-api-key": UPSTREAM_KEYS["messages"], "anthropic-version": "2023-06-01"},
}


HOME_HEADERS: dict[str, dict[str, str]] = {"chat": {}, "messages": {"anthropic-version": "2026-10-21"}}
"""What an upstream gets to see of the headers of a client of its own dialect."""


def upstream_headers(client: str, upstream: str, way: str) -> dict[str, str]:
    """Return all that an upstream may see in headers: next to nothing of the client's, and never its key."""
    return (
        TOLD_HEADERS[upstream]
        | (HOME_HEADERS[upstream] if client == upstream else {})
        | {
            "accept": "application/json" if way == "whole" else "text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "xenoglot",
            "x-xenoglot-hops": "1",
            "x-tenant": f"tenant-of-{upstream}",
        }
    )


def reply(case: Case, upstream: str, way: str) -> Reply:
    """Return what the upstream answers."""
    answer = case.answered[upstream]
    if way == "whole":
        return json_reply(whole_body(upstream, answer.whole))
    return stream_reply(stream_body(upstream, answer.stream))


def sdk_answer(sdk: Sdk, way: str, upstream: str, kwargs: JSONObject) -> JSON:
    """Return what the SDK makes of the answer."""
    if way == "whole":
        return sdk.create(model=model(upstream), **kwargs)
    options = {"stream_options": {"include_usage": True}} if sdk.dialect == "chat" else {}
    return sdk.stream(model=model(upstream), **{**options, **kwargs})


def settled(snapshot: JSON) -> JSON:
    """Return what a stream came to as the whole answer would say it: without what accumulators note for themselves."""
    if isinstance(snapshot, list):
        return [settled(item) for item in snapshot]
    if not isinstance(snapshot, dict):
        return snapshot
    notes = {"parsed", "parsed_arguments"} | ({"index"} if "function" in snapshot else set())
    return {key: settled(item) for key, item in snapshot.items() if key not in notes and item is not None}


def pinned(answer: JSONObject, before: float) -> JSONObject:
    """Return the answer with its time checked and replaced, where it is that of the gateway's clock."""
    created = answer.get("created")
    if isinstance(created, int) and int(before) <= created <= time.time():
        return answer | {"created": NOW}
    return answer


@pytest.mark.parametrize(("case", "pair", "way", "mode"), PARAMETERS)
def test_the_matrix(  # noqa: PLR0913, PLR0917  four axes, and what they need
    case: Case,
    pair: tuple[str, str],
    way: str,
    mode: str,
    matrix_gateway: MatrixGateway,
    client: Callable[..., Sdk],
    lines: AccessLines,
) -> None:
    speaks, upstream = pair
    sdk, before = client(speaks, mode), time.time()
    matrix_gateway.upstreams[upstream].script(reply(case, upstream, way))
    heard = sdk_answer(sdk, way, upstream, case.asked[speaks])
    (received,) = matrix_gateway.upstreams[upstream].received()
    line = lines.next()

    assert received.lasting == upstream_headers(speaks, upstream, way)
    if speaks == upstream:
        assert received.body == sdk.tap.sent
        direct = client(speaks, mode, matrix_gateway.upstreams[upstream].url)
        matrix_gateway.upstreams[upstream].script(reply(case, upstream, way))
        assert heard == sdk_answer(direct, way, upstream, case.asked[speaks])
        assert matrix_gateway.upstreams[upstream].received()[0].body == sdk.tap.sent
        assert line["losses"] == []
        return
    across = case.across[pair]
    wanted = across.told | (stream_options(upstream) if way == "streamed" else {})
    assert received.json == {"model": model(upstream), **wanted}
    expected = with_nulls(response_envelope(speaks, upstream) | across.heard, speaks, upstream)
    if way == "whole":
        assert pinned(heard, before) == expected
    elif across.gathered is not None:
        assert settled(pinned(heard, before)) == across.gathered
    else:
        assert settled(pinned(heard, before)) == settled(expected)
    assert line["losses"] == list(across.lost)


def with_nulls(heard: JSONObject, client: str, upstream: str) -> JSONObject:
    """Return an answer with the nulls that the schema of its dialect requires, where we wrote it ourselves."""
    if client != "chat" or upstream == "chat":
        return heard
    choices = [
        {"logprobs": None, **choice, "message": {"refusal": None, **choice["message"]}} for choice in heard["choices"]
    ]
    return heard | {"choices": choices}
