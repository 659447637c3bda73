"""Batches for tests: inputs, journals over them, and what an output holds."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xenoglot.backends.batch_lines import LineMark, LineOutcome, decode_line, encode_line
from xenoglot.bulk.input_scan import InputScan, numbered, scan_input
from xenoglot.bulk.journal import DONE, Journal
from xenoglot.bulk.runner import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

OK = LineOutcome(body={"text": "fine"})
BAD = LineOutcome(status=500, body={"error": {}})


def question(number: int) -> str:
    """What the line `number` asks."""
    return f"What is {number}?"


def write_input(path: Path, count: int) -> Path:
    """Write an input of so many lines of OpenAI's."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, count + 1):
            body = {"model": "m", "messages": [{"role": "user", "content": question(number)}]}
            line = {"custom_id": f"id-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
            file.write(json.dumps(line) + "\n")
    return path


class Batch:
    """An input, and the files that answer it."""

    def __init__(self, folder: Path, count: int) -> None:
        self.output = folder / "out.jsonl"
        self.errors = folder / "errors.jsonl"
        self.source: BinaryIO = write_input(folder / "in.jsonl", count).open("rb")
        self.survey: InputScan = scan_input(self.source, decode_line)

    def journal(self, *, apart: bool = False, again: bool = False) -> Journal:
        """Return the journal as a run finds it; with `apart`, errors have a file of their own."""
        return Journal(str(self.output), str(self.errors) if apart else None, self.source, self.survey, again=again)

    def tasks(self) -> Iterator[Task]:
        """Yield all lines."""
        for number, text in numbered(self.source):
            yield Task(decode_line(text, number), LineMark(number, self.survey.digests[number]))

    def answer(self, number: int, outcome: LineOutcome = OK) -> bytes:
        """Return the answer to a line."""
        return next(encode_line(line, mark, outcome) for line, mark in self.tasks() if line.number == number)

    def fill(self, *numbers: int, outcome: LineOutcome = OK, apart: bool = False) -> None:
        """Answer some lines, as a run would."""
        with self.journal(apart=apart) as journal:
            for number in numbers:
                journal.write(number, self.answer(number, outcome), ok=outcome.ok)


def done(journal: Journal) -> list[int]:
    """The numbers of the lines that are answered."""
    return [number for number, state in enumerate(journal.states) if state == DONE]


def ids(path: Path) -> list[str]:
    """The `custom_id` of each line of an output, in their order; each has to be whole."""
    return [json.loads(line)["custom_id"] for line in path.read_bytes().splitlines()]


def numbers(path: Path) -> Counter[int]:
    """How often each line of the input is answered in an output."""
    return Counter(int(name.removeprefix("id-")) for name in ids(path))


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command beside the test, and not longer than that."""
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def until(look: Callable[[], bool]) -> None:
    """Let everybody go on until `look()` is true, and then until nobody can any more."""
    while not look():  # noqa: ASYNC110  what is looked at has no event
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
