"""The output of a batch, which is also its journal: a line in it is answered and is not requested again.

Theory of operation. An answer is one line, appended with one write as soon as it is received, so a killed process loses
none; once a second the file is also synced to disk, for a crash of the machine. A line starts with a mark: the number
and a digest of the input line. A resumed run reads the marks, and rejects an output of another input. A
last line that was truncated in the middle of its write is removed. A run holds a lock on the files, which ends with its
process.
"""

from __future__ import annotations

import os
import stat
import sys
from array import array
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from xenoglot.backends.batch_lines import PREFIX, LineMark, encode_invalid, read_answer
from xenoglot.bulk.input_scan import LONGEST_LINE
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO, Self

    from xenoglot.backends.batch_lines import OutputLine
    from xenoglot.bulk.input_scan import InputScan

DONE: Final = 2
"""Value in `Journal.states` of an answered line; 1 is a line to request, 0 an empty one."""

_COPIED = 1024 * 1024
"""Bytes that are copied at once."""


class Journal:
    """The output files: one for all, or `errors` for failed lines.

    With `again`, failed lines are requested again, and their errors are removed from the files.

    Raises:
        ConfigurationError: a file cannot be used: not a file, locked by another run, or of another input.
    """

    def __init__(
        self, output: str, errors: str | None, source: BinaryIO, survey: InputScan, *, again: bool = False
    ) -> None:
        self.states = bytearray(survey.requests)
        self.failed = 0
        """Number of lines that are answered with an error."""
        self._dirty = False
        self._survey = survey
        with ExitStack() as exits:
            self._output = exits.enter_context(_AnswerFile(output, source))
            self._errors = self._output
            if errors is not None:
                if Path(errors).resolve() == Path(output).resolve():
                    self._output.refuse("is to be the file of errors too; without one, errors stand there anyway")
                self._errors = exits.enter_context(_AnswerFile(errors, source))
            for file in self._files:
                self._read(file)
            if again and self.failed:
                for file in self._files:
                    self._forget_errors(file)
            self._exits = exits.pop_all()

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Sync to disk, and close the files."""
        try:
            self.sync()
        finally:
            self._exits.close()

    @property
    def done(self) -> int:
        """How many lines are answered."""
        return self.states.count(DONE)

    def write(self, number: int, data: bytes, *, ok: bool) -> None:
        """Append the answer to the line `number`; when this returns, it survives the end of the process.

        Raises:
            OSError: not written; a partly written line is removed.
        """
        (self._output if ok else self._errors).append(data)
        self.states[number] = DONE
        self.failed += not ok
        self._dirty = True

    def write_invalid(self) -> None:
        """Append an error for each invalid line that has none yet.

        Raises:
            OSError: not written.
        """
        for number, line in self._survey.invalid.items():
            if self.states[number] != DONE:
                mark = LineMark(number, self._survey.digests[number])
                self.write(number, encode_invalid(line.custom_id, mark, line.code, line.problem), ok=False)

    def sync(self) -> None:
        """Sync what was written to disk; thread-safe."""
        if self._dirty:
            self._dirty = False
            for file in self._files:
                file.sync()

    def put_in_order(self) -> None:
        """Sort the answers of each file in the order of their lines, atomically.

        Raises:
            ConfigurationError: not possible; the file is unchanged.
        """
        for file in self._files:
            starts, sizes = (array("Q", bytes(8 * len(self.states))) for _ in range(2))
            at = last = 0
            in_order = True
            for place, data in enumerate(file.lines(), 1):
                answered = read_answer(data)
                if answered is None:
                    file.refuse(f"line {place} is no answer of a batch: somebody else has written there")
                number = answered.mark.number
                starts[number], sizes[number] = at, len(data)
                at += len(data)
                in_order, last = in_order and number > last, number
            if not in_order:
                file.keep((start, size) for start, size in zip(starts, sizes, strict=True) if size)

    @property
    def _files(self) -> tuple[_AnswerFile, ...]:
        return (self._output,) if self._errors is self._output else (self._output, self._errors)

    def _read(self, file: _AnswerFile) -> None:
        """Read which lines are answered in a file, and remove a truncated last line."""
        for place, data in enumerate(file.lines(), 1):
            answered = read_answer(data)
            if answered is None:
                if data.endswith(b"\n") or len(data) == LONGEST_LINE or not _is_beginning(data):
                    file.refuse(f"line {place} is no answer of a batch; choose another output")
                file.truncate(len(data))
                return
            self._record(file, place, answered)
            if not data.endswith(b"\n"):
                file.append(b"\n")

    def _record(self, file: _AnswerFile, place: int, answered: OutputLine) -> None:
        mark, states = answered.mark, self.states
        if mark.number >= len(states) or states[mark.number] == 0 or self._survey.digests[mark.number] != mark.digest:
            file.refuse(f"line {place} answers another input; choose another output, or the input as it was")
        if states[mark.number] == DONE:
            file.refuse(f"line {place} answers line {mark.number} of the input, which is answered elsewhere too")
        states[mark.number] = DONE
        self.failed += not answered.ok

    def _forget_errors(self, file: _AnswerFile) -> None:
        kept: list[tuple[int, int]] = []
        at = 0
        for data in file.lines():
            answered = read_answer(data)
            if answered is not None and not answered.ok:
                self.states[answered.mark.number] = 1
                self.failed -= 1
            elif kept and sum(kept[-1]) == at:
                kept[-1] = (kept[-1][0], kept[-1][1] + len(data))
            else:
                kept.append((at, len(data)))
            at += len(data)
        file.keep(kept)


class _AnswerFile:
    """A file of answers, open and locked."""

    def __init__(self, path: str, source: BinaryIO) -> None:
        self._path = path
        self._fd = _locked(path)
        try:
            if os.path.samestat(os.fstat(self._fd), os.fstat(source.fileno())):
                self.refuse("is the input; choose another output")
        except BaseException:
            os.close(self._fd)
            raise
        self._end = os.fstat(self._fd).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines from the start; a line longer than any of ours is split."""
        with open(self._fd, "rb", closefd=False) as file:
            file.seek(0)
            while data := file.readline(LONGEST_LINE):
                yield data

    def append(self, data: bytes) -> None:
        """Write `data` at the end.

        Raises:
            OSError: it did not fit; then nothing of it is stored.
        """
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            os.ftruncate(self._fd, self._end)
            raise
        self._end += len(data)

    def truncate(self, size: int) -> None:
        """Remove the last `size` bytes."""
        self._end -= size
        os.ftruncate(self._fd, self._end)

    def keep(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Keep only these bytes (start, length), atomically: a new file replaces this one.

        Raises:
            ConfigurationError: not writable; this file is unchanged.
        """
        place = Path(self._path).resolve()  # a link goes on leading there
        beside = place.with_name(f"{place.name}.new")
        new = _locked(str(beside))
        try:
            self._copy(ranges, new)
            beside.chmod(stat.S_IMODE(os.fstat(self._fd).st_mode))
            beside.replace(place)
        except BaseException as error:
            os.close(new)
            if not isinstance(error, OSError):
                raise
            beside.unlink(missing_ok=True)
            self.refuse(f"cannot be written anew: {os.strerror(error.errno or 0)}")
        os.close(self._fd)
        self._fd, self._end = new, os.fstat(new).st_size

    def _copy(self, ranges: Iterable[tuple[int, int]], new: int) -> None:
        """Write these bytes to a file, overwriting an earlier attempt."""
        with open(self._fd, "rb", closefd=False) as file, open(new, "r+b", closefd=False) as kept:
            if not PREFIX.startswith(kept.read(len(PREFIX))):
                self.refuse("a file of the same name and `.new` is in the way")
            kept.truncate(0)
            for at, size in ranges:
                file.seek(at)
                _copy(file, kept, size)
        os.fsync(new)

    def sync(self) -> None:
        """Force it to the disk."""
        os.fsync(self._fd)

    def refuse(self, problem: str) -> NoReturn:
        """Reject this file.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError(f"`{self._path}`: {problem}")


def _locked(path: str) -> int:
    """Open a file for appending, with an exclusive lock.

    Raises:
        ConfigurationError: not possible.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be written: {os.strerror(error.errno or 0)}") from None
    try:
        _lock(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lock(fd: int, path: str) -> None:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"`{path}` is not a regular file, so a run that writes to it could not be resumed")
    if sys.platform == "win32":
        return  # it has locks of another kind, that keep readers out: there, nobody is kept from starting two runs
    import fcntl  # noqa: PLC0415  POSIX alone has it

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(found, Path(path).stat()):
            return  # else another run has just put a new file there
    except BlockingIOError:
        pass
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be locked: {os.strerror(error.errno or 0)}") from None
    raise ConfigurationError(f"`{path}` is being written by another run")


def _is_beginning(data: bytes) -> bool:
    """Whether this may be the start of a line of ours; a crashed machine can leave zeros instead."""
    return data.startswith(PREFIX) or PREFIX.startswith(data) or not data.strip(b"\0")


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    while size and (data := source.read(min(size, _COPIED))):
        target.write(data)
        size -= len(data)
