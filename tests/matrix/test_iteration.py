"""Every piece of a stream as the SDKs give it out, between every two dialects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.matrix.case import HI, Case
from tests.matrix.matrix_gateway import DIALECTS, MatrixGateway, model
from tests.matrix.pieces import PIECES, TO_CHAT
from tests.matrix.sdk import MODES, Sdk
from tests.matrix.test_matrix import CASES, pinned, reply

if TYPE_CHECKING:
    from collections.abc import Callable

ITERATED = {case.name: case for case in CASES if case.name in {name for name, _ in PIECES}}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("case", "pair"), [pytest.param(ITERATED[name], pair, id=f"{name}-{'-to-'.join(pair)}") for name, pair in PIECES]
)
def test_pieces_across(
    case: Case, pair: tuple[str, str], mode: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk]
) -> None:
    speaks, upstream = pair
    before = time.time()
    matrix_gateway.upstreams[upstream].script(reply(case, upstream, "streamed"))
    options = {"stream_options": {"include_usage": True}} if speaks == "chat" else {}
    pieces = client(speaks, mode).iterate(model=model(upstream), **case.asked[speaks], **options)
    assert [pinned(piece, before) for piece in pieces] == PIECES[case.name, pair]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("case", "dialect"),
    [
        pytest.param(case, dialect, id=f"{name}-{dialect}")
        for name, case in ITERATED.items()
        for dialect in DIALECTS
        if dialect in case.answered
    ],
)
def test_pieces_at_home(
    case: Case, dialect: str, mode: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk]
) -> None:
    upstream = matrix_gateway.upstreams[dialect]
    heard = []
    for url in (matrix_gateway.url, upstream.url):
        upstream.script(reply(case, dialect, "streamed"))
        # Who does not ask for usage gets no chunk of it, though the upstream is asked for it (pitfall 101, below).
        asked = {"stream_options": {"include_usage": True}} if dialect == "chat" else {}
        heard.append(client(dialect, mode, url).iterate(model=model(dialect), **HI[dialect], **asked))
    assert heard[0] == heard[1]
    first, second = upstream.received()
    assert first.body == second.body


def test_usage_is_for_those_who_asked_pitfall_101(matrix_gateway: MatrixGateway, client: Callable[..., Sdk]) -> None:
    """The upstream is asked all the same; a client that did not ask gets no chunk without a choice."""
    matrix_gateway.upstreams["messages"].script(reply(ITERATED["text"], "messages", "streamed"))
    asked = PIECES["text", TO_CHAT]
    before = time.time()
    pieces = client("chat", "sync").iterate(model=model("messages"), **HI["chat"])
    without = [{key: value for key, value in piece.items() if key != "usage"} for piece in asked if piece["choices"]]
    assert [pinned(piece, before) for piece in pieces] == without
