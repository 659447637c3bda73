"""The input of a batch as a whole: read to its end before anything is asked, and never kept."""

from __future__ import annotations

import io
import json
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.batch_lines import decode_line, mark_of
from xenoglot.bulk import input_scan as surveying
from xenoglot.bulk.input_scan import REMEDY, numbered, scan_input
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Buffer

BODY = b'{"model":"m","messages":[]}'


def test_lines_are_counted_as_an_editor_does() -> None:
    source = io.BytesIO(b"\xef\xbb\xbf" + BODY + b"\r\n\n  \n" + BODY)
    assert [*numbered(source)] == [(1, BODY), (4, BODY)]
    found = scan_input(source, decode_line)
    assert (found.count, [*found.requests]) == (2, [0, 1, 0, 0, 1])
    assert found.digests[4] == mark_of(BODY, 4).digest


def test_every_mistake_is_told_with_its_line() -> None:
    bodies = [b"{", BODY, b'{"custom_id":"a","params":{}}', b"", b'{"custom_id":"a","params":{"x":1}}', b"[]"]
    with pytest.raises(ConfigurationError) as caught:
        scan_input(io.BytesIO(b"\n".join(bodies)), decode_line)
    assert str(caught.value).split("\n") == [
        "line 1: $: not valid JSON: Input data was truncated",
        "line 5: `custom_id` is `a`, as in line 3: each has to be another",
        "line 6: $: expected an object",
        REMEDY,
    ]


def test_invalid_lines_are_collected() -> None:
    """first-minutes-H20: one bad line refused 10,000."""
    bodies = [b"{", BODY, b'{"custom_id":"a","params":{}}', b'{"custom_id":"a","params":{"x":1}}', b'{"custom_id":"b"}']
    found = scan_input(io.BytesIO(b"\n".join(bodies)), decode_line, skip_invalid=True)
    assert (found.count, [*found.requests]) == (5, [0, 1, 1, 1, 1, 1])
    assert {number: line[:2] for number, line in found.invalid.items()} == {
        1: ("line-1", "invalid_json_line"),
        4: ("a", "duplicate_custom_id"),
        5: ("b", "invalid_request"),
    }


def test_an_id_that_is_made_up_clashes_too() -> None:
    with pytest.raises(ConfigurationError, match="line 2: `custom_id` is `line-2`, as in line 1"):
        scan_input(io.BytesIO(b'{"custom_id":"line-2","params":{}}\n' + BODY), decode_line)


def test_an_id_cannot_move_the_terminal() -> None:
    line = json.dumps({"custom_id": "\x1b[2J\n" + "x" * 200, "params": {}}).encode()
    with pytest.raises(ConfigurationError) as caught:
        scan_input(io.BytesIO(line + b"\n" + line), decode_line)
    assert str(caught.value).startswith("line 2: `custom_id` is `\\x1b[2J\\nxxx")
    assert len(str(caught.value).split("\n")[0]) < 200


def test_not_all_of_very_many_mistakes_are_told() -> None:
    with pytest.raises(ConfigurationError) as caught:
        scan_input(io.BytesIO(b"{\n" * 1000), decode_line)
    told = str(caught.value).split("\n")
    assert (len(told), told[-2:]) == (22, ["there are more mistakes", REMEDY])


@pytest.mark.parametrize("given", [b"", b"\n\r\n \n", b"\xef\xbb\xbf"])
def test_an_input_without_lines_is_a_mistake(given: bytes) -> None:
    with pytest.raises(ConfigurationError, match="has no lines"):
        scan_input(io.BytesIO(given), decode_line)


def test_a_line_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "LONGEST_LINE", 100)
    with pytest.raises(ConfigurationError, match="line 2: is longer than 100 bytes"):
        scan_input(io.BytesIO(BODY + b"\n" + b"x" * 1000), decode_line)


class Endless(io.RawIOBase):
    """A file of so many lines of 100,000 bytes, which are made as they are read."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._left = b""
        self._made = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, _whence: int = 0) -> int:
        self._made, self._left = 0, b""
        return offset

    def readable(self) -> bool:
        return True

    def readinto(self, into: Buffer, /) -> int:
        buffer = memoryview(into).cast("B")
        if not self._left and self._made < self._count:
            self._made += 1
            self._left = b'{"model":"m","prompt":"%s"}\n' % (b"x" * 100_000)
        taken, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def test_what_is_kept_of_an_input_does_not_grow_with_its_lines_length() -> None:
    with io.BufferedReader(Endless(400)) as source:  # 40 MB
        tracemalloc.start()
        try:
            found = scan_input(source, partial(decode_line, dialect="completions"))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert found.count == 400
    assert peak < 2_000_000
