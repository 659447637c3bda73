"""`module:object`: what is found, and what is said where nothing is."""

from __future__ import annotations

import queue
import sys
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.local_models.load_object import load
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


LAZY = """
class Lazy:
    @property
    def model(self):
        raise OSError("no weights")

lazy = Lazy()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with modules in it; what they leave behind is gone after the test."""
    (tmp_path / "own_model.py").write_text("class Holder:\n    answer = len\n\nanswer = max\n", encoding="utf-8")
    (tmp_path / "own_broken.py").write_text("raise RuntimeError('no weights')\n", encoding="utf-8")
    (tmp_path / "own_needy.py").write_text("import own_nowhere.inside\n", encoding="utf-8")
    (tmp_path / "own_script.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "own_lazy.py").write_text(LAZY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("own_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        pytest.param("own_model:answer", max, id="object"),
        pytest.param("own_model:Holder.answer", len, id="attribute"),
        pytest.param("os.path:join", __import__("os").path.join, id="submodule"),
    ],
)
def test_what_is_named_is_found(reference: str, found: object) -> None:
    assert load(reference) is found


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        pytest.param("own_model", "found `own_model`; expected `module:object`", id="no-object"),
        pytest.param("own_model:", "found `own_model:`; expected `module:object`", id="empty-object"),
        pytest.param(":answer", "found `:answer`; expected `module:object`", id="no-module"),
        pytest.param(
            "own_model.py:answer",
            "there is no module `own_model.py` in {here} or where Python looks; write `own_model`, without `.py`",
            id="a-file",
        ),
        pytest.param("./own_model:answer", "found `./own_model:answer`; expected", id="a-path"),
        pytest.param("own_model:answer()", "found `own_model:answer()`; expected `module:object`", id="a-call"),
        pytest.param("own_other:answer", "there is no module `own_other`", id="no-such-module"),
        pytest.param("own_model:reply", "`own_model` ({here}/own_model.py) has no `reply`", id="no-such-object"),
        pytest.param("queue:answer", f"`queue` ({queue.__file__}) has no `answer`", id="another-of-that-name"),
        pytest.param("own_lazy:lazy.model", "`model` of `own_lazy.lazy` cannot be had: OSError: no we", id="lazy"),
        pytest.param("own_script:a", "`own_script` failed when it was imported: SystemExit: 0", id="a-script"),
        pytest.param("own_model:Holder.reply", "`own_model.Holder` has no `reply`", id="no-such-attribute"),
        pytest.param("own_needy:a", "`own_needy` imports `own_nowhere`, which is not installed", id="needs-more"),
        pytest.param("own_broken:a", "`own_broken` failed when it was imported: RuntimeError: no weights", id="broken"),
    ],
)
def test_what_is_not_found_is_named(here: Path, reference: str, problem: str) -> None:
    problem = problem.replace("{here}", str(here))
    with pytest.raises(ConfigurationError) as error:
        load(reference)
    assert str(error.value)[: len(problem)] == problem
