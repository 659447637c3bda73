"""Old import paths of public modules: the same module as at the new path, with a warning, for one release."""

import importlib
import sys

import pytest

from tests.architecture.tree import MODULES
from xenoglot.moved_modules import MOVED, RENAMED, MovedModules, install, renamed


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_path_gives_the_moved_module(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"`{old}` has moved to `{new}`"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert module.__name__ == new
    assert module.__spec__ is not None
    assert module.__spec__.name == new


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in RENAMED.items() for name in names])
def test_an_old_name_gives_what_it_is_today(module: str, name: str) -> None:
    new = RENAMED[module][name]
    home, _, current = new.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"`{module}.{name}` is now `{new}`"):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(home), current)


def test_other_names_of_such_a_module_are_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute `nonsense`"):
        renamed("xenoglot.gateway.limits", "nonsense")


def test_no_module_stands_at_an_old_path() -> None:
    assert [old for old in MOVED if old in MODULES] == []
    assert [new for new in MOVED.values() if new not in MODULES and f"{new}.__init__" not in MODULES] == []


def test_other_names_are_not_found() -> None:
    assert MovedModules().find_spec("xenoglot.nonsense") is None


def test_the_finder_is_added_once() -> None:
    install()
    assert sum(isinstance(finder, MovedModules) for finder in sys.meta_path) == 1
