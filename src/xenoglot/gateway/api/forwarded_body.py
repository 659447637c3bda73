"""The body of a request that is forwarded: JSON, or a form whose file is sent while it arrives.

Theory of operation. A request is sent where its model is, so the model's name has to be known before anything is sent.
JSON is read whole. A form (`multipart/form-data`, RFC 7578) is kept until the field `model` is found,
and a little more, so that a small form can be sent again if an upstream fails; the rest is forwarded as it comes. The
form is parsed to its end all the same: a second `model` after a file would be another one than that which was allowed.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.reader import expected
from xenoglot.errors import WireError
from xenoglot.gateway.http.form_parser import FormParser, PartHead, boundary_of

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


class ModelField(FormParser):
    """Finds the field `model` of a form that is fed to it, and checks that there is one at most.

    `begin` and `end` are the place of its value in the form, in bytes; `done` is whether the value is whole.
    """

    def __init__(self, boundary: bytes) -> None:
        super().__init__(boundary, MOST_PARTS)
        self.begin = self.end = 0
        self.value = b""
        self.done = False
        self._fed = 0
        self._is_model = False

    def feed(self, data: bytes) -> None:
        """Parse the next bytes.

        Raises:
            WireError: the form is invalid, or names two models.
        """
        self.parse(data)
        self._fed += len(data)

    def on_part(self, head: PartHead) -> None:
        """Begin a field."""
        self._is_model = head.name == MODEL
        if self._is_model and self.done:
            raise WireError("$.model", "the form has two of it: send one")

    def on_data(self, data: bytes, start: int, end: int) -> None:
        """Take bytes of a field."""
        if not self._is_model:
            return
        if len(self.value) + end - start > LONGEST_MODEL:
            raise WireError("$.model", f"is longer than {LONGEST_MODEL} bytes")
        if not self.value:
            self.begin = self._fed + start
        self.value += data[start:end]
        self.end = self._fed + end

    def on_part_end(self) -> None:
        """Note that the value is whole."""
        if self._is_model and not self.value:
            raise WireError("$.model", "is empty")
        self.done = self.done or self._is_model


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
                self._field.check_ended()
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
        self._field.check_ended()
        yield held

    def _part(self, model: bytes) -> bytes:
        """Return the field `model` as the first part of the form."""
        return b'--%b\r\ncontent-disposition: form-data; name="model"\r\n\r\n%b\r\n' % (self._boundary, model)
