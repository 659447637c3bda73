"""The pages Usage, Upstreams and Configuration: what the administration says, and what each role may do there."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.gateway.admin.administered import KEYS, SECRETS, Administered
from tests.gateway.console.test_pages import FORMULA, texts
from xenoglot.gateway.admin.usage import UsageReport, UsageSum
from xenoglot.gateway.console.pages.usage import chart
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.console.visited import Visitor

DAY = 86400


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway that has answered requests for two models."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}) as running,
    ):
        for model in ("a", "a", FORMULA):
            assert running.generate(model).status_code == 200
        yield running


def test_usage_has_a_row_for_each_group(viewer: Visitor) -> None:
    words = texts(viewer.get("/usage?from=24h&by=model").text)
    assert words[words.index("Losses") + 1 :][:2] == ["a", "2"]
    days = viewer.get("/usage?by=day&measure=tokens")
    assert (days.status_code, "tokens over time" in days.text) == (200, True)
    assert "$.by" in viewer.get("/usage?by=colour").text
    assert viewer.get("/usage?from=never").status_code == 400


def test_usage_as_csv_has_the_groups_and_no_formula(viewer: Visitor) -> None:
    rows = list(csv.DictReader(io.StringIO(viewer.get("/usage.csv?by=model,dialect").text)))
    assert {(row["model"], row["dialect"], row["requests"]) for row in rows if row["model"]} == {
        ("a", "chat", "2"),
        (f"'{FORMULA}", "chat", "1"),
    }
    assert "tenant" not in rows[0]


def usage(model: str, day: int, requests: int) -> UsageSum:
    names = ("failures", "input", "output", "cache_read", "cache_write", "reasoning", "audio_in", "audio_out")
    more = ("searches", "extra_input", "extra_output", "estimated", "unpriced", "losses")
    zeros = dict.fromkeys((*names, *more), 0)
    sums = {**zeros, "day": day * DAY, "requests": requests, "cost": requests * 10**6}
    return msgspec.convert({"model": model, "currency": "USD", **sums}, UsageSum)


def test_a_chart_has_every_day_and_the_largest_groups() -> None:
    rows = [usage(f"m{number}", number % 2, 10 - number) for number in range(7)]
    report = UsageReport(from_=0.0, to=3.0 * DAY, by=["day", "model"], data=rows, has_more=False, next=None)
    made = chart(report, "day", "model", "requests")
    assert made["x"] == [0, DAY, 2 * DAY]
    assert [(one["label"], one["values"]) for one in made["series"]] == [
        ("m0", [10, 0, 0]),
        ("m1", [0, 9, 0]),
        ("m2", [8, 0, 0]),
        ("m3", [0, 7, 0]),
        ("m4", [6, 0, 0]),
        ("others", [4, 5, 0]),
    ]
    assert chart(report, "day", "model", "cost")["series"][0]["label"] == "m0 (USD)"


def test_upstreams_are_listed_and_an_administrator_checks_them(admin: Visitor, viewer: Visitor) -> None:
    assert "answered 3" in viewer.get("/upstreams").text
    assert "Check up" not in viewer.get("/upstreams").text
    found = admin.post("/upstreams/up/check", {})
    assert (found.status_code, "answered in" in found.text) == (200, True)
    piece = admin.post("/upstreams/up/check", {}, {"hx-request": "true"}).text
    assert piece.startswith("<p class=")
    assert viewer.post("/upstreams/up/check", {}).status_code == 403
    assert admin.post("/upstreams/none/check", {}).status_code == 404


def test_the_configuration_is_shown_without_secrets(viewer: Visitor) -> None:
    page = viewer.get("/configuration").text
    assert "body_limit" in page
    assert not [secret for secret in SECRETS.values() if secret in page]


def test_a_text_is_checked_by_every_role(viewer: Visitor) -> None:
    wrong = viewer.post("/configuration/check", {"toml": "[server]\nport = 'x'\n"})
    assert (wrong.status_code, "server.port" in wrong.text) == (200, True)
    text = '[upstreams.up]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9/v1"\n[server]\ndrain_seconds = 7.0\n'
    found = texts(viewer.post("/configuration/check", {"toml": text}, {"hx-request": "true"}).text)
    assert found[found.index("server.drain_seconds") + 1] == "0.0"


def test_a_reload_needs_the_role_admin_and_a_file(admin: Visitor, viewer: Visitor) -> None:
    assert viewer.post("/configuration/reload", {}).status_code == 403
    assert "without a configuration file" in admin.post("/configuration/reload", {}).text
