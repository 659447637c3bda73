"""Upstreams that nobody can reach, or that never answer: an error in time, and the time is the test's own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.matrix.broken import BEGUN, HEARD, anthropic_break, openai_break
from tests.matrix.case import HI
from tests.matrix.matrix_gateway import DIALECTS, PATHS, ManualClockLoop, MatrixGateway, model
from tests.matrix.refusals import REQUEST, anthropic_error, openai_error
from tests.matrix.sdk import MODES, Sdk, sdk
from tests.matrix.test_broken import Pieces, words
from tests.matrix.test_refusals import error_of, raised, without_id
from tests.matrix.upstream import Reply, stream_reply

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator

    from tests.gateway.running_gateway import AccessLines

NOBODY = "connection error: the upstream cannot be reached"
LATE = "connection timed out: the upstream did not answer in time"

UNREACHABLE = {
    "chat": openai_error("InternalServerError", 502, NOBODY, "server_error", "upstream_error"),
    "messages": anthropic_error("InternalServerError", 502, NOBODY, "api_error"),
}
TIMED_OUT = {
    "chat": openai_error("InternalServerError", 504, LATE, "server_error", "timeout"),
    "messages": anthropic_error("GatewayTimeoutError", 504, LATE, "timeout_error"),
}
BROKEN_OFF = {
    "chat": openai_break(LATE, "server_error", "timeout"),
    "messages": anthropic_break(LATE, "timeout_error", request_id=REQUEST),
}


@pytest.fixture(scope="module")
def clocked() -> Generator[MatrixGateway]:
    """Give a gateway whose clock the test pushes on."""
    with MatrixGateway(ManualClockLoop) as matrix_gateway:
        yield matrix_gateway


@pytest.fixture(scope="module")
def late_client(clocked: MatrixGateway, runner: asyncio.Runner) -> Generator[Callable[[str], Sdk]]:
    """Give a function that returns the SDK of a dialect, calling at the gateway with the clock."""
    clients = {dialect: sdk(dialect, "sync", clocked.url, runner) for dialect in DIALECTS}
    yield clients.__getitem__
    for one in clients.values():
        one.close()


@pytest.fixture
def caller() -> Generator[ThreadPoolExecutor]:
    """Give a thread to call in, while the test's own thread lets time pass."""
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_nobody_there(  # noqa: PLR0913, PLR0917  four axes, and what they need
    speaks: str, upstream: str, mode: str, way: str, client: Callable[..., Sdk], lines: AccessLines
) -> None:
    """U01: the connection is refused."""
    call = getattr(client(speaks, mode), way)
    error = raised(lambda: call(model=f"gone-{model(upstream)}", **HI[speaks]))
    assert without_id(error_of(error), lines.next()["request"]) == UNREACHABLE[speaks]


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_no_first_byte(  # noqa: PLR0913, PLR0917  the axes, and what they need
    speaks: str,
    upstream: str,
    clocked: MatrixGateway,
    late_client: Callable[[str], Sdk],
    caller: ThreadPoolExecutor,
    lines: AccessLines,
) -> None:
    """U10: ten minutes without a word."""
    clocked.upstreams[upstream].forget()
    clocked.upstreams[upstream].script(Reply(ending="silent"))
    error = caller.submit(raised, lambda: late_client(speaks).create(model=model(upstream), **HI[speaks]))
    clocked.upstreams[upstream].wait_for_request()
    clocked.advance(600)
    assert without_id(error_of(error.result()), lines.next()["request"]) == TIMED_OUT[speaks]
    assert clocked.upstreams[upstream].wait_for_disconnect() == PATHS[upstream]


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_a_stream_that_falls_silent(
    speaks: str, upstream: str, clocked: MatrixGateway, late_client: Callable[[str], Sdk], lines: AccessLines
) -> None:
    """U12: five minutes between two words; what came is kept, and the end is an error."""
    clocked.upstreams[upstream].forget()
    clocked.upstreams[upstream].script(stream_reply(BEGUN[upstream], "open"))
    pieces = Pieces(lambda: clocked.advance(300))
    error = raised(lambda: late_client(speaks).gather(pieces, model=model(upstream), **HI[speaks]))
    assert without_id(error_of(error), lines.next()["request"]) == BROKEN_OFF[speaks]
    assert words(pieces) == HEARD
    assert clocked.upstreams[upstream].wait_for_disconnect() == PATHS[upstream]
