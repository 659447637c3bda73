"""Files: bytes that clients bring, taken and given as they come; of none is more in memory than a piece."""

from __future__ import annotations

import secrets
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.batch import StoredFile
from xenoglot.errors import FailureError, WireError, missing_extra
from xenoglot.gateway.batches.queries import FILE, NAMELESS, ORDERS, size_of, wider
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.http.application import BodyTooLargeError, StreamedBody
from xenoglot.gateway.media.file_content import content
from xenoglot.gateway.store_service import OFF
from xenoglot.model.failure import Failure
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.codec.features.batch import FileCodec
    from xenoglot.gateway.batches.multipart import MultipartForm
    from xenoglot.gateway.batches.queries import BatchQuery, FileAct
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.model.json import JSON

NO_FORMS: Final = Failure(
    kind="unsupported",
    message=f"the gateway cannot read forms: {missing_extra('python_multipart')}",
)

PIECE: Final = 256 * 1024
"""Bytes of a file that are kept, and given, at once."""

FORM_BYTES: Final = 64 * 1024
"""How much more than its file a form may be."""

USUAL_PAGE: Final = 1_000
LONGEST_PAGE: Final = 10_000
LONGEST_PURPOSE: Final = 64
OK: Final = 200


async def serve(act: FileAct, asked: BatchQuery) -> None:
    """Answer one request about files.

    Raises:
        FailureError: there is no answer, and nothing has been sent.
    """
    batching = asked.dialect.batching
    if batching is None or batching.file_words is None:
        raise FailureError(OFF)
    words = batching.file_words()
    if act == "upload":
        file = await _upload(asked, words)
        await send_json(asked.ctx, words.show(file))
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
            return words.show(await _known(asked, words))


async def _known(asked: BatchQuery, words: FileCodec) -> StoredFile:
    """Return the file that is asked for.

    Raises:
        FailureError: there is none.
    """
    keeper = asked.keeper
    file = await keeper.need(keeper.store.files.get(asked.owner, asked.name, keeper.now()))
    if file is None:
        raise FailureError(words.unknown(asked.name))
    return file


async def _list(asked: BatchQuery, words: FileCodec) -> JSON:
    limit, order = asked.limit(USUAL_PAGE, LONGEST_PAGE), asked.query("order") or "desc"
    if order not in ORDERS:
        raise WireError("$.order", "expected `asc` or `desc`")
    keeper, window, purpose = asked.keeper, wider(limit, asked.place("after"), ORDERS[order]), asked.query("purpose")
    if purpose is not None and not purpose.isprintable():
        raise WireError("$.purpose", "expected a word such as `batch`")
    files = await keeper.need(keeper.store.files.list_page(asked.owner, window, keeper.now(), purpose))
    return words.page([words.show(file) for file in files[:limit]], size_of(files, limit))


async def _upload(asked: BatchQuery, words: FileCodec) -> StoredFile:
    """Keep the file of a form; of one that is refused, or does not come whole, nothing stays.

    Raises:
        WireError: it is no form, or says nothing that could be kept.
        BodyTooLargeError: the file is too large.
    """
    form = _form(asked.exchange.header("content-type") or "")
    name = words.id_prefix + secrets.token_hex(16)
    file = StoredFile(id=name, owner=asked.owner, created=asked.keeper.now(), name=NAMELESS, purpose="")
    await asked.keeper.need(asked.keeper.store.files.begin(file))
    try:
        size = await _keep(asked, form, name)
        file = _finished(form, file, size, words)
        there = await asked.keeper.need(asked.keeper.store.files.finish(file))
    except BaseException:
        with suppress(StoreError):  # it is forgotten by itself, later
            await asked.keeper.within(asked.keeper.store.files.delete(asked.owner, name))
        raise
    if not there:
        raise FailureError(words.unknown(name))
    return file


def _form(content_type: str) -> MultipartForm:
    """Return what reads a form.

    Raises:
        FailureError: nothing here can.
        WireError: the content type is none of a form's.
    """
    try:
        from xenoglot.gateway.batches.multipart import MultipartForm  # noqa: PLC0415  an extra
    except ImportError:
        raise FailureError(NO_FORMS) from None
    return MultipartForm(content_type)


async def _keep(asked: BatchQuery, form: MultipartForm, name: str) -> int:
    """Keep the bytes of the file in a form, as they come; return how many they are."""
    most = asked.settings.max_bytes
    keeper, size, number = asked.keeper, 0, 0
    buffer = bytearray()

    async def put(data: bytes) -> None:
        nonlocal number
        await keeper.check_room(asked.owner, len(data))
        await keeper.need(keeper.store.files.add(asked.owner, name, number, data))
        number += 1

    async with aclosing(_pieces(asked.exchange, most + FORM_BYTES)) as pieces:
        async for data in pieces:
            buffer += form.feed(data)
            if size + len(buffer) > most:
                raise BodyTooLargeError(f"the file is larger than {most} bytes")
            while len(buffer) >= PIECE:
                size += PIECE
                await put(bytes(buffer[:PIECE]))
                del buffer[:PIECE]
    if buffer:
        await put(bytes(buffer))
    return size + len(buffer)


async def _pieces(exchange: Exchange, limit: int) -> AsyncGenerator[bytes]:
    if isinstance(exchange, StreamedBody):
        async with aclosing(exchange.pieces(limit)) as pieces:
            async for data in pieces:
                yield data
    else:
        yield await exchange.read_body(limit)


def _finished(form: MultipartForm, file: StoredFile, size: int, words: FileCodec) -> StoredFile:
    """Return what is known of a file, its form having come.

    Raises:
        WireError: something is missing, or is not allowed.
    """
    if not form.done:
        raise WireError("$", "the form ends before its last boundary")
    if not form.has_file:
        raise WireError(f"$.{FILE}", "required, expected a file")
    purpose = form.fields.get("purpose", "")
    if not 0 < len(purpose) <= LONGEST_PURPOSE or not purpose.isprintable():
        raise WireError("$.purpose", "required, expected a word such as `batch`")
    if purpose in words.made:
        raise WireError("$.purpose", f"`{purpose}` is for what comes of others")
    seconds = words.lifetime(_lifetime(form), "$.expires_after")
    return StoredFile(
        id=file.id,
        owner=file.owner,
        created=file.created,
        name=form.name or NAMELESS,
        purpose=purpose,
        size=size,
        expires=None if seconds is None else file.created + seconds,
        media_type=form.media_type,
    )


def _lifetime(form: MultipartForm) -> JSON:
    """Return `expires_after` as an object; a form spells its members out.

    Raises:
        WireError: it does not: what was to go would stay.
    """
    if "expires_after" in form.fields:
        raise WireError("$.expires_after", "spell its members out, as in `expires_after[seconds]`")
    anchor, seconds = form.fields.get("expires_after[anchor]"), form.fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    number = int(seconds) if seconds is not None and seconds.isascii() and seconds.isdecimal() else None
    return {"anchor": anchor, "seconds": number}


async def _content(asked: BatchQuery, file: StoredFile) -> None:
    """Send the bytes of a file."""
    exchange, record = asked.exchange, asked.record
    async with aclosing(content(asked.keeper, file)) as pieces:
        first = await anext(pieces, b"")
        record.begin(OK)
        more = [("content-length", str(file.size)), ("content-disposition", "attachment")]
        await exchange.start(OK, [("content-type", "application/octet-stream"), *more, *record.headers()])
        sent = len(first)
        await exchange.write(first)
        async for piece in pieces:
            sent += len(piece)
            await exchange.write(piece)
    if sent == file.size:
        await exchange.end()
    else:  # it was forgotten meanwhile: nobody may take this for all of it
        exchange.abort()
