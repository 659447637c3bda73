"""`xenoglot doctor`: one line for each thing checked, with the remedy, and an exit code."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from xenoglot.administration import doctor_command
from xenoglot.cli import main
from xenoglot.store.ledger import audit, prices
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream
from xenoglot.testing.script import Respond, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = 'env = ["CLIENTS"]\nadmin_env = ["ADMIN"]\n'
MODELS = b'{"object":"list","data":[{"id":"small","object":"model","created":1,"owned_by":"lab"}]}'


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """Give a server with one model."""
    with Upstream(ScriptRule(steps=(Respond(body=MODELS),))) as server:
        yield server


def configured(folder: Path, url: str, *, keys: str = KEYS, more: str = "") -> str:
    path = folder / "xenoglot.toml"
    lab = f'[upstreams.lab]\ndialect = "chat"\nbase_url = "{url}"\n[[models]]\nname = "small"\nupstream = "lab"\n'
    path.write_text(f'[store]\nurl = "sqlite://{folder}/state.db"\n[ledger]\n[keys]\n{keys}{lab}{more}')
    path.chmod(0o600)
    return str(path)


def report(capsys: pytest.CaptureFixture[str], config: str) -> tuple[int, dict[str, tuple[str, str, str | None]]]:
    code = main(["doctor", "--config", config, "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, {line["what"]: (line["level"], line["detail"], line["remedy"]) for line in lines}


@pytest.fixture(autouse=True)
def _environ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENTS", "client-key")
    monkeypatch.setenv("ADMIN", "admin-key")


def test_what_works(tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[[prices]]\nmodel = "*"\ninput = 1\noutput = 1\n'
    code, found = report(capsys, configured(tmp_path, upstream.url, more=more))
    assert code == 0
    assert [(what, level) for what, (level, _, _) in found.items()] == [
        ("configuration", "ok"), ("upstream lab", "ok"), ("store", "ok"), ("clock", "ok"), ("prices", "ok"),
        ("keys", "ok"),
    ]  # fmt: skip
    assert found["upstream lab"][1] == f"{upstream.url}: 1 models"


def test_what_does_not_work_has_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, configured(tmp_path, "http://127.0.0.1:9/v1", keys='env = ["CLIENTS"]\n'))
    assert code == 1
    assert found["upstream lab"][0] == "fail"
    assert "127.0.0.1:9" in found["upstream lab"][1]
    assert found["upstream lab"][2] == "see `base_url` and `key_env` under [upstreams.lab]"
    assert found["prices"][:2] == ("warn", "unknown for lab/small")
    assert found["keys"][:2] == ("warn", "no administrator has a key")
    assert all(remedy for level, _, remedy in found.values() if level != "ok")


def test_a_price_of_the_store_is_known(tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    async def fill() -> None:
        store = SQLite(tmp_path / "state.db")
        price = prices.StoredPrice(pattern="small", valid_from=0.0, input="1", output="1")
        await store.write(prices.put(price, audit.Change(id="audit_1", at=1.0, actor="key_1")))
        await store.aclose()

    asyncio.run(fill())
    _, found = report(capsys, configured(tmp_path, upstream.url))
    assert (found["prices"][0], found["store"][:2]) == ("ok", ("ok", "sqlite: it can be read"))


def test_a_store_that_is_no_store_fails(tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state.db").write_bytes(b"no database at all" * 100)
    code, found = report(capsys, configured(tmp_path, upstream.url))
    assert (code, found["store"][0], found["store"][2]) == (1, "fail", "see `url` under [store]")


def test_a_wrong_configuration_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, configured(tmp_path, "nowhere", more="[serve]\n"))
    assert (code, list(found)) == (1, ["configuration"])
    assert "base_url" in found["configuration"][1]
    assert "serve: unknown" in found["configuration"][1]


@pytest.mark.parametrize(
    ("skews", "level", "detail"),
    [
        pytest.param([], "ok", "not compared: no upstream sent the time", id="no-time"),
        pytest.param([0.5, 4000.0], "ok", "it agrees with the upstreams'", id="one-agrees"),
        pytest.param([90.0], "warn", "90 seconds behind the upstreams'", id="behind"),
        pytest.param([-90.0], "warn", "90 seconds ahead of the upstreams'", id="ahead"),
    ],
)
def test_clocks_are_compared(skews: list[float], level: str, detail: str) -> None:
    found = doctor_command._clock(skews)
    assert (found.level, found.detail) == (level, detail)


def test_a_person_gets_lines(tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--config", configured(tmp_path, upstream.url, keys='env = ["CLIENTS"]\n')])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split(maxsplit=2)[:2] == ["warn", "keys"]
    assert lines[-1].endswith("no administrator has a key; name one in `admin_env` under [keys] for the admin API")


def test_executors_of_hosted_tools_are_called(
    tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]
) -> None:
    found = b'{"results":[{"url":"https://a.example","title":"A","content":"a"}]}'
    with Upstream(ScriptRule(steps=(Respond(body=found),))) as search:
        tools = (
            f'[tools.web_search]\nexecutor = "searxng"\nurl = "{search.url}/search"\n[tools.web_fetch]\n'
            '[tools.mcp.servers.docs]\nurl = "http://127.0.0.1:9/mcp"\n'
        )
        code, lines = report(capsys, configured(tmp_path, upstream.url, more=tools))
        assert len(search.requests) == 1
    assert code == 1
    assert lines["tool web_search"] == ("ok", "1 results", None)
    assert lines["tool web_fetch"] == ("ok", "public pages over https", None)
    assert lines["mcp docs"][0] == "fail"
    assert lines["mcp docs"][2] == "see [tools.mcp.servers.docs]"


def test_an_executor_that_does_not_work_has_a_remedy(
    tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = '[tools.web_search]\nexecutor = "searxng"\nurl = "http://127.0.0.1:9/search"\n'
    code, lines = report(capsys, configured(tmp_path, upstream.url, more=tools))
    assert code == 1
    assert lines["tool web_search"][::2] == ("fail", "see [tools.web_search]")
    tools = '[tools.web_search]\nexecutor = "python"\nuse = "no_such_module:search"\n'
    _, lines = report(capsys, configured(tmp_path, upstream.url, more=tools))
    assert lines["tools"][0] == "fail"
    assert "no_such_module" in lines["tools"][1]
