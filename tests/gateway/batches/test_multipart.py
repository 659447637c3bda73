"""The form in which a file comes: read however it is cut, and never trusted."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.errors import WireError
from xenoglot.gateway.batches.multipart import MultipartForm
from xenoglot.gateway.batches.queries import bare

TYPE = "multipart/form-data; boundary=b-"
DATA = b"line\r\n--b\r\n--\r\n--b--c\r\n-" * 20
FORM = (
    b'--b-\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    b'--b-\r\nContent-Type: x/y\r\nContent-Disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n'
    + DATA
    + b"\r\n--b---\r\nepilogue"
)
PIECES = (
    b"--b-\r\n",
    b"--b---",
    b"\r\n",
    b'content-disposition: form-data; name="file"\r\n\r\n',
    b"content-disposition: form-data; name=x\r\n",
    b"a: b\r\n",
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_one_is_read_however_it_is_cut(size: int) -> None:
    form = MultipartForm(TYPE)
    assert b"".join(form.feed(FORM[at : at + size]) for at in range(0, len(FORM), size)) == DATA
    assert (form.ended, form.fields, form.name) == (True, {"purpose": "batch"}, "in.jsonl")


@given(st.lists(st.one_of(st.binary(max_size=20), st.sampled_from(PIECES)), max_size=12))
def test_whatever_comes_is_one_or_refused(pieces: list[bytes]) -> None:
    form = MultipartForm(TYPE)
    with suppress(WireError):
        for piece in pieces:
            form.feed(piece)


@pytest.mark.parametrize("name", ["\x00", "\xe9", '"', "name*=utf-8''x", "\t" * 3_000])
def test_no_name_of_a_part_breaks_it(name: str) -> None:
    form = MultipartForm(TYPE)
    with suppress(WireError):
        form.feed(
            b"--b-\r\ncontent-disposition: form-data; name=" + name.encode("latin-1") + b"\r\n\r\nx\r\n--b---\r\n"
        )
    assert not form.has_file


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a.jsonl", "a.jsonl", id="plain"),
        pytest.param("/etc/passwd", "passwd", id="absolute"),
        pytest.param("..\\..\\boot.ini", "boot.ini", id="backslashes"),
        pytest.param("a\r\nset-cookie: x", "aset-cookie: x", id="line-ends"),
        pytest.param("x/", "file", id="folder"),
        pytest.param("\u00fc" * 300, "\u00fc" * 255, id="long"),
    ],
)
def test_a_name_is_told_without_its_folders(name: str, expected: str) -> None:
    assert bare(name) == expected
