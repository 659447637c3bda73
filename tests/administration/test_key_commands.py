"""`xenoglot keys`: keys are created, listed, rotated and disabled in the store of a gateway, and shown once."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

from xenoglot.cli import main
from xenoglot.gateway.auth.keys import digest_of
from xenoglot.gateway.auth.managed_keys import is_secret
from xenoglot.store.ledger import api_keys, audit
from xenoglot.store.ledger.audit import AuditFilter
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.queries import Steps

T = TypeVar("T")

UPSTREAM = '[upstreams.lab]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9"\n'


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Give the path of a configuration that accepts keys of its store."""
    return configuration(tmp_path, f'[store]\nurl = "sqlite://{tmp_path}/state.db"\n[keys]\nstore = true\n')


def configuration(folder: Path, text: str) -> str:
    path = folder / "xenoglot.toml"
    path.write_text(text + UPSTREAM)
    path.chmod(0o600)
    return str(path)


def database(config: str) -> Path:
    return Path(config).parent / "state.db"


def stored(config: str, steps: Steps[T]) -> T:
    async def ask() -> T:
        store = SQLite(database(config))
        try:
            return await store.read(steps)
        finally:
            await store.aclose()

    return asyncio.run(ask())


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert main(arguments) == 0
    captured = capsys.readouterr()
    return captured.out.rstrip("\n"), captured.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> JSONObject:
    found: JSONObject = json.loads(told(capsys, *arguments, "--json")[0])
    return found


def test_a_key_is_printed_once_and_stored_as_a_digest(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    secret, note = told(capsys, "keys", "create", "--config", config, "--tenant", "ada", "--name", "laptop")
    assert is_secret(secret)
    assert re.fullmatch(
        r"created key_[0-9a-f]{16} \(laptop\) for tenant ada; does not expire; the key is not shown again\n", note
    )
    snapshot = stored(config, api_keys.by_digests([digest_of(secret).hex()]))
    assert [one.key.name for one in snapshot.secrets] == ["laptop"]
    for command in (("list",), ("show", "laptop"), ("show", "laptop", "--json"), ("disable", "laptop", "--json")):
        text, _ = told(capsys, "keys", *command, "--config", config)
        assert secret[-4:] in text
        assert secret not in text
    assert secret.encode() not in database(config).read_bytes()


def test_every_right_of_a_key_can_be_set(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--models small-*,tiny large --role client --role viewer --expires 90d --budget 50/month"
    limits = "--limit requests=60/1m --limit requests=1000/1d --limit concurrency=4"
    before = time.time()
    made = as_json(capsys, "keys", "create", "--config", config, *arguments.split(), *limits.split())
    assert is_secret(made.pop("secret"))
    assert made.pop("name") == f"key-{made['id'][-6:]}"
    assert 0 <= made["expires"] - before - 90 * 86_400 < 60
    assert made["created_by"].startswith("cli:")
    assert len(made.pop("budgets")) == 1
    wanted: dict[str, JSON] = {
        "tenant": None,
        "roles": ["client", "viewer"],
        "models": ["small-*", "tiny", "large"],
        "limits": {"requests": ["60/1m", "1000/1d"], "concurrency": 4},
    }
    assert {name: made[name] for name in wanted} == wanted


def test_keys_are_listed_rotated_and_disabled(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = told(capsys, "keys", "create", "--config", config, "--name", "one", "--tenant", "ada")
    told(capsys, "keys", "create", "--config", config, "--name", "two")
    second, note = told(capsys, "keys", "rotate", "one", "--config", config)
    assert is_secret(second)
    assert second != first
    assert "the old key works until 20" in note
    third, note = told(capsys, "keys", "rotate", "one", "--config", config, "--keep-old", "0")
    assert "the old key no longer works" in note
    text, _ = told(capsys, "keys", "disable", "two", "--config", config)
    assert re.fullmatch(r"disabled key_[0-9a-f]{16} \(two\)", text)
    lines = [line.split() for line in told(capsys, "keys", "list", "--config", config)[0].splitlines()]
    assert lines[0] == ["id", "name", "tenant", "roles", "models", "key", "state", "expires", "last_used"]
    assert [line[1:7] for line in lines[1:]] == [
        ["two", "-", "client", "-", lines[1][5], "disabled"],
        ["one", "ada", "client", "-", f"...{third[-4:]}", "active"],
    ]
    assert len(told(capsys, "keys", "list", "--config", config, "--tenant", "ada")[0].splitlines()) == 2
    assert as_json(capsys, "keys", "enable", "two", "--config", config)["disabled"] is None
    shown = dict(
        line.split(None, 1) for line in told(capsys, "keys", "show", "one", "--config", config)[0].splitlines()
    )
    assert (shown["name"], shown["tenant"], shown["state"]) == ("one", "ada", "active")
    entries = stored(config, audit.entries(AuditFilter()))
    assert [entry.action for entry in entries] == [
        "key.enable", "key.disable", "key.rotate", "key.rotate", "key.create", "key.create",
    ]  # fmt: skip
    assert {entry.actor for entry in entries} == {cast("JSONObject", entries[-1].after)["created_by"]}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("create", "--expires", "soon"), "--expires: expected a time from now like 12h", id="expires"),
        pytest.param(("create", "--expires", "2020-01-01"), "--expires: that time is past", id="past"),
        pytest.param(("create", "--limit", "speed=1"), "--limit: found `speed=1`; expected NAME=VALUE", id="limit"),
        pytest.param(("create", "--limit", "concurrency=x"), "--limit: Expected", id="limit-value"),
        pytest.param(("create", "--limit", "tokens=x"), 'limits.tokens[0]: found "x"; expected', id="limit-window"),
        pytest.param(("create", "--budget", "50"), 'budgets: found "50"; expected an amount', id="budget"),
        pytest.param(("create", "--name", "a b"), 'name: found "a b"; expected letters', id="name"),
        pytest.param(("rotate", "one", "--keep-old", "never"), "--keep-old: the old key has to expire", id="old"),
        pytest.param(("list",), "there are no keys yet: create one", id="none"),
    ],
)
def test_a_mistake_is_one_line(
    config: str, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], complaint: str
) -> None:
    assert main(["keys", *arguments, "--config", config]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"xenoglot: {complaint}")
    assert error.count("\n") == 1


def test_unknown_keys_and_taken_names_are_reported(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "keys", "create", "--config", config, "--name", "one")
    for arguments in (("show", "two"), ("rotate", "two"), ("disable", "two")):
        assert main(["keys", *arguments, "--config", config]) == 2
        assert "no key has the name or id `two`" in capsys.readouterr().err
    assert main(["keys", "create", "--config", config, "--name", "one"]) == 2
    assert "another key is named `one`: choose another name" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["memory", "off"])
def test_a_store_that_no_other_process_can_open_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    path = configuration(tmp_path, f'[store]\nurl = "{url}"\n')
    assert main(["keys", "create", "--config", path]) == 2
    assert f'[store] url = "{url}": keys need a store that other processes can open' in capsys.readouterr().err


def test_a_key_that_gateways_would_not_accept_comes_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configuration(tmp_path, f'[store]\nurl = "sqlite://{tmp_path}/state.db"\n')
    _, note = told(capsys, "keys", "create", "--config", path)
    assert "set `store = true` under [keys]" in note
