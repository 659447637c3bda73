"""Where a store is, as a URL says it."""

from pathlib import Path

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.store.location import default_path, location_problem, open_store
from xenoglot.store.postgres import Postgres
from xenoglot.store.sqlite import Memory, SQLite


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        pytest.param("sqlite", SQLite, id="usual-file"),
        pytest.param("sqlite:///var/lib/state.db", SQLite, id="file"),
        pytest.param("memory", Memory, id="memory"),
        pytest.param("postgresql://user:secret@db.example/state", Postgres, id="postgresql"),
        pytest.param("postgres://db.example/state", Postgres, id="postgres"),
        pytest.param("off", type(None), id="off"),
    ],
)
def test_the_url_says_which(url: str, kind: type) -> None:
    assert type(open_store(url, {})) is kind


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        pytest.param("sqlite://relative/path", "expected sqlite:///PATH", id="relative"),
        pytest.param("sqlite:///", "expected sqlite:///PATH", id="no-path"),
        pytest.param("mysql://secret@db", "expected one of sqlite, sqlite:///PATH, postgresql://...", id="unknown"),
        pytest.param("postgresql://db:secret/x", "not a URL", id="no-port"),
    ],
)
def test_what_is_none_is_told_without_repeating_it(url: str, problem: str) -> None:
    told = location_problem(url) or ""
    assert told.startswith(problem)
    assert "secret" not in told
    with pytest.raises(ConfigurationError):
        open_store(url, {})


def test_the_usual_place() -> None:
    places = [
        default_path({"XDG_DATA_HOME": "/data", "HOME": "/home/me"}),
        default_path({"XDG_DATA_HOME": "relative", "HOME": "/home/me"}),
        default_path({"HOME": "/home/me"}),
    ]
    home = Path("/home/me/.local/share/xenoglot/state.db")
    assert places == [Path("/data/xenoglot/state.db"), home, home]
