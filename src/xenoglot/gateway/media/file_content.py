"""The bytes of stored files: read in pieces, and as parts of a prompt, of the kind that their media type asks for."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.batch import PARTS, UNTYPED
from xenoglot.gateway.media.fetch_image import kind_of
from xenoglot.model.content import Audio, File, Image, Inline, Plain

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.codec.features.batch import StoredFile
    from xenoglot.gateway.store_service import StoreService

RESULTS: Final = 64
"""Answers of a batch that are read at once."""

_SIGNATURES: Final = (
    (re.compile(rb"%PDF-"), "application/pdf"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"ID3|\xff[\xfb\xf3\xf2]"), "audio/mp3"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"OggS"), "audio/ogg"),
    (re.compile(rb"....ftyp", re.DOTALL), "video/mp4"),
)
"""How files begin that are no images (https://mimesniff.spec.whatwg.org/#matching-an-audio-or-video-type-pattern)."""

_BY_ENDING: Final = {
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "txt": "text/plain",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
_TEXTS: Final = re.compile(
    r"text/.*|application/(?:json|jsonl|x-ndjson|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh)|.*\+(?:json|xml)"
)
_MOST_HEAD: Final = 16


async def content(keeper: StoreService, file: StoredFile, at_once: int = 1) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file, so many of its stored pieces `at_once`.

    Raises:
        FailureError: the store fails.
    """
    if file.batch is not None:
        async with aclosing(results(keeper, file.owner, file.batch, PARTS[file.part or ""])) as pieces:
            async for piece in pieces:
                yield piece
        return
    number = -1
    while found := await keeper.need(keeper.store.files.pieces(file.owner, file.id, number, at_once)):
        number = found[-1][0]
        yield found[0][1] if len(found) == 1 else b"".join(piece for _, piece in found)


async def results(keeper: StoreService, owner: str, batch: str, outcomes: Sequence[str]) -> AsyncGenerator[bytes]:
    """Yield the results of the requests of a batch, in their order.

    Raises:
        FailureError: the store fails.
    """
    number = -1
    while found := await keeper.need(keeper.store.batches.results(owner, batch, outcomes, number, RESULTS)):
        number = found[-1][0]
        yield b"".join(result for _, result in found)


def media_type_of(head: bytes, declared: str | None, name: str) -> str | None:
    """Return the media type of a file: by how it begins, as it was `declared`, or by the ending of its `name`.

    `None` if it is unknown. Servers look at the first bytes too, and refuse another type than these show.
    """
    head = head[:_MOST_HEAD]
    shown = kind_of(head) or next((kind for signature, kind in _SIGNATURES if signature.match(head)), None)
    if shown is not None:
        return shown
    plain = (declared or "").partition(";")[0].strip().lower()
    if plain and plain != UNTYPED:
        return plain
    return _BY_ENDING.get(name.rpartition(".")[2].lower())


def part_of(data: bytes, file: StoredFile) -> Image | Audio | File:
    """Return a part with the bytes of `file`: an image, sound, a document as its text, or a document."""
    kind = media_type_of(data, file.media_type, file.name)
    major = (kind or "").partition("/")[0]
    if kind is None or _TEXTS.fullmatch(kind):
        try:
            return File(source=Plain(text=data.decode("utf-8-sig"), media_type="text/plain"), name=file.name)
        except UnicodeDecodeError:
            kind = kind or UNTYPED
    coded = b64encode(data).decode("ascii")
    if major == "image":
        return Image(source=Inline(data=coded, media_type=kind))
    if major == "audio":
        return Audio(source=Inline(data=coded), format=kind.removeprefix("audio/"))
    return File(source=Inline(data=coded, media_type=kind), name=file.name)
