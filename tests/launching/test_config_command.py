"""`xenoglot config`: what is set and where from, and changes that keep comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.cli import main

if TYPE_CHECKING:
    from pathlib import Path

FILE = """# mine
on_loss = "warn"  # say it

[upstreams.main]  # the one
dialect = "chat"
base_url = "http://127.0.0.1:9"
key_env = "MY_KEY"

[[models]]
name = "fast"
"""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, below an empty home."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XENOGLOT_CONFIG", "XENOGLOT_UPSTREAM", "XENOGLOT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def does(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    """How the command ended, its lines, and what it complained of."""
    code = main(["config", *arguments])
    shown = capsys.readouterr()
    return code, [" ".join(line.split()) for line in shown.out.splitlines()], shown.err


def test_show_tells_where_each_value_comes_from(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert does(capsys, "show") == (0, ["# nothing is set: the embedded model answers"], "")
    monkeypatch.setenv("XENOGLOT_UPSTREAM", "http://127.0.0.1:9?key=sk-very-secret")
    assert (
        does(capsys, "show")[1][0]
        == 'upstreams.upstream.base_url = "http://127.0.0.1:9?key=[redacted]" # $XENOGLOT_UPSTREAM'
    )
    monkeypatch.delenv("XENOGLOT_UPSTREAM")
    (work / "named.toml").write_text(FILE)
    monkeypatch.setenv("XENOGLOT_CONFIG", "named.toml")
    monkeypatch.setenv("XENOGLOT_MODEL", "large")
    code, lines, _ = does(capsys, "show")
    assert (code, lines) == (
        0,
        [
            "# model of ask, chat, agent, batch and run: large ($XENOGLOT_MODEL)",
            'upstreams.main.dialect = "chat" # named.toml',
            'upstreams.main.base_url = "http://127.0.0.1:9" # named.toml',
            'upstreams.main.key_env = "MY_KEY" # named.toml',
            'models[0].name = "fast" # named.toml',
            'on_loss = "warn" # named.toml',
        ],
    )
    assert "server.port = 8080 # default" in does(capsys, "show", "--all")[1]


def test_show_names_the_provider_of_a_value(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "named.toml").write_text('[upstreams.main]\nprovider = "groq"\nkey_env = "MY_KEY"\n')
    assert does(capsys, "show", "--config", "named.toml")[1] == [
        'upstreams.main.provider = "groq" # named.toml',
        'upstreams.main.dialect = "chat" # provider groq',
        'upstreams.main.base_url = "https://api.groq.com/openai/v1" # provider groq',
        'upstreams.main.key_env = "MY_KEY" # named.toml',
    ]


def test_set_keeps_comments_and_order(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = work / "xenoglot.toml"
    path.write_text(FILE)
    path.chmod(0o640)
    pairs = ("upstreams.main.base_url", "http://127.0.0.1:10", "models[0].name", "slow", "server.port", "9000")
    assert does(capsys, "set", *pairs) == (0, [f"wrote {path}"], "")
    assert does(capsys, "set", "on_loss=refuse", "models[1].name=other")[0] == 0
    assert path.read_text() == (
        FILE.replace(":9", ":10").replace("fast", "slow").replace('"warn"', '"refuse"')
        + '\n[[models]]\nname = "other"\n[server]\nport = 9000\n'
    )
    assert path.stat().st_mode & 0o777 == 0o640


def test_set_makes_the_file_of_the_user(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = work.parent / ".config" / "xenoglot" / "config.toml"
    assert does(capsys, "path") == (0, [str(own)], "")
    assert does(capsys, "set", "upstreams.main.provider=groq", "upstreams.main.key_env=NOT_YET") == (
        0,
        [f"wrote {own}"],
        "",
    )
    assert own.read_text() == '[upstreams.main]\nprovider = "groq"\nkey_env = "NOT_YET"\n'
    assert own.stat().st_mode & 0o777 == 0o600
    (work / "xenoglot.toml").write_text(FILE)
    assert does(capsys, "set", "--user", "server.port", "9000") == (0, [f"wrote {own}"], "")
    assert does(capsys, "path") == (0, [str(work / "xenoglot.toml")], "")


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        pytest.param(["server.prot", "1"], "server.prot: unknown; did you mean `port`?", id="key"),
        pytest.param(["server.port", "many"], 'server.port: found "many"; expected int', id="value"),
        pytest.param(["server.port"], "expected KEY VALUE pairs", id="one"),
        pytest.param(["models[7].name", "x"], "`models[7].name` cannot be set", id="gap"),
        pytest.param(["server[0].x", "x"], "server: found a list; expected a table", id="no-list"),
        pytest.param(["models.first.name", "x"], "`models.first.name` cannot be set", id="no-number"),
        pytest.param(["on_loss.x", "x"], "`on_loss.x` cannot be set", id="no-table"),
        pytest.param(["a..b", "x"], "`a..b` is not a key", id="empty"),
        pytest.param(["models[x].name", "x"], "expected a number in brackets", id="index"),
        pytest.param(["upstreams.main.key_env", "sk-a-key"], "is no name of an environment variable", id="a-key"),
    ],
)
def test_nothing_is_written_if_it_is_wrong(
    work: Path, capsys: pytest.CaptureFixture[str], pairs: list[str], problem: str
) -> None:
    path = work / "xenoglot.toml"
    path.write_text(FILE)
    code, lines, told = does(capsys, "set", *pairs)
    assert (code, lines, problem in told) == (2, [], True), told
    assert path.read_text() == FILE
    assert list(work.iterdir()) == [path]


def test_set_trusts_no_file_that_was_not(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = work / "xenoglot.toml"
    path.write_text(FILE)
    assert does(capsys, "set", "server.port", "9000")[0] == 0
    assert "is not trusted" in does(capsys, "show")[2]
    assert does(capsys, "trust")[0] == 0
    assert does(capsys, "set", "server.port", "9001")[0] == 0
    assert does(capsys, "show")[0] == 0


def test_a_file_that_is_no_toml_is_left_alone(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = work / "xenoglot.toml"
    path.write_text("[server\n")
    for command in ("set", "server.port", "1"), ("trust",):
        code, _, told = does(capsys, *command)
        assert (code, told.startswith(f"xenoglot: `{path.name}` is not TOML")) == (2, True), told
