"""Requests of the ledger over HTTP: filters, pages, one of them, and a stream of them as they end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.admin.administered import ADMIN, KEYS, SECRETS, VIEWER, Administered
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject


@pytest.fixture(scope="module")
def ids() -> list[str]:
    """Return the ids of the requests that were sent, in their order."""
    return []


@pytest.fixture(scope="module")
def administered(ids: list[str]) -> Iterator[Administered]:
    """Give a gateway that has answered a request of each kind."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}) as running,
    ):
        sent = [
            running.generate("a"),
            running.generate("b", path="/v1/messages", max_tokens=9, top_k=3),
            running.generate("c", messages="none"),
            running.generate("a", stream=True),
        ]
        assert [one.status_code for one in sent] == [200, 200, 400, 200]
        ids += [one.headers["x-request-id"] for one in sent]
        yield running


def listed(administered: Administered, query: str) -> list[str]:
    answer = administered.admin("GET", f"/requests{query}")
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["data"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", [3, 2, 1, 0], id="all-newest-first"),
        pytest.param("?model=a", [3, 0], id="model"),
        pytest.param("?dialect=messages", [1], id="dialect"),
        pytest.param("?upstream=up", [3, 1, 0], id="upstream"),
        pytest.param("?upstream=down", [], id="no-such-upstream"),
        pytest.param("?status=400", [2], id="status"),
        pytest.param("?failed=true", [2], id="failed"),
        pytest.param("?failed=false", [3, 1, 0], id="not-failed"),
        pytest.param("?losses=true", [1], id="losses"),
        pytest.param("?from=1h", [3, 2, 1, 0], id="from"),
        pytest.param("?to=1h", [], id="to"),
        pytest.param("?tenant=ada", [], id="tenant"),
        pytest.param("?model=a&failed=true", [], id="two-conditions"),
    ],
)
def test_filters(administered: Administered, ids: list[str], query: str, expected: list[int]) -> None:
    assert listed(administered, query) == [ids[place] for place in expected]


def test_pages_have_every_request_once(administered: Administered, ids: list[str]) -> None:
    found, query, page = [], "?limit=3", {}
    for _ in range(2):
        page = administered.admin("GET", f"/requests{query}").json()
        found += [row["id"] for row in page["data"]]
        query = f"?limit=3&after={page['next']}"
    assert found == ids[::-1]
    assert (page["object"], page["has_more"], page["next"]) == ("list", False, None)


def test_one_request_with_its_losses(administered: Administered, ids: list[str]) -> None:
    found = administered.admin("GET", f"/requests/{ids[1]}").json()
    row = found["request"]
    assert (row["id"], row["dialect"], row["model"], row["losses"]) == (ids[1], "messages", "b", 1)
    assert (found["loss_kinds"], found["capture"]) == ({"dropped": 1}, [])
    missing = administered.admin("GET", "/requests/req_none")
    assert (missing.status_code, missing.json()["error"]["message"]) == (404, "no request `req_none` exists")


def test_requests_are_followed_as_they_end(administered: Administered) -> None:
    url, headers = f"{administered.url}/admin/v1/requests?follow=true&model=tail", {"x-api-key": ADMIN}
    with httpx2.stream("GET", url, headers=headers, timeout=TIMEOUT) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        lines = stream.iter_lines()
        assert next(lines) == ": requests as they end"
        first, _, second = (administered.generate(model).headers["x-request-id"] for model in ("tail", "a", "tail"))
        events = [event_of(lines) for _ in range(2)]
    assert [event["id"] for _, event in events] == [first, second]
    with httpx2.stream("GET", url, headers={**headers, "last-event-id": events[0][0]}, timeout=TIMEOUT) as stream:
        assert event_of(stream.iter_lines()) == events[1]


def test_a_stream_ends_when_the_gateway_drains() -> None:
    with (
        Upstream() as server,
        Administered(server, drain_seconds=TIMEOUT, ledger={}) as running,
        httpx2.stream("GET", f"{running.url}/admin/v1/requests?follow=true", timeout=TIMEOUT) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == ": requests as they end"
        assert running._server is not None
        running._server.should_exit = True
        assert [line for line in lines if line] == []


def event_of(lines: Iterator[str]) -> tuple[str, JSONObject]:
    """Return the id and the data of the next event."""
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(": ")
        if name and colon:
            found[name] = value
        elif "data" in found:
            break
    assert found["event"] == "request"
    return found["id"], json.loads(found["data"])


def test_a_captured_body_is_text() -> None:
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}, capture={"share": 1.0, "max_bytes": 40}) as running,
    ):
        sent = running.generate("m", path="/v1/messages", max_tokens=9, top_k=3)
        place = f"/requests/{sent.headers['x-request-id']}/capture"
        body = running.admin("GET", f"{place}/client_request", key=VIEWER).json()
        details = running.admin("GET", f"{place}/details").json()
        missing = running.admin("GET", f"{place}/other")
    assert body["text"] == sent.request.content.decode()[:40]
    assert (body["media"], body["truncated"]) == ("application/json", True)
    assert [loss["what"] for loss in json.loads(details["text"])["losses"]] == ["top_k"]
    assert details["truncated"] is False
    assert missing.status_code == 404
