"""Usage and costs in the form of OpenAI's administration API, read by the official SDK."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import openai
import pytest
from msgspec.structs import replace

from tests.gateway.admin.administered import ADMIN, CLIENT, KEYS, SECRETS, VIEWER, Administered
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.rows import RequestRow
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai.resources.admin.organization.usage import Usage

DAY, HOUR = 86_400, 3600
MONDAY = 1_795_392_000 // DAY * DAY - 7 * DAY


USUAL = RequestRow(
    id="req_0", at=0.0, model="m", tenant="ada", key="key_1", upstream="up", status=200, input=10, output=2,
    currency="USD",
)  # fmt: skip
ROWS = (
    replace(USUAL, id="req_1", at=MONDAY + 10.0, cache_read=4, cost=1_500_000),
    replace(USUAL, id="req_2", at=MONDAY + 2.0 * HOUR, model="n", extra_input=5, cost=250_000, currency="EUR"),
    replace(USUAL, id="req_3", at=MONDAY + 2.0 * DAY, tenant=None, key="key_2", cost=500_000),
    replace(USUAL, id="req_4", at=MONDAY + 2.0 * DAY, key=None, cost=1, input=1, output=1),
    RequestRow(id="req_5", at=float(MONDAY), status=401),
)


@pytest.fixture(scope="module")
def administered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administered]:
    """Give a gateway with these requests in its ledger."""
    path = tmp_path_factory.mktemp("organization") / "state.db"

    async def fill() -> None:
        store = SQLite(path)
        await store.write(queries.add(ROWS))
        await store.aclose()

    asyncio.run(fill())
    kept = {"url": f"sqlite://{path}"}
    with (
        Upstream() as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={"max_age_days": 9999}, store=kept) as running,
    ):
        yield running


@contextmanager
def sdk(administered: Administered, key: str = ADMIN) -> Iterator[Usage]:
    """Give the part of the SDK that reads usage."""
    url = f"{administered.url}/v1"
    with openai.OpenAI(base_url=url, api_key="none", admin_api_key=key, max_retries=0) as client:
        yield client.admin.organization.usage


def test_usage_by_day(administered: Administered) -> None:
    with sdk(administered, VIEWER) as usage:
        page = usage.completions(start_time=MONDAY + 5, end_time=MONDAY + 3 * DAY, group_by=["project_id", "model"])
    assert (page.object, page.has_more, page.next_page) == ("page", False, None)
    assert [(one.start_time - MONDAY, one.end_time - one.start_time) for one in page.data] == [
        (0, DAY), (DAY, DAY), (2 * DAY, DAY)
    ]  # fmt: skip
    found = [
        [
            (one.project_id, one.model, one.input_tokens, one.output_tokens, one.num_model_requests, one.api_key_id)
            for one in bucket.results
            if one.object == "organization.usage.completions.result"
        ]
        for bucket in page.data
    ]
    assert found == [
        [("ada", "m", 10, 2, 1, None), ("ada", "n", 15, 2, 1, None)],
        [],
        [(None, "m", 10, 2, 1, None), ("ada", "m", 1, 1, 1, None)],
    ]


def test_usage_by_hour_is_filtered_and_paged(administered: Administered) -> None:
    found: list[list[tuple[int, int]]] = []
    pages: list[str | None] = [""]
    with sdk(administered) as usage:
        while pages[-1] is not None:
            part = usage.completions(
                start_time=MONDAY,
                end_time=MONDAY + 3 * HOUR,
                bucket_width="1h",
                limit=1,
                models=["n"],
                api_key_ids=["key_1", "key_2"],
                page=pages[-1] or openai.omit,
            )
            found.append([(one.start_time, len(one.results)) for one in part.data])
            pages.append(part.next_page)
            assert part.has_more is (part.next_page is not None)
    assert found == [[(MONDAY, 0)], [(MONDAY + HOUR, 0)], [(MONDAY + 2 * HOUR, 1)]]


def test_costs_are_of_a_day_and_a_currency(administered: Administered) -> None:
    with sdk(administered) as usage:
        page = usage.costs(start_time=MONDAY, end_time=MONDAY + 3 * DAY, group_by=["line_item"])
    found = [
        [
            (one.line_item, one.amount.value, one.amount.currency)
            for one in bucket.results
            if one.object == "organization.costs.result" and one.amount is not None
        ]
        for bucket in page.data
    ]
    assert found == [[("m", 1.5, "usd"), ("n", 0.25, "eur")], [], [("m", 0.500001, "usd")]]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        pytest.param("", "start_time", id="no-start"),
        pytest.param("start_time=9&end_time=9", "end_time", id="no-time-between"),
        pytest.param("start_time=0&bucket_width=1m", "bucket_width", id="minutes"),
        pytest.param("start_time=0&group_by=user_id", "group_by[0]", id="group-that-is-not-recorded"),
        pytest.param("start_time=0&limit=32", "limit", id="too-many-days"),
        pytest.param("start_time=0&page=page_x", "page", id="no-page"),
        pytest.param("start_time=0&colour=red", "colour", id="unknown"),
    ],
)
def test_what_cannot_be_reported_is_an_error(administered: Administered, query: str, param: str) -> None:
    url, headers = f"{administered.url}/v1/organization/usage/completions?{query}", {"x-api-key": ADMIN}
    answer = httpx2.get(url, headers=headers, timeout=TIMEOUT)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_a_clients_key_opens_none_of_it(administered: Administered) -> None:
    with sdk(administered, CLIENT) as usage, pytest.raises(openai.PermissionDeniedError):
        usage.costs(start_time=MONDAY)
