"""A form with one file in it (`multipart/form-data`, RFC 7578), read as it comes.

The file's bytes are given on with each piece; what else the form says is small, and kept.
"""

from __future__ import annotations

import logging
from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from xenoglot.errors import WireError
from xenoglot.gateway.batches.queries import FILE, bare, media_type

MOST_PARTS: Final = 32
LONGEST_FIELD: Final = 4_096
"""Bytes of a field that is no file, and of its name."""

HEADERS, HEADER_BYTES = 16, 4_096
"""The most headers of a part, and bytes of each."""

_SILENT = logging.getLogger("xenoglot.gateway.form")
_SILENT.disabled = True
"""The parser would write a line for each form that is none; whoever sent it is told."""


class MultipartForm:
    """Reads a form. `fields` are by their names, `name` and `media_type` are those of the file, in `file_field`.

    `done` is whether the form is whole.
    """

    def __init__(self, content_type: str, file_field: str = FILE) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if not boundary:
            raise WireError("$", "the form has no `boundary` in its content type")
        self.file_field = file_field
        self.fields: dict[str, str] = {}
        self.name: str | None = None
        self.media_type: str | None = None
        self.done = False
        self._found: list[bytes] = []
        self._header = self._value = b""
        self._disposition = self._type = b""
        self._field: str | None = None
        self._text = b""
        self._in_file = False
        self._has_file = False
        self._parts = 0
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._take_header,
                    "on_header_value": self._take_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._look,
                    "on_part_data": self._take,
                    "on_part_end": self._end,
                    "on_end": self._finish,
                },
                max_header_count=HEADERS,
                max_header_size=HEADER_BYTES,
            )
        except FormParserError:
            raise WireError("$", "the form's `boundary` is too long") from None
        self._parser.logger = _SILENT

    @property
    def has_file(self) -> bool:
        """Whether a file has come, or begun to."""
        return self._has_file

    def check(self) -> None:
        """Check that the form is whole, and has a file.

        Raises:
            WireError: it is not, or has none.
        """
        if not self.done:
            raise WireError("$", "the form ends before its last boundary")
        if not self.has_file:
            raise WireError(f"$.{self.file_field}", "required, expected a file")

    def feed(self, data: bytes) -> bytes:
        """Read on; return what that brings of the file.

        Raises:
            WireError: it is no form, or has two files.
        """
        self._found.clear()
        try:
            self._parser.write(data)
        except FormParserError:
            raise WireError("$", "the body is not valid for its content type") from None
        return b"".join(self._found)

    # What the parser tells.

    def _begin(self) -> None:
        self._disposition = self._type = self._header = self._value = self._text = b""
        self._field = None
        self._in_file = False
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise WireError("$", f"the form has more than {MOST_PARTS} parts")

    def _take_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        elif self._header.lower() == b"content-type":
            self._type = self._value
        self._header = self._value = b""

    def _look(self) -> None:
        """See what the part is, its headers being here."""
        _, options = parse_options_header(self._disposition)
        field = options.get(b"name", b"")
        if not field or len(field) > LONGEST_FIELD:
            raise WireError("$", "a part of the form has no name, or too long a one")
        self._field = field.decode(errors="replace")
        self._in_file = self._field == self.file_field
        if self._in_file and self._has_file:
            raise WireError(f"$.{self.file_field}", "the form has two files: send one")
        if self._in_file:
            self._has_file = True
            self.media_type = media_type(self._type.decode(errors="replace"))
            self.name = bare(options.get(b"filename", b"").decode(errors="replace"))

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._found.append(data[start:end])
            return
        if len(self._text) + end - start > LONGEST_FIELD:
            raise WireError("$", f"a field of the form is longer than {LONGEST_FIELD} bytes")
        self._text += data[start:end]

    def _end(self) -> None:
        if self._field is not None and not self._in_file:
            self.fields[self._field] = self._text.decode(errors="replace")

    def _finish(self) -> None:
        self.done = True
