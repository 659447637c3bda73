"""`xenoglot usage` and `xenoglot requests`: what the ledger of a gateway has, told to people and to programs."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.cli import main
from xenoglot.gateway.auth import managed_keys
from xenoglot.gateway.auth.file_keys import key_names
from xenoglot.gateway.config.load import check
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.queries import RequestFilter
from xenoglot.store.ledger.rows import RequestRow
from xenoglot.store.ledger.tail import RequestTail
from xenoglot.store.ledger.usage_sums import SUMS
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = time.time()
ROWS = (
    RequestRow(
        id="req_1", at=NOW - 60, tenant="ada", model="large", upstream="lab", status=200, input=1000, output=20,
        cost=1_234_567, currency="USD", price_source="own", total_ms=12.5,
    ),
    RequestRow(id="req_2", at=NOW - 30, tenant="ben", model="small", upstream="lab", status=200, input=5, output=1),
    RequestRow(id="req_3", at=NOW - 10, tenant="ben", model="small", status=502, failure="upstream"),
    RequestRow(id="req_0", at=NOW - 30 * 86_400, tenant="ada", model="large", status=200, input=7, output=1),
)  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Give the path of a configuration whose store has these rows."""

    async def fill() -> None:
        store = SQLite(tmp_path / "state.db")
        await store.write(queries.add(ROWS))
        await store.aclose()

    asyncio.run(fill())
    return configuration(tmp_path)


def configuration(folder: Path) -> str:
    path = folder / "xenoglot.toml"
    upstream = '[upstreams.lab]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9"\n'
    path.write_text(f'[store]\nurl = "sqlite://{folder}/state.db"\n[ledger]\n{upstream}')
    path.chmod(0o600)
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_usage_is_a_table_by_tenant_and_model(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "usage", "--config", config).splitlines()
    assert lines[0].split()[:6] == ["tenant", "model", "requests", "failures", "input", "output"]
    assert [line.split() for line in lines[1:]] == [
        ["ada", "large", "1", "0", "1000", "20", "0", "1.234567", "0", "0", "USD"],
        ["ben", "small", "2", "1", "5", "1", "0", "-", "1", "0", "-"],
    ]


def test_csv_and_json_have_every_sum(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "usage", "--config", config, "--by", "tenant", "--since", "60d", "--csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["tenant", "currency", *SUMS]
    found = json.loads("[" + ",".join(told(capsys, "usage", "--config", config, "--by", "day", "--json").split()) + "]")
    assert sum(row["cost"] for row in found) == sum(int(row["cost"]) for row in rows) == 1_234_567
    assert all(len(row["day"]) == len("2026-11-23") for row in found)


def test_requests_are_listed_and_shown(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [line.split()[0] for line in told(capsys, "requests", "list", "--config", config).splitlines()] == [
        "id", "req_3", "req_2", "req_1",
    ]  # fmt: skip
    failed = told(capsys, "requests", "list", "--config", config, "--failed", "--json")
    assert [json.loads(line)["id"] for line in failed.splitlines()] == ["req_3"]
    shown = dict(
        line.split(None, 1) for line in told(capsys, "requests", "show", "--config", config, "req_1").splitlines()
    )
    assert (shown["id"], shown["cost"], shown["tenant"], shown["input"]) == ("req_1", "1.234567 USD", "ada", "1000")


def test_keys_have_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(configuration(tmp_path))
    path.write_text(path.read_text() + f'[keys.named.ci]\nkey_sha256 = "{"0" * 64}"\n')
    (file_key,) = key_names(check({"keys": {"named": {"ci": {"key_sha256": "0" * 64}}}}, {}, "here"))

    async def fill() -> None:
        store = SQLite(tmp_path / "state.db")
        change = managed_keys.new_change(NOW, "test")
        _, steps = managed_keys.create(managed_keys.KeyRequest(name="laptop"), change)
        key = await store.write(steps)
        rows = [replace(ROWS[0], id=f"req_{number}", key=one) for number, one in enumerate((file_key, key.id, "key_9"))]
        await store.write(queries.add(rows))
        await store.aclose()

    asyncio.run(fill())
    lines = told(capsys, "usage", "--config", str(path), "--by", "key").splitlines()
    assert sorted(line.split()[0] for line in lines[1:]) == ["ci", "key_9", "laptop"]
    rows = list(csv.DictReader(io.StringIO(told(capsys, "usage", "--config", str(path), "--by", "key,day", "--csv"))))
    assert list(rows[0])[:4] == ["key", "key_name", "day", "currency"]
    assert {row["key"]: row["key_name"] for row in rows}[file_key] == "ci"
    shown = told(capsys, "requests", "show", "--config", str(path), "req_1")
    assert dict(line.split(None, 1) for line in shown.splitlines())["key_name"] == "laptop"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("usage", "--by", "colour"), "--by: `colour`: expected one of tenant", id="group"),
        pytest.param(("usage", "--since", "yesterday"), "--since: expected a time like 30m", id="since"),
        pytest.param(("requests", "show", "req_9"), "the ledger has no request `req_9`", id="request"),
    ],
)
def test_a_mistake_is_one_line(
    config: str, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], complaint: str
) -> None:
    assert main([*arguments, "--config", config]) == 2
    assert capsys.readouterr().err.startswith(f"xenoglot: {complaint}")


def test_the_configuration_is_found(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `--config` each of these ended with a traceback."""
    monkeypatch.setenv("XENOGLOT_CONFIG", config)
    assert told(capsys, "usage", "--by", "tenant").splitlines()[1].split()[:2] == ["ada", "1"]
    assert len(told(capsys, "requests", "list").splitlines()) == 4
    assert told(capsys, "requests", "show", "req_1").startswith("id ")


@pytest.mark.parametrize("arguments", [("usage",), ("requests", "list"), ("requests", "show", "req_1")])
def test_without_a_configuration_there_is_no_ledger(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # other tests may have stored something
    assert main(arguments) == 2
    assert capsys.readouterr().err == (
        "xenoglot: there is no ledger (no configuration file is found): it needs the table [ledger]\n"
    )


def test_a_gateway_that_has_stored_nothing_has_no_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = configuration(tmp_path)
    assert main(["usage", "--config", path]) == 2
    assert capsys.readouterr().err == f"xenoglot: there is no ledger ({path}): the gateway has stored nothing yet\n"
    assert not (tmp_path / "state.db").exists()


def test_requests_are_printed_as_they_end(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    followed = ("requests", "tail", "--config", config, "--since", "1h", "--limit")
    lines = told(capsys, *followed, "3").splitlines()
    assert [line.split("  ")[1:] for line in lines] == [
        ["req_1", "ada", "large -> lab", "200", "0.0 s", "1000 in", "20 out", "1.234567 USD"],
        ["req_2", "ben", "small -> lab", "200", "0.0 s", "5 in", "1 out"],
        ["req_3", "ben", "small", "502", "0.0 s", "upstream"],
    ]
    rows = [json.loads(line) for line in told(capsys, *followed, "1", "--json", "--failed").splitlines()]
    assert [(row["id"], row["failure"]) for row in rows] == [("req_3", "upstream")]


def row_at(number: int, ended: float) -> RequestRow:
    return RequestRow(id=f"req_{number}", at=ended)


def test_a_tail_has_each_request_once_and_those_that_were_written_late() -> None:
    tail = RequestTail(RequestFilter(), (100.0, ""))
    first = [row_at(2, 101.0), row_at(3, 102.0)]
    assert tail.new(first, 102.5) == first
    late = row_at(1, 100.5)
    assert tail.new([late, *first], 103.0) == [late]
    assert tail.new([late, *first, row_at(4, 103.5)], 104.0) == [row_at(4, 103.5)]
    assert tail.new([row_at(4, 103.5)], 200.0) == []


def test_a_tail_reads_on_at_once_after_a_full_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_REQUESTS", 2)
    tail = RequestTail(RequestFilter(), (0.0, ""))
    page = [row_at(1, 1.0), row_at(2, 2.0)]
    assert (tail.new(page, 50.0), tail.full) == (page, True)
    assert next(tail.steps()).values[:2] == [2.0, "req_2"]
    assert (tail.new([row_at(3, 3.0)], 50.0), tail.full) == ([row_at(3, 3.0)], False)
