"""A gateway that is killed: the ledger keeps what was written, whole, and loses no more than what still waited."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from xenoglot.model.response import Usage
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.queries import RequestFilter, UsageFilter
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream, answers
from xenoglot.testing.script import Hang, RequestMatcher, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from xenoglot.model.json import JSON
    from xenoglot.store.ledger.rows import RequestRow

CONFIG = """
[server]
port = 0

[upstreams.up]
dialect = "chat"
base_url = "{url}"

[store]
url = "sqlite://{path}"

[ledger]
"""


BUDGET = """
[[prices]]
model = "*"
input = "100"
output = "500"

[[budgets]]
scope = "all"
amount = 100
period = "total"
"""


@contextmanager
def serving(config: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Give a gateway and its URL."""
    command = [sys.executable, "-m", "xenoglot", "serve", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, next(found[0] for line in process.stdout if (found := re.search(r"http://[0-9.:]+", line)))
        finally:
            process.kill()


def ask(url: str, names: Sequence[str]) -> list[str]:
    """Ask once under each id of a request, eight at a time, and return the ids of those that were answered."""

    def one(name: str) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"x-request-id": name}
        answer = httpx2.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=TIMEOUT)
        assert answer.status_code == 200
        return answer.headers["x-request-id"]

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, names))


def wait_until_written(url: str, rows: int) -> None:
    """Ask for the count of written rows until it is `rows`."""
    with httpx2.Client(timeout=TIMEOUT) as client:
        for _ in count():
            if f'xenoglot_ledger_rows_total{{outcome="written"}} {rows}\n' in client.get(f"{url}/metrics").text:
                return


def read(path: Path) -> tuple[list[RequestRow], list[dict[str, JSON]]]:
    """Return the rows of the ledger, and the sums of its hours."""

    async def both() -> tuple[list[RequestRow], list[dict[str, JSON]]]:
        store = SQLite(path)
        rows = await store.read(queries.requests(RequestFilter(limit=1000)))
        sums = await store.read(queries.usage((), UsageFilter()))
        await store.aclose()
        return rows, sums

    return asyncio.run(both())


def test_a_killed_gateway_loses_only_rows_that_still_waited(tmp_path: Path) -> None:
    path, config = tmp_path / "state.db", tmp_path / "gateway.toml"
    with Upstream(*answers("chat", text="Hello.").rules()) as server:
        config.write_text(CONFIG.format(url=server.url, path=path))
        with serving(config) as (process, url):
            written = ask(url, [f"written-{number}" for number in range(40)])
            wait_until_written(url, 40)
            waiting = ask(url, [f"waiting-{number}" for number in range(20)])
            process.kill()
            process.wait()
        rows, sums = read(path)
        kept = {row.id for row in rows}
        assert set(written) <= kept <= {*written, *waiting}
        assert [one["requests"] for one in sums] == [len(rows)], "the sums are of the rows that are there"
        with serving(config) as (process, url):
            later = ask(url, [f"later-{number}" for number in range(5)])
            process.terminate()
            process.wait()
    rows, sums = read(path)
    assert {row.id for row in rows} == {*kept, *later}, "a gateway that is stopped writes what waits"
    assert [one["requests"] for one in sums] == [len(rows)]


def remaining(url: str) -> float:
    """Return what remains of the budget, as soon as the gateway knows it."""
    with httpx2.Client(timeout=TIMEOUT) as client:
        while True:
            for row in client.get(f"{url}/metrics").text.splitlines():
                if row.startswith("xenoglot_budget_remaining{"):
                    return float(row.rpartition(" ")[2])


def test_no_budget_is_larger_after_a_kill(tmp_path: Path) -> None:
    path, config = tmp_path / "state.db", tmp_path / "gateway.toml"
    usage = Usage(input_tokens=1000, output_tokens=20)
    hanging = ScriptRule(steps=(Hang(),), when=RequestMatcher(contains=b"hang"))

    def hang(url: str) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": "hang"}], "max_tokens": 1000}
        with suppress(httpx2.HTTPError):
            httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=TIMEOUT)

    rules = answers("chat", text="Hello.", usage=usage).rules()
    with Upstream(hanging, *rules) as server, ThreadPoolExecutor(1) as pool:
        config.write_text(CONFIG.format(url=server.url, path=path) + BUDGET)
        with serving(config) as (process, url):
            ask(url, [f"before-{number}" for number in range(8)])
            lost = pool.submit(hang, url)
            server.wait(lambda: len(server.requests) == 9, TIMEOUT)
            process.kill()
            process.wait()
            lost.result()
        with serving(config) as (process, url):
            assert remaining(url) == pytest.approx(100 - 8 * 0.11 - 0.5, abs=0.01)
            process.terminate()
            process.wait()
