"""Uploads in parts: clients upload parts of a file, in any order and several at once, and have them joined.

Upload and parts are unfinished files of the store, which retention deletes after an hour; joining them moves their
pieces, and no bytes.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.features.batch import FILE_PREFIX, StoredFile
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.batches.files import CHANGED, base_url, begin_file, read_form, store_form
from xenoglot.gateway.batches.queries import bare, media_type
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.store_service import OFF
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import FileCodec, UploadCodec, UploadRequest
    from xenoglot.gateway.batches.queries import BatchQuery, UploadAct
    from xenoglot.store.files import PartialFile


async def serve(act: UploadAct, asked: BatchQuery) -> None:
    """Answer one request about uploads.

    Raises:
        FailureError: there is no answer, and nothing has been sent.
        WireError: the request is not one of the dialect.
    """
    feature = asked.dialect.files[0] if asked.dialect.files else None
    if feature is None or feature.uploads is None:
        raise FailureError(OFF)
    files, uploads = feature.codec(), feature.uploads()
    match act:
        case "create":
            await _create(asked, uploads)
        case "part":
            await _add_part(asked, uploads)
        case "complete":
            await _complete(asked, files, uploads)
        case "cancel":
            await _cancel(asked, uploads)


async def _create(asked: BatchQuery, uploads: UploadCodec) -> None:
    request = uploads.decode(await asked.bodies.json(await asked.bodies.read(asked.exchange)))
    upload = begun_file(request, uploads.id_prefix, asked.owner, asked.keeper.now(), asked.settings.max_bytes)
    await begin_file(asked, upload)
    await send_json(asked.ctx, uploads.show(upload, "pending", None))


def begun_file(request: UploadRequest, prefix: str, owner: str, now: float, most: int) -> StoredFile:
    """Return the metadata of a file whose upload begins.

    Raises:
        WireError: it is larger than `most` bytes.
    """
    if request.size is not None and request.size > most:
        raise WireError("$.bytes", f"expected at most {most}")
    return StoredFile(
        id=prefix + secrets.token_hex(16),
        owner=owner,
        created=now,
        name=bare(request.name or ""),
        purpose=request.purpose,
        size=request.size or 0,
        expires=None if request.seconds is None else now + request.seconds,
        media_type=media_type(request.media_type or ""),
    )


async def _known(asked: BatchQuery, uploads: UploadCodec, name: str) -> PartialFile:
    """Return the upload, or the part, with an id.

    Raises:
        FailureError: the client has none.
    """
    found = await asked.keeper.need(asked.keeper.store.files.unfinished(name, asked.keeper.now()))
    if found is None or found.file.owner != asked.owner:
        raise FailureError(uploads.unknown(name))
    return found


async def _upload_of(asked: BatchQuery, uploads: UploadCodec) -> StoredFile:
    name = asked.name
    if not name.startswith(uploads.id_prefix):
        raise FailureError(uploads.unknown(name))
    return (await _known(asked, uploads, name)).file


async def _add_part(asked: BatchQuery, uploads: UploadCodec) -> None:
    upload, store = await _upload_of(asked, uploads), asked.keeper.store.files
    form = read_form(asked.exchange.header("content-type") or "", uploads.part_field)
    name = uploads.part_prefix + secrets.token_hex(16)
    part = StoredFile(id=name, owner=asked.owner, created=asked.keeper.now(), name="", purpose=upload.id)
    await begin_file(asked, part)
    try:
        await store_form(asked, form, name)
        form.check()
    except BaseException:
        with suppress(StoreError):  # retention deletes it later
            await asked.keeper.within(store.delete(asked.owner, name))
        raise
    await send_json(asked.ctx, uploads.show_part(part, upload.id))


async def _complete(asked: BatchQuery, files: FileCodec, uploads: UploadCodec) -> None:
    upload, keeper = await _upload_of(asked, uploads), asked.keeper
    wanted = uploads.decode_completion(await asked.bodies.json(await asked.bodies.read(asked.exchange)))
    size = 0
    for name in wanted.parts:
        part = await _known(asked, uploads, name)
        if part.file.purpose != upload.id:
            raise FailureError(uploads.unknown(name))
        size += part.size
    if size != upload.size:
        raise WireError("$.part_ids", f"the parts have {size} bytes, and the upload was created for {upload.size}")
    if wanted.md5 is not None and await _checksum(asked, wanted.parts) != wanted.md5.lower():
        raise WireError("$.md5", "the checksum of the parts is another")
    file = replace(upload, id=FILE_PREFIX + secrets.token_hex(16))
    if not await keeper.need(keeper.store.files.compose(file, wanted.parts)):
        raise FailureError(CHANGED)
    await _discard(asked, upload)
    await send_json(asked.ctx, uploads.show(upload, "completed", files.show(file, base_url(asked))))
    keeper.sweep(file.size)


async def _checksum(asked: BatchQuery, parts: tuple[str, ...]) -> str:
    digest, store = hashlib.md5(usedforsecurity=False), asked.keeper.store.files
    for name in parts:
        number = -1
        while found := await asked.keeper.need(store.pieces(asked.owner, name, number, 1)):
            number = found[-1][0]
            digest.update(found[-1][1])
    return digest.hexdigest()


async def _cancel(asked: BatchQuery, uploads: UploadCodec) -> None:
    await asked.pass_body()
    upload = await _upload_of(asked, uploads)
    await _discard(asked, upload)
    await send_json(asked.ctx, uploads.show(upload, "cancelled", None))


async def _discard(asked: BatchQuery, upload: StoredFile) -> None:
    """Delete an upload, and its parts that were not joined."""
    store = asked.keeper.store.files
    await asked.keeper.need(store.discard(asked.owner, upload.id))
    await asked.keeper.need(store.delete(asked.owner, upload.id))
