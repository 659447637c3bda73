"""Files: bytes that clients bring, taken and given as they come; of none is more in memory than a piece."""

from __future__ import annotations

import secrets
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from xenoglot.codec.features.batch import FILE_PREFIX, UNTYPED, StoredFile
from xenoglot.errors import FailureError, missing_extra
from xenoglot.gateway.auth.request_checks import requested_host
from xenoglot.gateway.batches.queries import FILE, NAMELESS, size_of, wider
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.http.application import BodyTooLargeError, body_pieces
from xenoglot.gateway.media.file_content import content
from xenoglot.gateway.store_service import OFF, StoreService
from xenoglot.model.failure import Failure
from xenoglot.store.files import MOST_UNFINISHED
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import FileCodec
    from xenoglot.gateway.batches.multipart import MultipartForm
    from xenoglot.gateway.batches.queries import BatchQuery, FileAct
    from xenoglot.model.json import JSON

NO_FORMS: Final = Failure(
    kind="unsupported",
    message=f"the gateway cannot read forms: {missing_extra('python_multipart')}",
)

PIECE: Final = 256 * 1024
"""Bytes of a file that are kept, and given, at once."""

FORM_BYTES: Final = 64 * 1024
"""How much more than its file a form may be."""

TOO_MANY: Final = Failure(
    kind="rate_limit",
    message=f"rate limit: you have {MOST_UNFINISHED} incomplete uploads and parts: complete or cancel some of them",
)

CHANGED: Final = Failure(
    kind="conflict",
    message="the upload changed meanwhile: another request writes to it, or ended it; send its requests one after the "
    "other, and query how many bytes have arrived before you continue",
)

OK: Final = 200


async def serve(act: FileAct, asked: BatchQuery) -> None:
    """Answer one request about files.

    Raises:
        FailureError: there is no answer, and nothing has been sent.
    """
    if not asked.dialect.files:
        raise FailureError(OFF)
    words = asked.dialect.files[0].codec()
    if act == "upload":
        file = await _upload(asked, words)
        await send_json(asked.ctx, words.show(file, base_url(asked)))
        asked.keeper.sweep(file.size)
        return
    await asked.pass_body()
    if act == "content":
        await _content(asked, await _known(asked, words))
    else:
        await send_json(asked.ctx, await _told(act, asked, words))


async def _told(act: FileAct, asked: BatchQuery, words: FileCodec) -> JSON:
    match act:
        case "list":
            return await _list(asked, words)
        case "delete":
            file = await _known(asked, words)
            await asked.keeper.need(asked.keeper.store.files.delete(file.owner, file.id))
            return words.deleted(file.id)
        case _:
            return words.show(await _known(asked, words), base_url(asked))


async def _known(asked: BatchQuery, words: FileCodec) -> StoredFile:
    """Return the requested file.

    Raises:
        FailureError: there is none.
    """
    keeper = asked.keeper
    file = await keeper.need(keeper.store.files.get(asked.owner, asked.name, keeper.now()))
    if file is None:
        raise FailureError(words.unknown(asked.name))
    return file


async def _list(asked: BatchQuery, words: FileCodec) -> JSON:
    query = words.decode_query(parse_qs(asked.exchange.query))
    keeper, base = asked.keeper, base_url(asked)
    store, now = keeper.store.files, keeper.now()
    if query.ids is not None:
        named = [await keeper.need(store.get(asked.owner, name, now)) for name in query.ids]
        return words.page([words.show(file, base) for file in named if file is not None], False)  # noqa: FBT003
    ascending = query.ascending != (query.before is not None)
    window = wider(query.limit, query.before or query.after, "asc" if ascending else "desc")
    files = await keeper.need(store.list_page(asked.owner, window, now, query.purpose))
    page = files[: query.limit]
    if query.before is not None:
        page.reverse()
    return words.page([words.show(file, base) for file in page], size_of(files, query.limit))


def base_url(asked: BatchQuery) -> str:
    """Return the URL of the gateway for clients: the configured one, or `http` and the host of the request."""
    if asked.settings.public_url is not None:
        return asked.settings.public_url.rstrip("/")
    return f"http://{requested_host(asked.exchange.headers) or 'localhost'}"


async def _upload(asked: BatchQuery, words: FileCodec) -> StoredFile:
    """Store the file of a form; a file that is refused, or truncated, leaves nothing.

    Raises:
        WireError: it is no form, or has nothing that could be stored.
        BodyTooLargeError: the file is too large.
    """
    form = read_form(asked.exchange.header("content-type") or "")
    name = FILE_PREFIX + secrets.token_hex(16)
    file = StoredFile(id=name, owner=asked.owner, created=asked.keeper.now(), name=NAMELESS, purpose="")
    await begin_file(asked, file)
    try:
        size = await store_form(asked, form, name)
        file = _finished(form, file, size, words)
        there = await asked.keeper.need(asked.keeper.store.files.finish(file))
    except BaseException:
        with suppress(StoreError):  # it is forgotten by itself, later
            await asked.keeper.within(asked.keeper.store.files.delete(asked.owner, name))
        raise
    if not there:
        raise FailureError(words.unknown(name))
    return file


async def begin_file(asked: BatchQuery, file: StoredFile) -> None:
    """Store the metadata of a file before its bytes.

    Raises:
        FailureError: the client has too many incomplete files, or too much in the store, or it fails.
    """
    await asked.keeper.check_room(asked.owner, 0)
    if not await asked.keeper.need(asked.keeper.store.files.begin(file)):
        raise FailureError(TOO_MANY)


def read_form(content_type: str, field: str = FILE) -> MultipartForm:
    """Return what reads a form.

    Raises:
        FailureError: nothing here can.
        WireError: the content type is none of a form's.
    """
    try:
        from xenoglot.gateway.batches.multipart import MultipartForm  # noqa: PLC0415  an extra
    except ImportError:
        raise FailureError(NO_FORMS) from None
    return MultipartForm(content_type, field)


class PieceWriter:
    """Stores the bytes of an unfinished file of `owner` in pieces, as they arrive; it has at most `most` bytes.

    Before them it has `number` pieces with `size` bytes.
    """

    def __init__(  # noqa: PLR0913, PLR0917  what one file is
        self, keeper: StoreService, owner: str, name: str, most: int, number: int = 0, size: int = 0
    ) -> None:
        self.size = size
        self._keeper = keeper
        self._owner = owner
        self._name = name
        self._most = most
        self._number = number
        self._buffer = bytearray()

    async def feed(self, data: bytes) -> None:
        """Add bytes.

        Raises:
            BodyTooLargeError: the file is too large.
            FailureError: the owner has too much in the store, the upload changed meanwhile, or the store fails.
        """
        self._buffer += data
        self.size += len(data)
        if self.size > self._most:
            raise BodyTooLargeError(f"the file is larger than {self._most} bytes")
        while len(self._buffer) >= PIECE:
            await self._put(bytes(self._buffer[:PIECE]))
            del self._buffer[:PIECE]

    async def close(self) -> None:
        """Store what is left.

        Raises:
            FailureError: the owner has too much in the store, the upload changed meanwhile, or the store fails.
        """
        if self._buffer:
            await self._put(bytes(self._buffer))

    async def _put(self, data: bytes) -> None:
        await self._keeper.check_room(self._owner, len(data))
        if not await self._keeper.need(self._keeper.store.files.add(self._owner, self._name, self._number, data)):
            raise FailureError(CHANGED)
        self._number += 1


async def store_form(asked: BatchQuery, form: MultipartForm, name: str) -> int:
    """Store the bytes of the file in a form; return their number."""
    most = asked.settings.max_bytes
    writer = PieceWriter(asked.keeper, asked.owner, name, most)
    async with aclosing(body_pieces(asked.exchange, most + FORM_BYTES)) as pieces:
        async for data in pieces:
            await writer.feed(form.feed(data))
    await writer.close()
    return writer.size


def _finished(form: MultipartForm, file: StoredFile, size: int, words: FileCodec) -> StoredFile:
    """Return what is known of a file, its form having come.

    Raises:
        WireError: something is missing, or is not allowed.
    """
    form.check()
    upload = words.decode_upload(form.fields)
    return StoredFile(
        id=file.id,
        owner=file.owner,
        created=file.created,
        name=form.name or NAMELESS,
        purpose=upload.purpose,
        size=size,
        expires=None if upload.seconds is None else file.created + upload.seconds,
        media_type=form.media_type,
    )


async def _content(asked: BatchQuery, file: StoredFile) -> None:
    """Send the bytes of a file."""
    exchange, record = asked.exchange, asked.record
    async with aclosing(content(asked.keeper, file)) as pieces:
        first = await anext(pieces, b"")
        record.begin(OK)
        more = [("content-length", str(file.size)), ("content-disposition", "attachment")]
        await exchange.start(OK, [("content-type", UNTYPED), *more, *record.headers()])
        sent = len(first)
        await exchange.write(first)
        async for piece in pieces:
            sent += len(piece)
            await exchange.write(piece)
    if sent == file.size:
        await exchange.end()
    else:  # it was forgotten meanwhile: nobody may take this for all of it
        exchange.abort()
