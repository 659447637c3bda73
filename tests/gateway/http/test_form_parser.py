"""What a multipart form may not have, for every reader of forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import WireError
from xenoglot.gateway.api.forwarded_body import ModelField
from xenoglot.gateway.batches.multipart import MultipartForm
from xenoglot.gateway.http.form_parser import FormParser, boundary_of

if TYPE_CHECKING:
    from collections.abc import Callable

READERS: dict[str, Callable[[], FormParser]] = {
    "file": lambda: MultipartForm("multipart/form-data; boundary=b"),
    "forwarded": lambda: ModelField(b"b"),
}
PLAIN = b'content-disposition: form-data; name="x"'
PROBLEMS: dict[str, tuple[bytes, str]] = {
    "two-dispositions": (
        PLAIN + b'\r\nContent-Disposition: form-data; name="model"',
        "$: a part of the form has two `content-disposition` headers: send one",
    ),
    "two-types": (
        PLAIN + b"\r\ncontent-type: a/b\r\ncontent-type: c/d",
        "$: a part of the form has two `content-type` headers: send one",
    ),
    "two-names": (
        PLAIN + b"; name=model",
        "$: a part of the form has two names in its `content-disposition`: send one",
    ),
    "two-names-in-other-syntax": (
        PLAIN + b"; NAME*=utf-8''model",
        "$: a part of the form has two names in its `content-disposition`: send one",
    ),
    "name-after-an-escaped-quote": (
        PLAIN + b'; filename="a\\"; name="model"',
        "$: a part of the form has two names in its `content-disposition`: send one",
    ),
    "no-name": (b"content-disposition: form-data", "$: a part of the form has no name"),
    "no-disposition": (b"content-type: a/b", "$: a part of the form has no name"),
    "long-header": (b"a: " + b"x" * 5_000, "$: the body is not valid for its content type"),
}


def parse_all(form: FormParser, data: bytes, size: int) -> None:
    """Parse all of a form in pieces of `size` bytes."""
    for at in range(0, len(data), size):
        form.parse(data[at : at + size])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", PROBLEMS)
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_part_that_is_ambiguous_or_has_no_name_is_refused(reader: str, case: str, size: int) -> None:
    head, problem = PROBLEMS[case]
    form, data = READERS[reader](), b"--b\r\n" + head + b"\r\n\r\nvalue\r\n--b--\r\n"
    with pytest.raises(WireError) as caught:
        parse_all(form, data, size)
    assert str(caught.value) == problem


@pytest.mark.parametrize("reader", READERS)
def test_parts_are_counted(reader: str) -> None:
    form = READERS[reader]()
    with pytest.raises(WireError, match=r"the form has more than \d+ parts"):
        form.parse((b"--b\r\n" + PLAIN + b"\r\n\r\n\r\n") * 300)


@pytest.mark.parametrize("reader", READERS)
def test_a_form_that_is_cut_off_is_not_whole(reader: str) -> None:
    form, data = READERS[reader](), b"--b\r\n" + PLAIN + b'; filename="a name=b"\r\n\r\nvalue\r\n--b--'
    form.parse(data[:-1])
    with pytest.raises(WireError, match="the form ends before its last boundary"):
        form.check_ended()
    form.parse(data[-1:])
    form.check_ended()


@pytest.mark.parametrize("content_type", ["", "multipart/form-data", 'multipart/form-data; boundary=""'])
def test_a_form_without_a_boundary(content_type: str) -> None:
    with pytest.raises(WireError, match="the form has no `boundary` in its content type"):
        boundary_of(content_type)


def test_a_boundary_that_is_too_long() -> None:
    with pytest.raises(WireError, match="the form's `boundary` is too long"):
        ModelField(b"b" * 10_000)
