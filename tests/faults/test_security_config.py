"""The configuration file: who may touch it, what of it is shown, and what cannot stand in it (S21, R31)."""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.faults.canaries import Canaries
from xenoglot.cli import main
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import load

if TYPE_CHECKING:
    from pathlib import Path

CANARIES = Canaries("config")
ENVIRON = {"MAIN_KEY": CANARIES.upstream_key, "CLIENTS": f"another {CANARIES.client_key}", "LAB": CANARIES.tool_output}
PLAIN = """
[upstreams.main]
dialect = "chat"
base_url = "https://models.example/v1"
key_env = "MAIN_KEY"
"""
SECRET = PLAIN + f'headers = {{ x-team = "blue", x-access-token = "{CANARIES.prompt}" }}\n'
QUERY = PLAIN.replace("/v1", f"/v1?api-version=7&subscription-key={CANARIES.prompt}")
KEYS = '\n[keys]\nenv = ["CLIENTS"]\n[tenants.lab]\nkey_env = "LAB"\nmodels = ["small"]\n'


def written(folder: Path, text: str, mode: int) -> Path:
    """A file of that mode."""
    path = folder / "xenoglot.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("text", "mode", "line"),
    [
        pytest.param(PLAIN, 0o644, None, id="S21-nothing-secret-in-it"),
        pytest.param(PLAIN, 0o666, "everybody may write it, and so have keys sent anywhere", id="S21-writable"),
        pytest.param(PLAIN, 0o602, "everybody may write it, and so have keys sent anywhere", id="S21-writable-alone"),
        pytest.param(SECRET, 0o600, None, id="S21-secret-and-ours-alone"),
        pytest.param(SECRET, 0o640, None, id="S21-secret-and-our-groups"),
        pytest.param(SECRET, 0o644, "upstreams.main.headers.x-access-token: may be a secret", id="S21-secret-header"),
        pytest.param(QUERY, 0o644, "upstreams.main.base_url: may be a secret", id="S21-secret-in-a-query"),
        pytest.param(QUERY, 0o600, None, id="S21-query-and-ours-alone"),
    ],
)
def test_who_may_touch_the_file(tmp_path: Path, text: str, mode: int, line: str | None) -> None:
    path = written(tmp_path, text, mode)
    if line is None:
        assert load(path, ENVIRON).upstreams
    else:
        with pytest.raises(ConfigurationError, match=re.escape(line)) as caught:
            load(path, ENVIRON)
        CANARIES.check([str(caught.value)])


@pytest.mark.parametrize("link", [False, True], ids=["the-file", "what-it-links-to"])
@pytest.mark.parametrize("depth", [0, 1], ids=["its-folder", "one-above"])
@pytest.mark.parametrize(("mode", "open_"), [(0o777, True), (0o703, True), (0o1777, False), (0o775, False)])
def test_s21_who_may_replace_the_file(tmp_path: Path, *, mode: int, open_: bool, depth: int, link: bool) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    path = written(inner, PLAIN, 0o644)
    path.parents[depth].chmod(mode)
    if link:
        (tmp_path / "linked.toml").symlink_to(path)
        path = tmp_path / "linked.toml"
    if not open_:
        assert load(path, ENVIRON).upstreams
        return
    with pytest.raises(ConfigurationError, match="everybody may write this folder, and so replace") as caught:
        load(path, ENVIRON)
    assert str((tmp_path / "outer" / "inner" / "x").parents[depth]) in str(caught.value)


def test_s21_nobody_may_replace_a_file_that_is_mounted_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes mounts a ConfigMap as a folder of mode 777 that holds a link to the file, read-only."""
    real = os.statvfs

    def mounted(folder: Path) -> SimpleNamespace:
        flag = os.ST_RDONLY if folder.is_relative_to(tmp_path / "mounted") else real(folder).f_flag
        return SimpleNamespace(f_flag=flag)

    (tmp_path / "mounted" / "..data").mkdir(parents=True)
    written(tmp_path / "mounted" / "..data", PLAIN, 0o644)
    (tmp_path / "mounted").chmod(0o777)
    (tmp_path / "mounted" / "xenoglot.toml").symlink_to("..data/xenoglot.toml")
    monkeypatch.setattr("os.statvfs", mounted)
    assert load(tmp_path / "mounted" / "xenoglot.toml", ENVIRON).upstreams


@pytest.mark.parametrize(
    "text", [PLAIN + KEYS, SECRET + KEYS, QUERY + KEYS], ids=["S21-plain", "S21-header", "S21-query"]
)
def test_s21_what_is_configured_is_shown_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["serve", "--config", str(written(tmp_path, text, 0o600)), "--print-config"])
    shown = json.loads(out.getvalue())
    CANARIES.check([out.getvalue(), err.getvalue()])
    assert (code, err.getvalue()) == (0, "")
    assert (shown["keys"]["env"], shown["tenants"]["lab"]["key_env"]) == (["CLIENTS"], "LAB")
    assert shown["upstreams"]["main"]["key_env"] == "MAIN_KEY"
    assert shown["server"]["host"] == "127.0.0.1"


def test_s21_what_may_be_secret_is_masked_by_its_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    text = SECRET.replace("/v1", "/v1?api-version=7")
    with redirect_stdout(out):
        main(["serve", "--config", str(written(tmp_path, text, 0o600)), "--print-config"])
    upstream = json.loads(out.getvalue())["upstreams"]["main"]
    assert upstream["headers"] == {"x-team": "blue", "x-access-token": "[redacted]"}
    assert upstream["base_url"] == "https://models.example/v1?api-version=[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("https://", f"https://user:{CANARIES.prompt}@"),
        PLAIN + f'headers = {{ authorization = "Bearer {CANARIES.prompt}" }}\n',
        PLAIN + f'headers = {{ x-api-key = "{CANARIES.prompt}" }}\n',
        PLAIN + f'\n[store]\nurl = "postgresql://user:{CANARIES.prompt}@db.example/x"\n',
        PLAIN + f'\n[keys]\nenv = ["{CANARIES.prompt}"]\n',
    ],
    ids=["S21-password", "S21-authorization", "S21-x-api-key", "S21-store", "S21-key-for-a-name"],
)
def test_a_key_has_no_place_in_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(written(tmp_path, text, 0o600), ENVIRON)
    CANARIES.check([str(caught.value)])
