"""The file that is a batch's input: its lines, whether each is a request, and what is wrong where one is not."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.batch_lines import BadLineError, decode_line, text_of
from xenoglot.backends.offload import offload
from xenoglot.codec.features.batch import MAX_INPUT_ERRORS, BatchInputError
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.batches.endpoints import AT_ONCE, BYTES_AT_ONCE
from xenoglot.gateway.media.file_content import content
from xenoglot.store.batches import BatchRow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from xenoglot.backends.batch_lines import BatchLine
    from xenoglot.codec.features.batch import Batch
    from xenoglot.gateway.store_service import StoreService

BLANKS = 10
"""Maximum of a file's lines, as a multiple of its requests: blank lines cost time, too."""

GONE = BatchInputError(code="file_not_found", message="the input file is not there any more", param="input_file_id")
EMPTY = BatchInputError(code="empty_file", message="the input file has no request in it", param="input_file_id")


class Inputs:
    """Reads the requests of a batch out of its file; `most` is how many there may be, `longest` how long a line."""

    def __init__(self, batch: Batch, most: int, longest: int) -> None:
        self.count = 0
        self.mistakes: list[BatchInputError] = []
        self.hopeless = False
        """Whether it makes no sense to read on."""
        self._batch = batch
        self._most = most
        self._longest = longest
        self._seen: dict[str, int] = {}

    def read(self, data: bytes, number: int) -> BatchRow | None:
        """Return the request in a line; `None` where there is none: a blank line, or a mistake."""
        text = text_of(data, number)
        self.count += bool(text)
        if self.count > self._most or number > self._most * BLANKS:
            self.hopeless = True
            most = f"{self._most} requests" if self.count > self._most else f"{self._most * BLANKS} lines"
            self._mistake("too_many_tasks", f"the file has more than {most}", None)
            return None
        if not text:
            return None
        try:
            line = self._decode(text, number)
        except BadLineError as error:
            param = error.path.removeprefix("$").removeprefix(".") or None
            self._mistake(error.code, error.problem, number, param)
            return None
        return BatchRow(number, line.custom_id, encode_json(line.body))

    def _decode(self, text: bytes, number: int) -> BatchLine:
        """Return what a line asks, if that belongs into this batch.

        Raises:
            BadLineError: it does not.
        """
        if len(text) > self._longest:
            self.hopeless = True
            raise BadLineError(number, "line_too_long", "$", f"is longer than {self._longest} bytes")
        line = decode_line(text, number)
        if line.style != "addressed":
            raise BadLineError(line.number, "missing_required_parameter", "$.url", "required, expected str")
        if line.endpoint.path != self._batch.endpoint:
            raise BadLineError(line.number, "url_mismatch", "$.url", "is not the `endpoint` of the batch")
        first = self._seen.setdefault(line.custom_id, line.number)
        if first != line.number:
            problem = f"line {first} has this id: each needs one of its own"
            raise BadLineError(line.number, "duplicate_custom_id", "$.custom_id", problem)
        return line

    def _mistake(self, code: str, message: str, number: int | None, param: str | None = None) -> None:
        self.mistakes.append(BatchInputError(code=code, message=message, line=number, param=param))
        self.hopeless = self.hopeless or len(self.mistakes) >= MAX_INPUT_ERRORS


async def read_input(keeper: StoreService, batch: Batch, most: int, longest: int) -> Batch:
    """Keep the requests that stand in the file of a batch, from the beginning; return it with what is known now.

    Raises:
        StoreError: the store fails.
        FailureError: the same.
    """
    store = keeper.store.batches
    await keeper.within(store.clear(batch.owner, batch.id))
    file = await keeper.within(keeper.store.files.get(batch.owner, str(batch.asked["input_file_id"]), keeper.now()))
    if file is None:
        return replace(batch, mistakes=[GONE])
    inputs = Inputs(batch, most, longest)
    some: list[BatchRow] = []
    number = size = held = 0
    async with aclosing(content(keeper, file)) as pieces, aclosing(_lines(pieces, longest)) as lines:
        async for data in lines:
            number += 1
            size += len(data)
            request = await offload(len(data), partial(inputs.read, data, number))
            if inputs.hopeless:
                return replace(batch, mistakes=inputs.mistakes)
            if request is not None and not inputs.mistakes:
                some.append(request)
                held += len(request.body)
            if len(some) >= AT_ONCE or held >= BYTES_AT_ONCE:
                await keeper.within(store.add(batch.owner, batch.id, some))
                some, held = [], 0
            elif number % AT_ONCE == 0:
                await asyncio.sleep(0)  # others are waiting
    if size != file.size:  # it went while it was read
        return replace(batch, mistakes=[GONE])
    await keeper.within(store.add(batch.owner, batch.id, some))
    mistakes = inputs.mistakes or ([] if inputs.count else [EMPTY])
    return replace(batch, total=inputs.count, mistakes=mistakes)


async def _lines(pieces: AsyncIterator[bytes], longest: int) -> AsyncGenerator[bytes]:
    """Yield lines with their ends; a line that is too long is cut just above the limit, and is the last."""
    begun = bytearray()
    async for piece in pieces:
        start = 0
        while (end := piece.find(b"\n", start) + 1) > 0:
            yield bytes(begun + piece[start:end])
            begun.clear()
            start = end
        begun += piece[start:]
        if len(begun) > longest:
            break
    if begun:
        yield bytes(begun)
