"""Replaces ids of files that the gateway stores by their content, so that every upstream can read them.

A file uploaded in any dialect has one id, `file-` and 32 hexadecimal digits, and can be named in prompts of every
dialect: by the id, or by a URL or a resource name that ends in `files/` and the id (Gemini). No provider has ids of
this form (OpenAI's are shorter, Anthropic's begin with `file_`); theirs are left as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from xenoglot.backends.offload import offload
from xenoglot.codec.features.batch import FILE_PREFIX
from xenoglot.codec.loss import INLINED
from xenoglot.codec.requests.checks import holds_media
from xenoglot.errors import FailureError
from xenoglot.gateway.media.file_content import content, part_of
from xenoglot.model.content import Audio, Extra, File, Image, Nested, Remote, Stored, ToolResult
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.codec.features.batch import StoredFile
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message, Request

PIECES_AT_ONCE: Final = 16
CODED: Final = 4 / 3
"""Bytes of base64 for each byte."""

_ID: Final = re.compile(rf"(?:(?:https?://[^?#]*/)?files/)?({FILE_PREFIX}[0-9a-f]{{32}})")


def names_file(request: Request) -> bool:
    """Return whether a request names a stored file."""
    return holds_media(request.messages) and next(_named(request.messages), None) is not None


def own_id(name: str) -> str | None:
    """Return the id of a stored file in an id, a resource name or a URL; `None` if it is of no such file."""
    found = _ID.fullmatch(name)
    return None if found is None else found[1]


class InlineRequest(NamedTuple):
    """A request with the content of the files that it names, and the bytes by which it grew."""

    request: Request
    grown: int


class InlineFiles:
    """Replaces ids of files in `keeper`. A request with its files has at most `most` bytes, as a body without them."""

    def __init__(self, keeper: StoreService, most: int) -> None:
        self._keeper = keeper
        self._most = most

    async def inlined(
        self, request: Request, owner: str, dialect: str, losses: Losses, size: int = 0
    ) -> InlineRequest | None:
        """Return `request`, of a client of `dialect` and `size` bytes, with files of `owner`; `None` if it names none.

        Raises:
            FailureError: the owner has no such file, they are too large together, or the store fails.
        """
        named = list(_named(request.messages)) if holds_media(request.messages) else []
        if not named:
            return None
        files = {name: await self._file(owner, name, path) for path, name in dict(reversed(named)).items()}
        return await self._replaced(request, [name for _, name in named], files, dialect, losses, size)

    async def _replaced(  # noqa: PLR0913, PLR0917  what one request is
        self,
        request: Request,
        named: Sequence[str],
        files: Mapping[str, StoredFile],
        dialect: str,
        losses: Losses,
        size: int,
    ) -> InlineRequest:
        grown = int(sum(files[name].size for name in named) * CODED)
        if size + grown > self._most:
            message = f"the prompt with its files is larger than {self._most} bytes: name fewer or smaller files"
            raise FailureError(Failure(kind="too_large", message=message))
        parts = {name: await self._part(file) for name, file in files.items()}
        inliner = _Inliner(parts, dialect, losses)
        messages = tuple(
            replace(message, content=inliner.parts(message.content, f"$.messages[{index}].content"))
            for index, message in enumerate(request.messages)
        )
        return InlineRequest(replace(request, messages=messages), grown)

    async def _file(self, owner: str, name: str, path: str) -> StoredFile:
        keeper = self._keeper
        file = await keeper.need(keeper.store.files.get(owner, name, keeper.now()))
        if file is None:
            raise _unknown(name, path)
        return file

    async def _part(self, file: StoredFile) -> Image | Audio | File:
        data = b"".join([piece async for piece in content(self._keeper, file, PIECES_AT_ONCE)])
        if len(data) != file.size:
            message = f"the file {file.id} was deleted while the request was prepared: upload it again"
            raise FailureError(Failure(kind="not_found", message=message))
        return await offload(len(data), lambda: part_of(data, file))


def _unknown(name: str, path: str) -> FailureError:
    message = f"No such File object: {name}. Files are found with the key that they were uploaded with"
    return FailureError(Failure(kind="not_found", message=message, param=path))


def _named(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield the path and the id of each part that names a stored file."""
    for index, message in enumerate(messages):
        yield from _named_in(message.content, f"$.messages[{index}].content")


def _named_in(parts: Sequence[Part], where: str) -> Iterator[tuple[str, str]]:
    for index, part in enumerate(parts):
        match part:
            case ToolResult(content=inner) | File(source=Nested(parts=inner)):
                yield from _named_in(inner, f"{where}[{index}].content")
            case Image() | Audio() | File():
                name = _id_of(part)
                if name is not None:
                    yield f"{where}[{index}]", name
            case _:
                pass


def _id_of(part: Image | Audio | File) -> str | None:
    match part.source:
        case Stored(id=name) | Remote(url=name):
            return own_id(name)
        case _:
            return None


class _Inliner:
    """Writes `parts`, by the ids of their files, in place of what names these."""

    def __init__(self, parts: Mapping[str, Image | Audio | File], dialect: str, losses: Losses) -> None:
        self._parts = parts
        self._dialect = dialect
        self._losses = losses

    def parts(self, parts: Sequence[Part], where: str) -> tuple[Part, ...]:
        return tuple(self._part(part, f"{where}[{index}]") for index, part in enumerate(parts))

    def _part(self, part: Part, where: str) -> Part:
        match part:
            case ToolResult(content=inner):
                return replace(part, content=self.parts(inner, f"{where}.content"))
            case File(source=Nested(parts=inner) as source):
                return replace(part, source=replace(source, parts=self.parts(inner, f"{where}.source.parts")))
            case Image() | Audio() | File():
                name = _id_of(part)
                return part if name is None else self._inlined(part, self._parts[name], where)
            case _:
                return part

    def _inlined(self, part: Image | Audio | File, stored: Image | Audio | File, where: str) -> Part:
        extra = Extra(dialect=self._dialect, form={INLINED: True})
        for field in () if part.extra is None else part.extra.fields:
            self._losses.dropped(where, field, "the content of the file is sent in place of its id")
        kept = {"extra": extra, "cache": part.cache}
        match stored, part:
            case File(), File():
                named = part.name or stored.name
                return replace(part, source=stored.source, name=named, extra=extra)
            case Image(), Image():
                return replace(part, source=stored.source, extra=extra)
            case _:
                return replace(stored, **kept)
