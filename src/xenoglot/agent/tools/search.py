"""The tool `search`: finds lines in files by a pattern."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot.agent.sandbox import regex_worker
from xenoglot.agent.sandbox.file_names import shown
from xenoglot.agent.sandbox.globs import compiled, matches
from xenoglot.agent.sandbox.walk import Walk
from xenoglot.agent.sandbox.workspace import Workspace, WorkspaceError, is_binary
from xenoglot.backends.thread_iterator import ThreadRunner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

SECONDS = 20.0
"""How long a search may take."""

LARGEST = 2 * 1024 * 1024
"""Bytes of a file that are searched."""

MOST = 100
"""Default number of lines of one result."""

_COMMAND = (sys.executable, "-I", "-S", str(Path(regex_worker.__file__)))
"""A child process without the workspace's modules and without Python settings of the user."""

_LIMIT = 16 * 1024 * 1024
"""Bytes of one answer of the child: `matching.MOST` lines at their longest, each letter escaped, are less."""


class RegexWorker:
    """A running child process that searches texts one after another."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def lines(self, text: bytes) -> list[tuple[int, str]]:
        """Return the lines of a text that match, each with its number."""
        return await self.send(b"%d\n%s" % (len(text), text))

    async def send(self, data: bytes) -> list[tuple[int, str]]:
        """Return the child's answer to `data`.

        Raises:
            WorkspaceError: the pattern is none.
        """
        assert self._process.stdin is not None  # noqa: S101  it was asked for
        assert self._process.stdout is not None  # noqa: S101  the same
        with suppress(ConnectionError):  # it has answered, and gone
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        answer = json.loads(await self._process.stdout.readline() or b'{"problem": "the search ended early"}')
        if isinstance(answer, dict):
            raise WorkspaceError(f"`pattern`: {answer['problem']}; `literal` takes it as plain text")
        return [(number, line) for number, line in answer]


@asynccontextmanager
async def matcher(pattern: str, *, literal: bool, ignore_case: bool) -> AsyncIterator[RegexWorker]:
    """Start a child that matches; it is gone afterwards, in the middle of a match or not.

    Raises:
        WorkspaceError: the pattern is none.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe, limit=_LIMIT)
    made = RegexWorker(process)
    try:
        asked = {"pattern": pattern, "literal": literal, "ignore_case": ignore_case}
        await made.send(json.dumps(asked).encode() + b"\n")
        yield made
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


class SearchTool:
    """The tool over a workspace; `seconds` limits a search."""

    def __init__(self, workspace: Workspace, seconds: float = SECONDS) -> None:
        self._workspace = workspace
        self._seconds = seconds

    async def search(  # noqa: PLR0913, PLR0917  the model names its arguments
        self,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        literal: bool = False,  # noqa: FBT001, FBT002
        ignore_case: bool = False,  # noqa: FBT001, FBT002
        max_matches: int = MOST,
    ) -> str:
        """Search the lines of files. What version control ignores, and what is no text, is left out.

        Args:
            pattern: A regular expression as Python has it.
            path: The folder or the file to search.
            glob: Search only files whose names match, such as `*.py`.
            literal: Take the pattern as plain text.
            ignore_case: Take small and capital letters for the same.
            max_matches: How many lines to give.
        """
        most = max(1, min(max_matches, 10 * MOST))
        found: list[str] = []
        top = self._workspace.parts(path)
        walk = Walk(self._workspace, top, seconds=self._seconds)
        texts = self._texts(walk, top, glob)
        steps = ThreadRunner()  # a walk blocks
        try:
            async with (
                asyncio.timeout(self._seconds),
                matcher(pattern, literal=literal, ignore_case=ignore_case) as match,
            ):
                while len(found) <= most and (one := await steps.run(partial(next, texts, None))):
                    name, text = one
                    found += [f"{name}:{number}: {line}" for number, line in await match.lines(text)]
        except TimeoutError:
            found[most - 1 :] = [f"[stopped after {self._seconds:g} s: use a simpler pattern, or fewer files]"]
        else:
            if len(found) > most:
                found[most:] = [f"[more than {most} lines match: the rest is left out]"]
            elif walk.truncated:
                found.append("[the workspace is too large: not all of it was searched]")
        finally:
            walk.stop()
            await steps.end(texts.close)
        return "\n".join(found) or "[nothing matches]"

    def _texts(self, walk: Walk, top: tuple[str, ...], glob: str | None) -> Generator[tuple[str, bytes], None, None]:
        """Yield the name and the bytes of each text on a walk from `top`."""
        wanted = None if glob is None else compiled(glob)
        for parts in [top] if top and self._workspace.is_file(top) else walk:
            if wanted is None or matches(wanted, parts) or matches(wanted, parts[len(top) :]):
                name = "/".join(parts)
                with suppress(WorkspaceError), self._workspace.open(name) as file:
                    if not is_binary(text := file.read(LARGEST)):
                        yield shown(name), text
