"""Executes a Dockerfile without a container engine: each stage in a folder, absolute paths mapped into that folder.

Instructions are limited to what needs no shell: `RUN`, `CMD`, `ENTRYPOINT` and `HEALTHCHECK` in JSON form. What stays
unproven: the base image itself (this machine's Python stands for it), other processors, and the user of the process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
MAPPED = {"/opt", "/src", "/wheels", "/data", "/models", "/var", "/usr/share/xenoglot", "/etc"}
"""Folders of the image; other absolute paths in an argument are this machine's."""


class Instruction(NamedTuple):
    """One instruction: its keyword, flags such as `--from`, and the rest of the line."""

    keyword: str
    flags: Mapping[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """The arguments: a JSON list, or words separated by spaces."""
        parsed: list[str] = json.loads(self.rest) if self.rest.startswith("[") else self.rest.split()
        return parsed


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile, continued lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        keyword, rest = line.split(maxsplit=1)
        flags: dict[str, str] = {}
        while found := re.match(r"--([\w-]+)=(\S+)\s+", rest):
            flags[found[1]] = found[2]
            rest = rest[found.end() :]
        yield Instruction(keyword, flags, rest.strip())


class Image:
    """The result of `build`: the folder that holds the image's files, and the settings of its last stage."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.working_folder = "/"

    def path(self, inside: str) -> Path:
        """Return where a path of the image is on this machine."""
        return self.root / (inside if inside.startswith("/") else f"{self.working_folder}/{inside}").lstrip("/")

    def mapped(self, argument: str) -> str:
        """Return a command's argument with the path that it names or ends in on this machine."""
        name, equals, value = argument.rpartition("=")
        folder = next((folder for folder in MAPPED if value == folder or value.startswith(f"{folder}/")), None)
        return argument if folder is None else f"{name}{equals}{self.path(value)}"

    def command(self, words: list[str]) -> tuple[list[str], dict[str, str]]:
        """Return a command of the image as one of this machine, and its environment."""
        environment = {name: ":".join(map(self.mapped, text.split(":"))) for name, text in self.environment.items()}
        environment = {"PATH": os.environ["PATH"]} | _network() | environment
        program = sys.executable if words[0] == "python" else self.mapped(words[0])
        found = shutil.which(program, path=environment["PATH"])
        assert found, f"{program} is not in {environment['PATH']}"
        return [found, *map(self.mapped, words[1:])], environment


class Build:
    """Executes the instructions of a text, with `context` as the build context, in the empty `folder`.

    `arguments` override the defaults of `ARG`. A stage is built once, and only if another one needs it.
    """

    def __init__(self, text: str, context: Path, folder: Path, arguments: Mapping[str, str]) -> None:
        steps = list(instructions(text))
        self._given = arguments
        self._arguments: dict[str, str] = {}
        for step in steps:
            if step.keyword == "FROM":
                break
            name, _, default = step.rest.partition("=")
            self._arguments[name] = arguments.get(name, default)
        self._stages = _stages(steps, self._arguments)
        self._context, self._folder = context, folder
        self._files = ContextFiles(context)
        self._built: dict[str, Image] = {}

    def image(self) -> Image:
        """Build what is missing; return the image of the last stage."""
        last = next(reversed(self._stages))
        self.stage(last)
        image = self._built[last]
        (self._folder / last).rename(self._folder / "image")
        return image

    def stage(self, name: str) -> None:
        """Build a stage in `image`, where the paths written into its files stay valid, and put it aside."""
        if name in self._built:
            return
        base, steps = self._stages[name]
        for needed in [base, *(step.flags.get("from", base) for step in steps)]:
            if needed in self._stages:
                self.stage(needed)
        image = Image(self._folder / "image")
        if base in self._built:
            _copy_tree(self._folder / base, image.root)
            image.environment.update(self._built[base].environment)
        for step in steps:
            getattr(self, f"_{step.keyword.lower()}")(image, step)
        image.root.rename(self._folder / name)
        self._built[name] = image

    def _workdir(self, image: Image, step: Instruction) -> None:
        image.working_folder = step.rest
        image.path(step.rest).mkdir(parents=True, exist_ok=True)

    def _env(self, image: Image, step: Instruction) -> None:
        for name, value in re.findall(r"(\w+)=(\S+)", step.rest):
            image.environment[name] = _filled(value, {"PATH": os.environ["PATH"]} | image.environment)

    def _copy(self, image: Image, step: Instruction) -> None:
        *sources, target = step.words
        for source in sources:
            place = image.path(target)
            if stage := step.flags.get("from"):
                found = self._folder / stage / source.lstrip("/")
                place.mkdir(parents=True, exist_ok=True)
                _copy_tree(f"{found}/.", place)
                _own(place, step.flags.get("chown"))
                continue
            copied = self._files.below(source)
            assert copied, f"COPY {source}: not in the build context (.dockerignore)"
            for path in copied:
                inner = path.relative_to(self._context / source)
                to = place / (inner if inner.parts else path.name)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, to)

    def _run(self, image: Image, step: Instruction) -> None:
        words = [word for word in step.words if word != "--no-cache-dir"]
        if words[0] == "install" and os.getuid() != 0:  # only root gives files away
            words = [word for word in words if word not in ("--owner", "--group", "10001")]
        image.root.mkdir(parents=True, exist_ok=True)
        command, environment = image.command(words)
        folder = image.path(image.working_folder)
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"RUN {step.rest}\n{done.stdout}{done.stderr}"

    def _arg(self, image: Image, step: Instruction) -> None:
        name, _, default = step.rest.partition("=")
        image.environment[name] = self._given.get(name, default)

    def _setting(self, image: Image, step: Instruction) -> None:
        image.settings[step.keyword] = step.rest

    _label = _user = _volume = _expose = _healthcheck = _entrypoint = _cmd = _setting


class ContextFiles:
    """The files that `.dockerignore` lets into a build."""

    def __init__(self, context: Path) -> None:
        self._context = context
        lines = (context / ".dockerignore").read_text(encoding="utf-8").splitlines()
        self._rules = [line for line in lines if line and not line.startswith("#")]

    def below(self, source: str) -> list[Path]:
        """Return the files at or below a path of the context, sorted."""
        place = self._context / source
        paths = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
        return [path for path in paths if self._let_in(path.relative_to(self._context).as_posix())]

    def _let_in(self, path: str) -> bool:
        """Whether the last rule that names the path, or a folder above it, lets it in."""
        allowed = True
        parents = ["/".join(path.split("/")[: n + 1]) for n in range(path.count("/") + 1)]
        for rule in self._rules:
            pattern = rule.removeprefix("!")
            names = [name.rpartition("/")[2] for name in parents] if pattern.startswith("**/") else parents
            if any(fnmatch(name, pattern.removeprefix("**/")) for name in names):
                allowed = rule.startswith("!")
        return allowed


def _stages(steps: list[Instruction], arguments: Mapping[str, str]) -> dict[str, tuple[str, list[Instruction]]]:
    """Return the stages by name: the name of the base, and the instructions."""
    stages: dict[str, tuple[str, list[Instruction]]] = {}
    for step in steps:
        if step.keyword == "FROM":
            base, _, name = _filled(step.rest, arguments).partition(" AS ")
            stages[name] = (base, [])
        elif stages:
            next(reversed(stages.values()))[1].append(step)
    return stages


def _copy_tree(source: Path | str, target: Path) -> None:
    """Copy a folder with its owners; the files are linked, since hundreds of megabytes take long."""
    subprocess.run(["cp", "--archive", "--link", source, target], check=True)


def _own(place: Path, owner: str | None) -> None:
    """Give a folder to `owner`, `USER:GROUP` in numbers, if this process may."""
    if owner is not None and os.getuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, *map(int, owner.split(":")), follow_symlinks=False)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the values of its variables."""
    return VARIABLE.sub(lambda found: values[found[1] or found[2]], text)


def _network() -> dict[str, str]:
    """Return what tells `pip` how to work on this machine: none of it is part of the image.

    Nothing is compiled to bytecode, and pip's cache of downloads is used: both save minutes, and change nothing.
    """
    names = ("HOME", "PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "TMPDIR")
    return {"PIP_NO_COMPILE": "no"} | {
        name: os.environ[name] for name in names if name in os.environ
    }  # pip reads it so
