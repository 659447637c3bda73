"""Pages of the console: what they show is what the administration says, and nothing in it is markup or a formula."""

from __future__ import annotations

import csv
import io
import re
import tomllib
from hashlib import sha256
from html import unescape
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.admin.administered import ADMIN, KEYS, SECRETS, Administered
from tests.gateway.console.visited import Visitor
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.gateway.console.render import HERE, milliseconds, money
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = '"><img src=x onerror=alert(1)>\u202e'
FORMULA = "=HYPERLINK(1)"
SENT = [200, 200, 400, 404, 200]
"""How the requests end that are sent first."""


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway that has answered requests of several kinds."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}) as running,
    ):
        sent = [
            running.generate("a"),
            running.generate("b", path="/v1/messages", max_tokens=9, top_k=3),
            running.generate("c", messages="none"),
            running.generate(HOSTILE),
            running.generate(FORMULA),
        ]
        assert [one.status_code for one in sent] == SENT
        yield running


def texts(page: str) -> list[str]:
    """Return the texts of a page, without its tags."""
    return [unescape(text).strip() for text in re.sub(r"<[^>]*>", "\n", page).splitlines() if text.strip()]


def test_the_overview_has_the_sums_of_the_ledger(viewer: Visitor, gateway: Administered) -> None:
    sums = gateway.admin("GET", "/usage?from=24h&by=tenant").json()["data"][0]
    words = texts(viewer.get().text)
    for label, expected in [
        ("Requests, 24 hours", sums["requests"]),
        ("Failures", sums["failures"]),
        ("Tokens in", sums["input"]),
        ("Tokens out", sums["output"]),
        ("Losses", sums["losses"]),
    ]:
        assert words[words.index(label) + 1] == str(expected)
    assert "up" in words


def test_the_overview_has_the_times_of_the_ledger(viewer: Visitor, gateway: Administered) -> None:
    """A whole answer has no first token; a stream has one, at its first byte or after it."""
    gateway.generate("streamed", stream=True)
    times = gateway.admin("GET", "/durations").json()
    rows = gateway.admin("GET", "/requests").json()["data"]
    streams = [row for row in rows if row["first_token_ms"] is not None]
    assert {row["stream"] for row in streams} == {1}
    assert {row["first_token_ms"] for row in streams} >= {times["first_token"]["p50"], times["first_token"]["p99"]}
    words = texts(viewer.get().text)
    for label, measure, rank in [
        ("First token, median", "first_token", "p50"),
        ("First token, 99 %", "first_token", "p99"),
        ("First byte, 99 %", "first_byte", "p99"),
    ]:
        assert words[words.index(label) + 1] == milliseconds(times[measure][rank])
    page = texts(viewer.get(f"/requests/{streams[0]['id']}").text)
    assert page[page.index("First token") + 1] == milliseconds(streams[0]["first_token_ms"])


def test_a_script_gets_the_figures_alone(viewer: Visitor) -> None:
    piece = viewer.get("/", {"hx-request": "true"}).text
    assert piece.lstrip().startswith("<dl")
    assert "<html" not in piece


@pytest.mark.parametrize(
    ("query", "models"),
    [
        ("?model=a", ["a"]),
        ("?failed=true", [HOSTILE.replace("\u202e", "?"), "\u2013"]),
        ("?losses=true", ["b"]),
        ("?dialect=messages", ["b"]),
        ("?to=1h", []),
    ],
)
def test_requests_are_filtered(viewer: Visitor, query: str, models: list[str]) -> None:
    rows = re.findall(r"<tr>\s*<td><a.*?</tr>", viewer.get(f"/requests{query}").text, re.DOTALL)
    assert [texts(row)[2] for row in rows] == models


def test_pages_follow_each_other(viewer: Visitor) -> None:
    seen: list[str] = []
    place: str | None = "?"
    while place is not None:
        page = viewer.get(f"/requests{place}").text
        seen += re.findall(r'href="/console/requests/(req_\w+)"', page)
        found = re.search(r'href="(\?[^"]*after=[^"]*)"', page)
        place = None if found is None else unescape(found[1])
    assert len(seen) == len(set(seen)) >= len(SENT)


@pytest.mark.parametrize("path", ["/", "/requests", "/requests?model=%3Cscript%3E%22%27"])
def test_nothing_of_a_request_is_markup(viewer: Visitor, path: str) -> None:
    page = viewer.get(path).text
    scripts = re.findall(r"<script\b[^>]*>", page)
    assert all(re.fullmatch(r'<script src="/console/static/[\w.?=]+" defer>', one) for one in scripts)
    assert not re.search(r"<img|javascript:|<script>", page)


def test_a_filter_that_is_invalid_is_named(viewer: Visitor, gateway: Administered) -> None:
    answer = viewer.get("/requests?status=many")
    assert (answer.status_code, "$.status" in answer.text) == (400, True)
    routes = {row["route"] for row in gateway.admin("GET", "/requests?failed=true").json()["data"]}
    assert not [route for route in routes if route.startswith("/console")]


def test_the_file_has_every_request_and_no_formula(viewer: Visitor) -> None:
    answer = viewer.get("/requests.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert f"'{FORMULA}" in [row["model"] for row in rows]
    assert len(rows) >= len(SENT)


def test_requests_come_as_they_end(viewer: Visitor, gateway: Administered) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in viewer.cookies.items())
    address = f"{gateway.url}/console/requests/live?model=live"
    with httpx2.stream("GET", address, headers={"cookie": cookie}, timeout=TIMEOUT) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": requests as they end"
        gateway.generate("other")
        gateway.generate("live")
        event = next(line for line in lines if line.startswith("data: "))
    assert '"model":"live"' in event


def test_a_viewer_changes_nothing(viewer: Visitor, gateway: Administered) -> None:
    admin = Visitor(gateway.url)
    assert admin.sign_in(ADMIN).status_code == 303
    admin.close()
    assert "viewer" in viewer.get().text


@pytest.mark.parametrize(
    ("micro", "expected"),
    [
        (1_500_000, "1.50 EUR"),
        (1, "0.000001 EUR"),
        (0, "0.00 EUR"),
        (-12_345_678_900, "-12,345.6789 EUR"),
        (None, "\u2013"),
    ],
)
def test_money(micro: int | None, expected: str) -> None:
    assert money(micro, "EUR") == expected


def test_files_of_other_projects_are_unchanged() -> None:
    named = tomllib.loads((HERE / "vendored.toml").read_text(encoding="utf-8"))
    assert {name: sha256((HERE / "static" / name).read_bytes()).hexdigest() for name in named} == {
        name: one["sha256"] for name, one in named.items()
    }
    assert all((HERE / "static" / one["licence_text"]).is_file() for one in named.values())
    minified = {path.name for path in (HERE / "static").iterdir() if ".min." in path.name}
    assert minified == set(named)


def test_files_are_served_with_their_types(viewer: Visitor) -> None:
    page = viewer.get().text
    for address in re.findall(r'(?:src|href)="/console(/static/[^"]+)"', page):
        answer = viewer.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].partition(";")[0] in ("text/css", "text/javascript", "image/svg+xml")
    for missing in ("/static/none.js", "/static/../render.py", "/static/%2e%2e/render.py", "/static/licences"):
        assert viewer.get(missing).status_code == 404
