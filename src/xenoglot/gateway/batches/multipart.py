"""A form with one file, parsed as it arrives: the file's bytes are returned with each piece, the other fields kept."""

from __future__ import annotations

from typing import Final

from xenoglot.errors import WireError
from xenoglot.gateway.batches.queries import FILE, bare, media_type
from xenoglot.gateway.http.form_parser import FormParser, PartHead, boundary_of

MOST_PARTS: Final = 32
LONGEST_FIELD: Final = 4_096
"""Bytes of a field that is no file."""


class MultipartForm(FormParser):
    """Reads a form. `fields` are by their names; `name` and `media_type` are those of the file, in `file_field`."""

    def __init__(self, content_type: str, file_field: str = FILE) -> None:
        super().__init__(boundary_of(content_type), MOST_PARTS)
        self.file_field = file_field
        self.fields: dict[str, str] = {}
        self.name: str | None = None
        self.media_type: str | None = None
        self.has_file = False
        """Whether a file has arrived, or begun to."""
        self._found: list[bytes] = []
        self._field = ""
        self._text = b""
        self._in_file = False

    def check(self) -> None:
        """Check that the form is whole, and has a file.

        Raises:
            WireError: it is not, or has none.
        """
        self.check_ended()
        if not self.has_file:
            raise WireError(f"$.{self.file_field}", "required, expected a file")

    def feed(self, data: bytes) -> bytes:
        """Parse the next bytes; return those of the file.

        Raises:
            WireError: the form is invalid, or has two files.
        """
        self._found.clear()
        self.parse(data)
        return b"".join(self._found)

    def on_part(self, head: PartHead) -> None:
        """Begin the file, or another field."""
        self._field, self._text = head.name.decode(errors="replace"), b""
        self._in_file = self._field == self.file_field
        if not self._in_file:
            return
        if self.has_file:
            raise WireError(f"$.{self.file_field}", "the form has two files: send one")
        self.has_file = True
        self.media_type = media_type(head.media_type.decode(errors="replace"))
        self.name = bare(head.file_name.decode(errors="replace"))

    def on_data(self, data: bytes, start: int, end: int) -> None:
        """Take bytes of the file, or of another field."""
        if self._in_file:
            self._found.append(data[start:end])
            return
        if len(self._text) + end - start > LONGEST_FIELD:
            raise WireError("$", f"a field of the form is longer than {LONGEST_FIELD} bytes")
        self._text += data[start:end]

    def on_part_end(self) -> None:
        """Keep a field."""
        if not self._in_file:
            self.fields[self._field] = self._text.decode(errors="replace")
