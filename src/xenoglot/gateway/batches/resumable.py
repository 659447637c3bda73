"""Resumable uploads: a first request names the file, further ones bring its bytes, at offsets, to a URL of its own.

The URL has a secret id, and clients send no key with the bytes, so it admits them. It is never the id of the file.
"""

from __future__ import annotations

import secrets
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.features.batch import FILE_PREFIX
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.batches.files import CHANGED, PieceWriter, base_url, begin_file
from xenoglot.gateway.batches.uploads import begun_file
from xenoglot.gateway.endpoint.responses import send, send_json
from xenoglot.gateway.http.application import body_pieces
from xenoglot.gateway.store_service import OFF

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import FileCodec, ResumableCodec, StoredFile, UploadStep
    from xenoglot.gateway.batches.queries import BatchQuery, ResumableAct
    from xenoglot.store.files import PartialFile

JSON_TYPE = "application/json"
OK = 200


async def serve(act: ResumableAct, asked: BatchQuery) -> None:
    """Answer one request of a resumable upload.

    Raises:
        FailureError: there is no answer, and nothing has been sent.
        WireError: the request is not one of the dialect.
    """
    feature = asked.dialect.files[0] if asked.dialect.files else None
    if feature is None or feature.resumable is None:
        raise FailureError(OFF)
    files, resumable = feature.codec(), feature.resumable()
    headers = dict(asked.exchange.headers)
    if act == "start":
        await _start(asked, resumable, headers)
        return
    known = asked.name.startswith(resumable.id_prefix)
    store, now = asked.keeper.store.files, asked.keeper.now()
    found = await asked.keeper.need(store.unfinished(asked.name, now)) if known else None
    if found is None:
        raise FailureError(files.unknown("whose upload has ended"))
    await _go_on(asked, files, resumable, resumable.decode_step(headers), found)


async def _start(asked: BatchQuery, resumable: ResumableCodec, headers: dict[str, str]) -> None:
    data = await asked.bodies.read(asked.exchange)
    request = resumable.decode_start(headers, await asked.bodies.json(data) if data.strip() else {})
    upload = begun_file(request, resumable.id_prefix, asked.owner, asked.keeper.now(), asked.settings.max_bytes)
    await begin_file(asked, upload)
    url = f"{base_url(asked)}{asked.exchange.path.rstrip('/')}/{upload.id}"
    await send_json(asked.ctx, {}, more=resumable.started(url))


async def _go_on(
    asked: BatchQuery, files: FileCodec, resumable: ResumableCodec, step: UploadStep, found: PartialFile
) -> None:
    upload, received, store = found.file, found.size, asked.keeper.store.files
    if step.cancels:
        await asked.pass_body()
        await asked.keeper.need(store.delete(upload.owner, upload.id))
        await send(asked.ctx, OK, b"", media_type=JSON_TYPE, more=resumable.progress(received, "cancelled"))
        return
    if step.queries:
        await asked.pass_body()
    else:
        received = await _receive(asked, step, found)
    if not step.ends:
        await send(asked.ctx, OK, b"", media_type=JSON_TYPE, more=resumable.progress(received, "active"))
        return
    if upload.size not in (0, received):
        raise WireError("$", f"{received} bytes arrived, and the upload was started for {upload.size}")
    file = await _finished(asked, upload, received)
    shown = resumable.show(files.show(file, base_url(asked)))
    await send_json(asked.ctx, shown, more=resumable.progress(received, "final"))
    asked.keeper.sweep(file.size)


async def _receive(asked: BatchQuery, step: UploadStep, found: PartialFile) -> int:
    """Store the bytes of a request; those that arrived before are skipped. Return how many there are now."""
    if step.offset > found.size:
        raise WireError("$", f"the offset is {step.offset}, and {found.size} bytes have arrived")
    most, skipped = asked.settings.max_bytes, found.size - step.offset
    longest = found.file.size or most
    writer = PieceWriter(asked.keeper, found.file.owner, found.file.id, longest, found.pieces, found.size)
    async with aclosing(body_pieces(asked.exchange, most)) as pieces:
        async for data in pieces:
            new = data[skipped:]
            skipped -= len(data) - len(new)
            await writer.feed(new)
    await writer.close()
    return writer.size


async def _finished(asked: BatchQuery, upload: StoredFile, size: int) -> StoredFile:
    file = replace(upload, id=FILE_PREFIX + secrets.token_hex(16), size=size, created=asked.keeper.now())
    if not await asked.keeper.need(asked.keeper.store.files.compose(file, [upload.id])):
        raise FailureError(CHANGED)
    return file
