"""Folders of the user's: by the specification, and for processes whose user has no home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xenoglot.user_directories import user_directory


@pytest.mark.parametrize(
    ("environ", "variable", "expected"),
    [
        pytest.param({"HOME": "/h", "XDG_STATE_HOME": "/s"}, "XDG_STATE_HOME", "/s/xenoglot", id="named"),
        pytest.param(
            {"HOME": "/h", "XDG_STATE_HOME": "s"}, "XDG_STATE_HOME", "/h/.local/state/xenoglot", id="relative"
        ),
        pytest.param({"HOME": "/h", "XDG_CACHE_HOME": ""}, "XDG_CACHE_HOME", "/h/.cache/xenoglot", id="empty"),
        pytest.param({"HOME": "/h"}, "XDG_DATA_HOME", "/h/.local/share/xenoglot", id="data"),
        pytest.param({"HOME": "/h"}, "XDG_CONFIG_HOME", "/h/.config/xenoglot", id="configuration"),
    ],
)
def test_the_folder(environ: dict[str, str], variable: str, expected: str) -> None:
    assert user_directory(environ, variable) == Path(expected)


def test_a_user_without_a_home_gets_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container: `runAsUser: 12345`, and no HOME. Every command ended with a traceback."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a number that no user has
    assert user_directory({}, "XDG_CONFIG_HOME") == Path("/.config/xenoglot")
