"""Incremental parser of multipart forms (`multipart/form-data`, RFC 7578): bounds, headers and names of parts.

A part whose name two readers could understand differently is refused, because a form may be forwarded.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from typing import Final, NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from xenoglot.errors import WireError

HEADERS, HEADER_BYTES = 16, 4_096
"""The most headers of a part, and bytes of each."""

_SILENT = logging.getLogger("xenoglot.gateway.form")
_SILENT.setLevel(logging.CRITICAL + 1)  # `disabled` ends with the next configuration of logging
"""The parser would write a line for each form that is invalid; the client gets an error."""

_NAMES: Final = re.compile(rb";\s*name\s*(?:\*[0-9*]*\s*)?=", re.IGNORECASE)
"""Begins a name in a `content-disposition`. Readers differ in quotes and escapes, so quoted ones count, too."""

_KEPT: Final = frozenset({b"content-disposition", b"content-type"})


class PartHead(NamedTuple):
    """The headers of a part; `file_name` and `media_type` are empty if they are not set."""

    name: bytes
    file_name: bytes
    media_type: bytes


class FormParser(ABC):
    """Parses a form that is fed to it in pieces, with at most `most_parts` parts; a subclass takes the parts.

    `ended` is whether the last boundary has arrived.
    """

    def __init__(self, boundary: bytes, most_parts: int) -> None:
        self.ended = False
        self._most_parts = most_parts
        self._parts = 0
        self._headers: dict[bytes, bytes] = {}
        self._header = self._value = b""
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self.on_data,
                    "on_part_end": self.on_part_end,
                    "on_end": self._on_end,
                },
                max_header_count=HEADERS,
                max_header_size=HEADER_BYTES,
            )
        except FormParserError:
            raise WireError("$", "the form's `boundary` is too long") from None
        self._parser.logger = _SILENT

    def parse(self, data: bytes) -> None:
        """Parse the next bytes.

        Raises:
            WireError: the form is invalid, or the subclass refuses it.
        """
        try:
            self._parser.write(data)
        except FormParserError:
            raise WireError("$", "the body is not valid for its content type") from None

    def check_ended(self) -> None:
        """Check that the form is whole.

        Raises:
            WireError: it is not.
        """
        if not self.ended:
            raise WireError("$", "the form ends before its last boundary")

    @abstractmethod
    def on_part(self, head: PartHead) -> None:
        """Take the headers of the next part."""

    @abstractmethod
    def on_data(self, data: bytes, start: int, end: int) -> None:
        """Take `data[start:end]` of the content of the part; `data` is what was parsed last."""

    @abstractmethod
    def on_part_end(self) -> None:
        """Take the end of the part."""

    def _on_part_begin(self) -> None:
        self._headers.clear()
        self._header = self._value = b""
        self._parts += 1
        if self._parts > self._most_parts:
            raise WireError("$", f"the form has more than {self._most_parts} parts")

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        header = self._header.lower()
        if header in _KEPT:
            if header in self._headers:
                raise WireError("$", f"a part of the form has two `{header.decode()}` headers: send one")
            self._headers[header] = self._value
        self._header = self._value = b""

    def _on_headers_finished(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        _, options = parse_options_header(disposition)
        name = options.get(b"name")
        if not name:
            raise WireError("$", "a part of the form has no name")
        if len(_NAMES.findall(disposition)) > 1:
            raise WireError("$", "a part of the form has two names in its `content-disposition`: send one")
        self.on_part(PartHead(name, options.get(b"filename", b""), self._headers.get(b"content-type", b"")))

    def _on_end(self) -> None:
        self.ended = True


def boundary_of(content_type: str) -> bytes:
    """Return what separates the parts of a form.

    Raises:
        WireError: the content type has none.
    """
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise WireError("$", "the form has no `boundary` in its content type")
    return boundary
