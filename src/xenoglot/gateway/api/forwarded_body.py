"""The body of a request that is forwarded: JSON, or a form whose file is sent while it arrives.

Theory of operation. A request is sent where its model is, so the model's name has to be known before anything is sent.
JSON is read whole. A form (`multipart/form-data`, RFC 7578) is kept until the field `model` is found,
and a little more, so that a small form can be sent again if an upstream fails; the rest is forwarded as it comes. The
form is parsed to its end all the same: a second `model` after a file would be another one than that which was allowed.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.reader import expected
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from xenoglot.model.json import JSONObject

MODEL: Final = b"model"

KEPT_BYTES: Final = 256 * 1024
"""As much of a form is kept at least; one that is no longer can be sent again."""

MOST_KEPT_BYTES: Final = 8 * 1024 * 1024
"""As much of a form is kept at most, to find its model."""

LONGEST_MODEL: Final = 1024
MOST_PARTS: Final = 256
HEADERS, HEADER_BYTES = 16, 4_096
"""The most headers of a part, and bytes of each."""

_SILENT = logging.getLogger("xenoglot.gateway.form")
_SILENT.disabled = True
"""The parser would write a line for each form that is invalid; the client gets an error."""


class ModelField:
    """Finds the field `model` of a form that is fed to it, and checks that there is one at most.

    `begin` and `end` are the place of its value in the form, in bytes; `done` is whether the value is whole.
    """

    def __init__(self, boundary: bytes) -> None:
        self.begin = self.end = 0
        self.value = b""
        self.done = False
        self.ended = False
        """Whether the last boundary has come."""
        self._fed = 0
        self._name = self._text = self._disposition = b""
        self._is_model = False
        self._parts = 0
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part,
                    "on_header_field": self._on_header_name,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers,
                    "on_part_data": self._on_data,
                    "on_part_end": self._on_part_end,
                    "on_end": self._on_end,
                },
                max_header_count=HEADERS,
                max_header_size=HEADER_BYTES,
            )
        except FormParserError:
            raise WireError("$", "the form's `boundary` is too long") from None
        self._parser.logger = _SILENT

    def feed(self, data: bytes) -> None:
        """Read on.

        Raises:
            WireError: it is no form, or names two models.
        """
        try:
            self._parser.write(data)
        except FormParserError:
            raise WireError("$", "the body is not valid for its content type") from None
        self._fed += len(data)

    def _on_part(self) -> None:
        self._disposition = self._name = self._text = b""
        self._is_model = False
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise WireError("$", f"the form has more than {MOST_PARTS} parts")

    def _on_header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._text += data[start:end]

    def _on_header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            if self._disposition:
                raise WireError("$", "a part of the form has two `content-disposition` headers")
            self._disposition = self._text
        self._name = self._text = b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name")
        if not name:
            raise WireError("$", "a part of the form has no name")
        self._is_model = name == MODEL
        if self._is_model and self.done:
            raise WireError("$.model", "the form has two of it: send one")

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if not self._is_model:
            return
        if len(self.value) + end - start > LONGEST_MODEL:
            raise WireError("$.model", f"is longer than {LONGEST_MODEL} bytes")
        if not self.value:
            self.begin = self._fed + start
        self.value += data[start:end]
        self.end = self._fed + end

    def _on_part_end(self) -> None:
        if self._is_model and not self.value:
            raise WireError("$.model", "is empty")
        self.done = self.done or self._is_model

    def _on_end(self) -> None:
        self.ended = True


class JSONBody:
    """A body that was read whole, `data`, and its value."""

    media_type = "application/json"
    sent = False
    """Whether a part was taken that cannot be sent again: there is none."""

    def __init__(self, data: bytes, value: JSONObject) -> None:
        model = value.get("model")
        if model is not None and not isinstance(model, str):
            raise expected("$.model", "str", model)
        self.model = model or None
        self.streams = value.get("stream") is True
        self._data = data

    def first(self, model: str) -> bytes:
        """Return all of it, with the name of the `model`."""
        if model == self.model:
            return self._data
        fields = msgspec.json.decode(self._data, type=dict[str, msgspec.Raw])
        return encode_json(fields | {"model": msgspec.Raw(encode_json(model))})

    def length(self, model: str) -> int | None:
        """Return its length in bytes."""
        return len(self.first(model))

    def rest(self) -> None:
        """Return `None`: that is all."""


class FormBody:
    """A form of which the beginning was read; `size` is its length in bytes, where the client sent it.

    `sent` is whether the rest was taken, so that it cannot be sent again. Its field `stream` is not looked for.
    """

    streams = False

    def __init__(self, media_type: str, pieces: AsyncGenerator[bytes], size: int | None) -> None:
        self.media_type = media_type
        self.sent = False
        self._boundary = boundary_of(media_type)
        self._field = ModelField(self._boundary)
        self._pieces = pieces
        self._size = size
        self._head = bytearray()

    async def read(self) -> None:
        """Read until the model is known and a little more, or to the end.

        Raises:
            WireError: it is no form; or its model does not come early enough.
        """
        field, head = self._field, self._head
        while not field.done or len(head) < KEPT_BYTES:
            if len(head) > MOST_KEPT_BYTES:
                raise WireError("$.model", f"required in the first {MOST_KEPT_BYTES} bytes: put it before the file")
            data = await anext(self._pieces, b"")
            if not data:
                self._check_end()
                self._size = len(head)
                break
            field.feed(data)
            head += data

    @property
    def model(self) -> str | None:
        """The model that it names."""
        return self._field.value.decode(errors="replace") if self._field.done else None

    @property
    def whole(self) -> bool:
        """Whether all of it was read."""
        return self._field.ended

    def first(self, model: str) -> bytes:
        """Return what was read, with the name of the `model`."""
        field, name = self._field, model.encode()
        if not field.done:
            return self._part(name) + bytes(self._head)
        return b"".join((self._head[: field.begin], name, self._head[field.end :]))

    def length(self, model: str) -> int | None:
        """Return how many bytes it is with that name."""
        if self._size is None:
            return None
        return self._size + len(self.first(model)) - len(self._head)

    def rest(self) -> AsyncIterator[bytes] | None:
        """Return what was not read yet."""
        return None if self.whole else self._rest()

    async def _rest(self) -> AsyncIterator[bytes]:
        """Yield what was not read yet, each piece late by one: the last is sent only if the form is whole."""
        self.sent, held = True, b""
        async with aclosing(self._pieces) as pieces:
            async for data in pieces:
                self._field.feed(data)
                if held:
                    yield held
                held = data
        self._check_end()
        yield held

    def _check_end(self) -> None:
        if not self._field.ended:
            raise WireError("$", "the form ends before its last boundary")

    def _part(self, model: bytes) -> bytes:
        """Return the field `model` as the first part of the form."""
        return b'--%b\r\ncontent-disposition: form-data; name="model"\r\n\r\n%b\r\n' % (self._boundary, model)


def boundary_of(media_type: str) -> bytes:
    """Return what separates the parts of a form.

    Raises:
        WireError: the content type has none.
    """
    _, options = parse_options_header(media_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise WireError("$", "the form has no `boundary` in its content type")
    return boundary
