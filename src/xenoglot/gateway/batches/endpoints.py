"""Endpoints of batches: create, retrieve, list, cancel, delete and results; `batches.runner` executes them."""

from __future__ import annotations

import secrets
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from xenoglot.backends.batch_lines import endpoint_at
from xenoglot.backends.offload import offload
from xenoglot.codec.features.batch import Batch
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.batches.queries import size_of, wider
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.media.file_content import results
from xenoglot.gateway.store_service import OFF, is_id
from xenoglot.gateway.upstream.call import passed_on
from xenoglot.store.batches import BatchRow
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.codec.features.batch import BatchCodec, BatchRequest
    from xenoglot.gateway.batches.queries import BatchAct, BatchQuery
    from xenoglot.model.json import JSON, JSONObject

USUAL_PAGE: Final = 20
LONGEST_PAGE: Final = 100
LONGEST_OWN_PAGE: Final = 1_000
"""Batches of a page: the default, the maximum, and the maximum for APIs whose results are not files."""

AT_ONCE: Final = 200
BYTES_AT_ONCE: Final = 1024 * 1024
"""How many requests are kept in one transaction, and about how large they are together."""

JSONL: Final = "application/x-jsonl"
OK: Final = 200


async def serve(act: BatchAct, asked: BatchQuery, notify: Callable[[], object]) -> None:
    """Answer one request about batches; `notify` wakes the runner.

    Raises:
        FailureError: there is no answer, and nothing has been sent.
    """
    batching = asked.dialect.batching
    if batching is None:
        raise FailureError(OFF)
    words = batching.words()
    if act == "create":
        batch, size = await _create(asked, words)
        notify()
        asked.keeper.sweep(size)
        await send_json(asked.ctx, words.show(batch))
        return
    await asked.pass_body()
    if act == "results":
        await _results(asked, words)
    else:
        told = await _told(act, asked, words)
        if act == "cancel":
            notify()
        await send_json(asked.ctx, told)


async def _told(act: BatchAct, asked: BatchQuery, words: BatchCodec) -> JSON:
    match act:
        case "list":
            return await _list(asked, words)
        case "cancel":
            return words.show(await _cancel(asked, words))
        case "delete" if words.deleted is not None:
            batch = await _known(asked, words)
            if not batch.over:
                raise FailureError(words.not_over())
            await asked.keeper.need(asked.keeper.store.batches.delete(batch.owner, batch.id))
            return words.deleted(batch.id)
        case _:
            return words.show(await _known(asked, words))


async def _known(asked: BatchQuery, words: BatchCodec) -> Batch:
    """Return the requested batch.

    Raises:
        FailureError: there is none.
    """
    batch = await asked.keeper.need(asked.keeper.store.batches.get(asked.owner, asked.name))
    if batch is None or batch.kind != asked.dialect.name:
        raise FailureError(words.unknown(asked.name))
    return batch


async def _cancel(asked: BatchQuery, words: BatchCodec) -> Batch:
    batch = await _known(asked, words)
    if batch.over and words.over is not None:
        raise FailureError(words.over(batch))
    now = await asked.keeper.need(asked.keeper.store.batches.cancel(batch.owner, batch.id, asked.keeper.now()))
    if now is None:
        raise FailureError(words.unknown(asked.name))
    return now


async def _list(asked: BatchQuery, words: BatchCodec) -> JSON:
    batching = asked.dialect.batching
    with_files = batching is not None and batching.files_path is not None
    limit = asked.limit(USUAL_PAGE, LONGEST_PAGE if with_files else LONGEST_OWN_PAGE)
    before = None if with_files else asked.place("before_id")
    after = asked.place("after" if with_files else "after_id")
    window = wider(limit, after, "desc") if before is None else wider(limit, before, "asc")
    found = await asked.keeper.need(asked.keeper.store.batches.list_page(asked.owner, asked.dialect.name, window))
    page = found[:limit] if before is None else found[:limit][::-1]
    return words.page([words.show(batch) for batch in page], size_of(found, limit))


async def _results(asked: BatchQuery, words: BatchCodec) -> None:
    """Send what came of the requests of a batch, a line for each."""
    batch = await _known(asked, words)
    if not batch.over:
        raise FailureError(words.not_over())
    asked.record.begin(OK)
    await asked.exchange.start(OK, [("content-type", JSONL), *asked.record.headers()])
    async with aclosing(results(asked.keeper, batch.owner, batch.id, ("ok", "error", "left"))) as pieces:
        async for piece in pieces:
            await asked.exchange.write(piece)
    await asked.exchange.end()


async def _create(asked: BatchQuery, words: BatchCodec) -> tuple[Batch, int]:
    """Store the requested batch, and return it with its size in bytes.

    A batch with inline requests becomes visible only when it is complete.

    Raises:
        WireError: it is none that could be answered.
        FailureError: its file does not exist, or the limit for batches is reached.
    """
    data = await asked.bodies.read(asked.exchange)
    body = await asked.bodies.json(data)
    wanted = await offload(len(data), lambda: words.decode(body))
    _check(asked, wanted)
    now = asked.keeper.now()
    batch = Batch(
        id=words.id_prefix + secrets.token_hex(16),
        owner=asked.owner,
        kind=asked.dialect.name,
        created=now,
        deadline=now + wanted.seconds,
        phase="in_progress" if wanted.input is None else "validating",
        endpoint=wanted.endpoint,
        asked=wanted.asked,
        headers=list(passed_on(asked.exchange.headers, asked.dialect)),
        total=len(wanted.requests),
    )
    store = asked.keeper.store.batches
    size = len(data) if wanted.input is None else await _check_file(asked, wanted.input)
    await asked.keeper.check_room(batch.owner, size)
    if wanted.input is not None:
        await asked.keeper.need(store.create(batch, expected=size))
        return batch, size
    await asked.keeper.need(store.create(batch, ready=False))
    try:
        for some in portions(wanted.requests):
            await asked.keeper.need(store.add(batch.owner, batch.id, some))
        await asked.keeper.need(store.open(batch))
    except BaseException:
        with suppress(StoreError):  # it is forgotten by itself, later
            await asked.keeper.within(store.delete(batch.owner, batch.id))
        raise
    return batch, size


def _check(asked: BatchQuery, wanted: BatchRequest) -> None:
    """See whether there is such an endpoint, and whether the requests are not too many.

    Raises:
        WireError: there is none, or they are.
    """
    most = asked.settings.max_requests
    if len(wanted.requests) > most:
        raise WireError("$.requests", f"expected at most {most}, got {len(wanted.requests)}")
    endpoint = endpoint_at(wanted.endpoint)
    if endpoint is None or endpoint.path != wanted.endpoint:
        raise WireError("$.endpoint", "no endpoint for batches; expected a path such as `/v1/chat/completions`")


async def _check_file(asked: BatchQuery, name: str) -> int:
    """See whether there is a file of this id that can be the input of a batch; return its bytes.

    Raises:
        FailureError: there is none.
    """
    batching = asked.dialect.batching
    if batching is None or batching.file_words is None:
        raise FailureError(OFF)
    words, keeper = batching.file_words(), asked.keeper
    file = await keeper.need(keeper.store.files.get(asked.owner, name, keeper.now())) if is_id(name) else None
    if file is None or file.purpose != words.input_purpose:
        raise FailureError(words.not_input(name))
    return file.size


def portions(requests: Sequence[tuple[str, JSONObject]]) -> Iterator[list[BatchRow]]:
    """Yield the requests of a batch, numbered from 1, as many as are kept at once."""
    some: list[BatchRow] = []
    size = 0
    for number, (name, body) in enumerate(requests, 1):
        some.append(BatchRow(number, name, encode_json(body)))
        size += len(some[-1].body)
        if len(some) >= AT_ONCE or size >= BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some
