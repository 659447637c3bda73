"""The output as a journal: what stands in it is done, what was cut off is not, and what is foreign is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.bulk.batches import BAD, OK, Batch, done, ids, write_input
from xenoglot.backends.batch_lines import PREFIX
from xenoglot.bulk import journal as journaling
from xenoglot.bulk.journal import Journal
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@pytest.fixture
def batch(tmp_path: Path) -> Generator[Batch]:
    """A batch of six lines."""
    made = Batch(tmp_path, 6)
    with made.source:
        yield made


def test_what_was_written_is_done(batch: Batch) -> None:
    batch.fill(5, 2)
    with batch.journal() as journal:
        assert (done(journal), journal.done, journal.failed) == ([2, 5], 2, 0)


def test_a_line_that_was_cut_off_anywhere_is_asked_again(batch: Batch) -> None:
    batch.fill(3, 1)
    whole = batch.output.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        batch.output.write_bytes(whole[:end])
        with batch.journal() as journal:
            kept = end == len(whole) - 1  # all of it is there but for the end of the line
            assert done(journal) == ([1, 3] if kept else [3])
            if not kept:
                journal.write(1, batch.answer(1), ok=True)
        assert batch.output.read_bytes() == whole


@pytest.mark.parametrize("tail", [b"\0" * 50, b'{"id":"batch_req_1_0' + b"\0" * 9], ids=["zeros", "zeros-behind"])
def test_zeros_that_a_machine_left_as_it_went_down_are_cut_off(batch: Batch, tail: bytes) -> None:
    batch.fill(3)
    whole = batch.output.read_bytes()
    batch.output.write_bytes(whole + tail)
    with batch.journal() as journal:
        assert done(journal) == [3]
    assert batch.output.read_bytes() == whole


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"Dear diary,\n", "line 1 is no answer of a batch", id="text"),
        pytest.param(b"Dear diary", "line 1 is no answer of a batch", id="text-without-an-end"),
        pytest.param(b'{"id":"chatcmpl-1"}\n', "line 1 is no answer of a batch", id="another-json"),
        pytest.param(b'{"id":"batch_req_7_0000000000000000"}\n', "line 1 answers another input", id="beyond-the-end"),
        pytest.param(b'{"id":"batch_req_2_0000000000000000"}\n', "line 1 answers another input", id="changed-line"),
        pytest.param(b"\n", "line 1 is no answer of a batch", id="blank"),
    ],
)
def test_a_foreign_file_is_refused_and_left_as_it_is(batch: Batch, content: bytes, told: str) -> None:
    batch.output.write_bytes(content)
    with pytest.raises(ConfigurationError, match=told):
        batch.journal()
    assert batch.output.read_bytes() == content


def test_what_is_too_long_to_be_ours_is_left_as_it_is(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    batch.fill(1)
    whole = batch.output.read_bytes()
    batch.output.write_bytes(whole + PREFIX + b"x" * (2 * len(whole) - len(PREFIX)))
    monkeypatch.setattr(journaling, "LONGEST_LINE", len(whole))
    with pytest.raises(ConfigurationError, match="line 2 is no answer of a batch"):
        batch.journal()
    assert batch.output.stat().st_size == 3 * len(whole)


def test_an_answer_that_stands_there_twice_is_refused(batch: Batch) -> None:
    batch.output.write_bytes(batch.answer(4) * 2)
    with pytest.raises(ConfigurationError, match="line 2 answers line 4 of the input, which is answered elsewhere too"):
        batch.journal()


def test_an_input_that_was_changed_is_refused(tmp_path: Path) -> None:
    first = Batch(tmp_path, 3)
    with first.source:
        first.fill(1, 3)
    changed = (tmp_path / "in.jsonl").read_bytes().replace(b"What is 3", b"Who is 3")
    (tmp_path / "in.jsonl").write_bytes(changed)
    with pytest.raises(ConfigurationError, match=r"line 2 answers another input"):
        _again(tmp_path)


def test_lines_may_be_added_at_the_end(tmp_path: Path) -> None:
    first = Batch(tmp_path, 3)
    with first.source:
        first.fill(1, 3)
    second = Batch(tmp_path, 5)
    with second.source, second.journal() as journal:
        assert (done(journal), second.survey.count) == ([1, 3], 5)


def _again(folder: Path) -> None:
    from xenoglot.backends.batch_lines import decode_line  # noqa: PLC0415  only here
    from xenoglot.bulk.input_scan import scan_input  # noqa: PLC0415

    with (folder / "in.jsonl").open("rb") as source:
        Journal(str(folder / "out.jsonl"), None, source, scan_input(source, decode_line))


def test_the_input_is_not_written_over(batch: Batch, tmp_path: Path) -> None:
    before = (tmp_path / "in.jsonl").read_bytes()
    with pytest.raises(ConfigurationError, match="is the input"):
        Journal(str(tmp_path / "in.jsonl"), None, batch.source, batch.survey)
    (tmp_path / "link").symlink_to(tmp_path / "in.jsonl")
    with pytest.raises(ConfigurationError, match="is the input"):
        Journal(str(tmp_path / "link"), None, batch.source, batch.survey)
    assert (tmp_path / "in.jsonl").read_bytes() == before


def test_two_runs_cannot_write_the_same_output(batch: Batch) -> None:
    with batch.journal(apart=True):
        for apart in (False, True):
            with pytest.raises(ConfigurationError, match=r"out\.jsonl` is being written by another run"):
                batch.journal(apart=apart)
    with pytest.raises(ConfigurationError, match="is to be the file of errors too"):
        Journal(str(batch.output), str(batch.output), batch.source, batch.survey)
    batch.journal().__exit__()


def test_a_lock_ends_with_the_process_that_had_it(batch: Batch) -> None:
    program = (
        "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT);"
        "fcntl.flock(fd, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(batch.output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(ConfigurationError, match="another run"):
            batch.journal()
        other.kill()
        other.wait()
    batch.journal().__exit__()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("", "cannot be written: No such file", id="no-name"),
        pytest.param("none/out.jsonl", "cannot be written: No such file", id="no-folder"),
        pytest.param(".", "cannot be written: Is a directory", id="folder"),
        pytest.param("/dev/null", "is not a regular file", id="device"),
        pytest.param("pipe", "is not a regular file", id="pipe"),
    ],
)
def test_an_output_has_to_be_a_file(batch: Batch, tmp_path: Path, path: str, told: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    where = str(tmp_path / path) if path else ""
    with pytest.raises(ConfigurationError, match=told):
        Journal(where, None, batch.source, batch.survey)


def test_errors_have_a_file_of_their_own(batch: Batch) -> None:
    batch.fill(1, apart=True)
    batch.fill(4, outcome=BAD, apart=True)
    assert (ids(batch.output), ids(batch.errors)) == (["id-1"], ["id-4"])
    with batch.journal(apart=True) as journal:
        assert (done(journal), journal.failed) == ([1, 4], 1)


@pytest.mark.parametrize("apart", [False, True], ids=["one-file", "two-files"])
def test_errors_can_be_asked_again(batch: Batch, apart: bool) -> None:  # noqa: FBT001  a case
    batch.fill(1, 2, apart=apart)
    batch.fill(4, 5, outcome=BAD, apart=apart)
    batch.fill(6, apart=apart)
    batch.output.chmod(0o600)
    with batch.journal(apart=apart, again=True) as journal:
        assert (done(journal), journal.failed) == ([1, 2, 6], 0)
        assert ids(batch.output) == ["id-1", "id-2", "id-6"]
        with pytest.raises(ConfigurationError, match="another run"):
            batch.journal(apart=apart)
        journal.write(4, batch.answer(4), ok=True)
    assert ids(batch.output) == ["id-1", "id-2", "id-6", "id-4"]
    assert batch.output.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in batch.output.parent.glob("*.new")) == []


@pytest.mark.parametrize("apart", [False, True], ids=["one-file", "two-files"])
def test_answers_can_be_put_in_order(batch: Batch, apart: bool) -> None:  # noqa: FBT001  a case
    link = batch.output.with_name("link")
    link.symlink_to(batch.output)
    batch.fill(6, 1, 3, apart=apart)
    batch.fill(4, 2, outcome=BAD, apart=apart)
    errors = str(batch.errors) if apart else None
    with Journal(str(link), errors, batch.source, batch.survey) as journal:
        journal.put_in_order()
        with pytest.raises(ConfigurationError, match="another run"):
            batch.journal(apart=apart)
        assert ids(batch.output) == (["id-1", "id-3", "id-6"] if apart else ["id-1", "id-2", "id-3", "id-4", "id-6"])
        journal.write(5, batch.answer(5), ok=True)
    assert not apart or ids(batch.errors) == ["id-2", "id-4"]
    assert ids(batch.output)[-1] == "id-5"
    assert link.is_symlink()
    with batch.journal(apart=apart) as journal:
        journal.put_in_order()
        assert ids(batch.output)[-2:] == ["id-5", "id-6"]
        before = batch.output.stat().st_ino
        journal.put_in_order()
    assert batch.output.stat().st_ino == before  # what is in order is left as it is


@pytest.mark.parametrize("there", ["Dear diary", "rest"])
def test_what_stands_where_the_new_file_goes_is_looked_at(batch: Batch, there: str) -> None:
    batch.fill(2, 1)
    beside = batch.output.with_name("out.jsonl.new")
    beside.write_bytes(batch.answer(3)[:40] if there == "rest" else there.encode())  # that of a run that was killed
    with batch.journal() as journal:
        if there == "rest":
            journal.put_in_order()
            assert ids(batch.output) == ["id-1", "id-2"]
            return
        with pytest.raises(ConfigurationError, match=r"`\.new` is in the way"):
            journal.put_in_order()
    assert beside.read_text(encoding="utf-8") == there
    assert ids(batch.output) == ["id-2", "id-1"]


def test_a_disk_that_is_full_costs_no_answer(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    batch.fill(2, 1)
    with batch.journal() as journal, monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(ConfigurationError, match="cannot be written anew: No space left"):
            journal.put_in_order()
    assert ids(batch.output) == ["id-2", "id-1"]
    assert [*batch.output.parent.glob("*.new")] == []


def test_nothing_is_asked_again_where_nothing_failed(batch: Batch) -> None:
    batch.fill(1)
    before = batch.output.stat().st_ino
    with batch.journal(again=True) as journal:
        assert done(journal) == [1]
    assert batch.output.stat().st_ino == before


def test_of_a_line_that_does_not_fit_nothing_is_left(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    batch.fill(1)
    whole = batch.output.read_bytes()
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) > 10:
            return write(fd, data[:10])
        raise OSError(28, "No space left on device")

    with batch.journal() as journal:
        monkeypatch.setattr(os, "write", full)
        short = batch.answer(2, OK)[:15]
        with pytest.raises(OSError, match="No space"):
            journal.write(2, short, ok=True)
        monkeypatch.undo()
        assert done(journal) == [1]
    assert batch.output.read_bytes() == whole


def test_another_input_has_another_mark(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    one, other = Batch(tmp_path, 2), write_input(tmp_path / "a" / "in.jsonl", 2)
    one.source.close()
    assert other.read_bytes() == (tmp_path / "in.jsonl").read_bytes()
    assert one.survey.digests[1] != one.survey.digests[2]
