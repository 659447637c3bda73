"""What stands at the root of the package: all of it is there, and none of it is loaded before it is named."""

import subprocess
import sys

import pytest

import xenoglot
from tests.architecture.tree import ROOT

LOADED = "import sys, xenoglot; print(*[name for name in sys.modules if name.startswith('xenoglot.')])"


@pytest.mark.parametrize("name", xenoglot.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(xenoglot, name) is not None
    assert name in dir(xenoglot)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="`nonsense`"):
        _ = xenoglot.nonsense


def test_to_import_the_package_loads_the_codecs_alone() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms <= {
        "codec",
        "dialect_registry",
        "entry_points",
        "errors",
        "model",
        "moved_modules",
        "python_gateway",
        "shortcuts",
        "translate",
    }
