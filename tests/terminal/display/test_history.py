"""What is kept of what was typed."""

import stat
from pathlib import Path

import pytest

from xenoglot.terminal.display import history
from xenoglot.terminal.display.history import History, state_directory


def test_lines_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "xenoglot" / "chat-history"
    kept = History(path, {})
    for line in ("one", "two\nlines", "  ", "é"):
        kept.add(line)
    assert History(path, {}).lines() == ["one", "two\nlines", "é"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("my key is sk-abcdefghijklmnopqrstuvwx", id="by-its-form"),
        pytest.param("use hunter2hunter2 now", id="of-the-environment"),
        pytest.param("-----BEGIN RSA PRIVATE KEY-----\nx", id="pem"),
        pytest.param("x" * 10_001, id="pasted"),
    ],
)
def test_what_must_not_be_kept(tmp_path: Path, line: str) -> None:
    kept = History(tmp_path / "h", {"MY_API_KEY": "hunter2hunter2", "KEYBOARD": "us"})
    kept.add(line)
    kept.add("a us keyboard")
    assert kept.lines() == ["a us keyboard"]


def test_a_file_that_is_broken_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "h").write_bytes(b'"one"\n\xff\n[1]\n"cut of')
    kept = History(tmp_path / "h", {})
    assert kept.lines() == ["one"]
    (tmp_path / "file").write_bytes(b"")
    History(tmp_path / "file" / "h", {}).add("nowhere to be kept")


def test_the_file_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LARGEST", 100)
    monkeypatch.setattr(history, "MOST", 10)
    kept = History(tmp_path / "h", {})
    for number in range(100):
        kept.add(f"line {number}")
    assert kept.lines()[-1] == "line 99"
    assert (tmp_path / "h").stat().st_size < 200
    assert [path.name for path in tmp_path.iterdir()] == ["h"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({"XDG_STATE_HOME": "/state"}, Path("/state/xenoglot"), id="named"),
        pytest.param({"XDG_STATE_HOME": "state"}, Path.home() / ".local/state/xenoglot", id="relative"),
        pytest.param({}, Path.home() / ".local/state/xenoglot", id="unnamed"),
    ],
)
def test_the_place(said: dict[str, str], expected: Path) -> None:
    assert state_directory(said) == expected
