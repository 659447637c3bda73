"""The administration: roles, one form of error, pages, and methods; each over HTTP at a gateway with a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import httpx2
import pytest
from msgspec import Meta, Struct

from tests.gateway.admin.administered import ADMIN, CLIENT, KEYS, SECRETS, VIEWER, Administered
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.errors import WireError
from xenoglot.gateway.admin.route import Page, PageQuery, decode_cursor, decoded, encode_cursor
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON


@pytest.fixture(scope="module")
def administered() -> Iterator[Administered]:
    """Give a gateway with a ledger, an administrator, a viewer and a client, which has sent three requests."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}) as running,
    ):
        for model in ("a", "b", "b"):
            running.generate(model)
        yield running


@pytest.mark.parametrize(
    ("key", "method", "path", "status"),
    [
        pytest.param(None, "GET", "/usage", 401, id="no-key"),
        pytest.param("wrong", "GET", "/usage", 401, id="wrong-key"),
        pytest.param(CLIENT, "GET", "/usage", 403, id="client-reads"),
        pytest.param(CLIENT, "POST", "/usage", 403, id="client-changes"),
        pytest.param(VIEWER, "GET", "/usage", 200, id="viewer-reads"),
        pytest.param(VIEWER, "HEAD", "/usage", 200, id="viewer-reads-the-head"),
        pytest.param(VIEWER, "POST", "/usage", 403, id="viewer-changes"),
        pytest.param(VIEWER, "DELETE", "/usage", 403, id="viewer-deletes"),
        pytest.param(VIEWER, "PATCH", "/usage", 403, id="viewer-edits"),
        pytest.param(ADMIN, "GET", "/usage", 200, id="admin-reads"),
        pytest.param(ADMIN, "GET", "/usage/", 200, id="slash-at-the-end"),
        pytest.param(ADMIN, "POST", "/usage", 405, id="wrong-method"),
        pytest.param(ADMIN, "GET", "/nothing", 404, id="unknown-path"),
        pytest.param(ADMIN, "GET", "//usage", 404, id="empty-segment"),
    ],
)
def test_who_may_what(administered: Administered, key: str | None, method: str, path: str, status: int) -> None:
    answer = administered.admin(method, path, key=key)
    assert answer.status_code == status
    if status >= 400:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    if status == 405:
        assert answer.headers["allow"] == "GET, HEAD"
    if status in (200, 405):
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("key", "method", "named"),
    [
        pytest.param(VIEWER, "POST", True, id="viewer"),
        pytest.param(CLIENT, "GET", True, id="client"),
        pytest.param("wrong", "GET", False, id="wrong-key"),
    ],
)
def test_a_refusal_by_role_is_logged_with_the_key(
    administered: Administered, access_lines: AccessLines, key: str, method: str, *, named: bool
) -> None:
    assert administered.admin(method, "/usage", key=key).status_code == (403 if named else 401)
    assert ("key" in access_lines.next()) is named


def test_usage_is_summed_filtered_and_paged(administered: Administered) -> None:
    every = administered.admin("GET", "/usage?by=model").json()
    assert [(row["model"], row["requests"], row["unpriced"]) for row in every["data"]] == [("a", 1, 1), ("b", 2, 2)]
    assert (every["object"], every["by"], every["has_more"], every["next"]) == ("usage", ["model"], False, None)
    assert "tenant" not in every["data"][0]
    one = administered.admin("GET", "/usage?by=model&model=b").json()["data"]
    assert one == every["data"][1:]
    first = administered.admin("GET", "/usage?by=model&limit=1").json()
    second = administered.admin("GET", f"/usage?by=model&limit=1&after={first['next']}").json()
    assert (first["has_more"], second["has_more"], second["next"]) == (True, False, None)
    assert first["data"] + second["data"] == every["data"]


def test_usage_is_summed_by_a_tag() -> None:
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}) as running,
    ):
        for team in ("search", "ads"):
            headers = {"authorization": f"Bearer {CLIENT}", "x-xenoglot-tags": f"team={team}"}
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            httpx2.post(f"{running.url}/v1/chat/completions", json=body, headers=headers, timeout=TIMEOUT)
        answer = running.admin("GET", "/usage?by=tag:team,model").json()
        table = running.admin("GET", "/usage?by=tag:team&format=csv").text.splitlines()
        refused = running.admin("GET", "/usage?by=tag:")
    assert answer["by"] == ["tag:team", "model"]
    assert [(row["tags"], row["model"], row["requests"]) for row in answer["data"]] == [
        ({"team": "ads"}, "m", 1),
        ({"team": "search"}, "m", 1),
    ]
    assert [line.partition(",")[0] for line in table] == ["tag:team", "ads", "search"]
    assert (refused.status_code, "tag:NAME" in refused.text) == (400, True)


def test_usage_as_csv(administered: Administered) -> None:
    answer = administered.admin("GET", "/usage?by=model,day&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    head, *rows = answer.text.splitlines()
    assert head.startswith("model,day,currency,requests,failures,input,output")
    assert [row.partition(",")[0] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "param", "problem"),
    [
        pytest.param("by=colour", "by", "expected some of tenant, key", id="value"),
        pytest.param("from=soon", "from", "expected a time like 30m", id="time"),
        pytest.param("limit=0", "limit", "expected `int` >= 1", id="number-too-small"),
        pytest.param("limit=few", "limit", "expected `int`", id="no-number"),
        pytest.param("format=xml", "format", "Invalid enum value", id="word"),
        pytest.param("colour=red", "colour", "unknown field", id="unknown"),
        pytest.param("after=zzz", "after", "`next` of the page before", id="cursor"),
    ],
)
def test_an_error_names_the_parameter(administered: Administered, query: str, param: str, problem: str) -> None:
    answer = administered.admin("GET", f"/usage?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["type"]) == (400, param, "invalid_request_error")
    assert problem in error["message"]


def test_without_a_ledger_there_is_no_usage() -> None:
    with Upstream() as server, Administered(server) as running:
        answer = running.admin("GET", "/usage", key=None)
    assert answer.status_code == 404
    assert "its ledger is off" in answer.json()["error"]["message"]


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a body."""

    count: Annotated[int, Meta(ge=1)]


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """A body with parts."""

    name: str
    parts: tuple[Inner, ...] = ()
    note: str | None = None


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        pytest.param({}, "$.name", "required", id="missing"),
        pytest.param({"name": 3}, "$.name", "expected `str`, got `int`", id="type"),
        pytest.param({"name": "x", "note": 3}, "$.note", "expected `str`, got `int`", id="optional"),
        pytest.param({"name": "x", "parts": [{"count": 1}, {}]}, "$.parts[1].count", "required", id="nested-missing"),
        pytest.param({"name": "x", "parts": [{"count": 0}]}, "$.parts[0].count", "expected `int` >= 1", id="nested"),
        pytest.param({"name": "x", "colour": 1}, "$.colour", "unknown field; remove it", id="unknown"),
        pytest.param([], "$", "expected `object`, got `array`", id="no-object"),
    ],
)
def test_an_error_has_the_path_of_the_field(value: JSON, path: str, problem: str) -> None:
    with pytest.raises(WireError) as raised:
        decoded(value, Body)
    assert (raised.value.path, raised.value.problem) == (path, problem)


@pytest.mark.parametrize("key", [(1.5, "req_1"), ("é\n",), (0.1 + 0.2, "")])
def test_a_cursor_comes_back_as_it_was(key: tuple[float | str, ...]) -> None:
    text = encode_cursor(key)
    assert text.isascii()
    assert decode_cursor(text, *map(type, key)) == key


@pytest.mark.parametrize("text", ["", "%", "é", encode_cursor((1.0,)), encode_cursor(("a", "b", "c"))])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(WireError, match="after: expected the value `next`"):
        decode_cursor(text, float, str)


def test_a_page_knows_whether_there_are_more() -> None:
    rows = [Inner(count) for count in (1, 2, 3)]
    part = Page.of(rows, 2, lambda row: (float(row.count),))
    assert (part.data, part.has_more, part.next) == (rows[:2], True, encode_cursor((2.0,)))
    whole = Page.of(rows, 3, lambda row: (float(row.count),))
    assert (whole.data, whole.has_more, whole.next) == (rows, False, None)
    assert decoded({"limit": "7"}, PageQuery, strict=False) == PageQuery(limit=7)
