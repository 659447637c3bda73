"""findings-11: a file of the user whose values are nested without end is an error that names it, not a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config import load
from xenoglot.providers import catalog
from xenoglot.testing import cassette, script_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DEEP = "x = " + "[" * 100_000
TOO_DEEP = "its values are nested too deeply to be read"


def recording(path: Path) -> object:
    return cassette.load(path.parent.parent)


@pytest.mark.parametrize(
    ("read", "where"),
    [
        pytest.param(lambda path: load.load(path, {}), "meta.toml", id="findings-11-configuration"),
        pytest.param(lambda path: catalog.read(path.read_text(), str(path)), "meta.toml", id="findings-11-provider"),
        pytest.param(script_file.load, "", id="findings-11-script"),
        pytest.param(recording, "case", id="findings-11-recording"),
    ],
)
def test_a_deep_file_is_an_error_that_names_it(tmp_path: Path, read: Callable[[Path], object], where: str) -> None:
    path = tmp_path / "case" / "meta.toml"
    path.parent.mkdir()
    path.write_text(DEEP)
    with pytest.raises(ConfigurationError) as raised:
        read(path)
    assert TOO_DEEP in str(raised.value)
    assert where in str(raised.value)
