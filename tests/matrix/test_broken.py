"""Streams that break off: every SDK raises, after it gave out what came, and never takes the rest for an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.matrix.broken import BREAKS, HEARD, OVERLOADED, Break, error_frame
from tests.matrix.case import HELLO, HI, stream_body
from tests.matrix.matrix_gateway import DIALECTS, MatrixGateway, model
from tests.matrix.sdk import MODES, Sdk
from tests.matrix.test_refusals import error_of, raised, without_id
from tests.matrix.upstream import stream_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON

PARAMETERS = [
    pytest.param(broken, (speaks, upstream), mode, id=f"{broken.name}-{speaks}-to-{upstream}-{mode}")
    for broken in BREAKS
    for speaks in DIALECTS
    for upstream in broken.answered
    for mode in MODES
]


def words(pieces: list[JSON]) -> str:
    """Return the text in the pieces of a stream, whatever its dialect."""
    deltas = [piece.get("delta") or (piece.get("choices") or [{}])[0].get("delta") or {} for piece in pieces]
    return "".join(delta.get("text") or delta.get("content") or "" for delta in deltas)


class Pieces(list["JSON"]):
    """The pieces of a stream; `then` is called whenever a word is here."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self._then = then

    def append(self, piece: JSON) -> None:
        """Take a piece."""
        super().append(piece)
        if words([piece]):
            self._then()


@pytest.mark.parametrize(("broken", "pair", "mode"), PARAMETERS)
def test_a_broken_stream(  # noqa: PLR0913, PLR0917  three axes, and what they need
    broken: Break,
    pair: tuple[str, str],
    mode: str,
    matrix_gateway: MatrixGateway,
    client: Callable[..., Sdk],
    lines: AccessLines,
) -> None:
    speaks, upstream = pair
    matrix_gateway.upstreams[upstream].script(broken.answered[upstream])
    pieces = Pieces(matrix_gateway.upstreams[upstream].resume)
    sdk = client(speaks, mode)
    error = raised(lambda: sdk.gather(pieces, model=model(upstream), **HI[speaks]))
    line = lines.next()
    assert words(pieces) == HEARD
    assert without_id(error_of(error), line["request"]) == broken.raised[pair]
    assert (line["status"], line["finish"], line["failure"] is None) == (200, None, False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_an_error_before_the_first_word_has_a_status(
    speaks: str, upstream: str, mode: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk]
) -> None:
    """What the client has nothing of yet it can ask again: the classes of errors with a status tell it so."""
    matrix_gateway.upstreams[upstream].script(stream_reply(error_frame(upstream, OVERLOADED[upstream])))
    error = raised(lambda: client(speaks, mode).iterate(model=model(upstream), **HI[speaks]))
    said = 529  # by Messages' own custom, and by the code in the error of this server of Chat
    assert error_of(error)["status"] == (503 if (speaks, upstream) == ("chat", "messages") else said)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_a_cut_after_the_end_is_no_cut(  # noqa: PLR0913, PLR0917  three axes, and what they need
    speaks: str, upstream: str, mode: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk], lines: AccessLines
) -> None:
    body = stream_body(upstream, HELLO[upstream].stream)
    matrix_gateway.upstreams[upstream].script(stream_reply(body, "cut"))
    pieces = client(speaks, mode).iterate(model=model(upstream), **HI[speaks])
    line = lines.next()
    assert words(pieces) == "Hello"
    assert (line["status"], line["finish"], line["failure"]) == (200, "stop", None)
