"""Faults that leave a request without an answer, as data, and the one way in which all of them are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_view import error_codes, error_status
from tests.faults.manual_clock import advance, wait_until
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.faults.client_view import ReceivedError
    from tests.faults.harness import GatewayHarness
    from tests.faults.raw_client import RawResponse
    from xenoglot.testing.script import ScriptRule, Step

    Made = Callable[[str, bool], Sequence[Step] | ScriptRule]

BOTH, WHOLE, STREAMED = (False, True), (False,), (True,)
OPENAI = ("chat", "completions", "responses")
FAMILIES = (OPENAI, ("llama_stack", "llama_stack_completion"), ("ollama", "ollama_generate"))
NON_RETRYABLE = ("invalid_request", "context_overflow", "billing", "not_found", "conflict", "too_large")
"""Kinds that come again however often a request is sent: clients are told so."""


class Fault(Struct, frozen=True, kw_only=True):
    """What an upstream does, and what its clients hear of it.

    `steps` are of an upstream's dialect, and of whether it streams; `kind` is the failure's; `said` stands in the
    message. `pauses` are seconds that pass, one after another, once the request has come to the upstream; `asks` is
    how often it comes. `unsaid` stands nowhere in the answer.
    """

    name: str
    steps: Made
    kind: str | Callable[[str], str] = "upstream"
    message: str = ""
    hidden: tuple[bytes, ...] = ()
    modes: tuple[bool, ...] = BOTH
    pauses: tuple[float, ...] = ()
    attempts: int = 1
    retry_after: str | None = None
    status: int | None = None
    """The upstream's own status, which clients of its family see as it is."""
    addresses: Sequence[str] | Exception | None = None
    prefix: str = ""
    keeps_connection: bool = False
    """Whether the connection to the upstream may be used again."""

    def kind_at(self, upstream: str) -> str:
        """The failure's kind where the upstream speaks that dialect."""
        return self.kind if isinstance(self.kind, str) else self.kind(upstream)


def every_pair(faults: Iterable[Fault]) -> list[object]:
    """Return every fault at every upstream, for every client, in each of its modes."""
    return [
        case_of(fault, client, upstream, streamed=streamed)
        for fault in faults
        for client, upstream, streamed in product(DIALECTS, DIALECTS, fault.modes)
    ]


def each_dialect(faults: Iterable[Fault]) -> list[object]:
    """Return every fault for every client at one upstream, and at every upstream for one client, in each mode."""
    pairs = dict.fromkeys([(client, "chat") for client in DIALECTS] + [("messages", name) for name in DIALECTS])
    return [
        case_of(fault, client, upstream, streamed=streamed)
        for fault in faults
        for (client, upstream), streamed in product(pairs, fault.modes)
    ]


def case_of(fault: Fault, client: str, upstream: str, *, streamed: bool) -> object:
    """Return the parameters of one case."""
    mode = "streamed" if streamed else "whole"
    return pytest.param(fault, client, upstream, streamed, id=f"{fault.name}-{client}-to-{upstream}-{mode}")


def mode_of(value: object) -> str | None:
    """Return the name of a mode in a test's id."""
    return None if not isinstance(value, bool) else "streamed" if value else "whole"


async def assert_fault_refused(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> tuple[RawResponse, ReceivedError]:
    """Play a fault before the first word; return what the client got, which is an error of the right kind."""
    made = fault.steps(upstream, streamed)
    harness.upstream.script(made)
    if fault.addresses is not None:
        harness.addresses = fault.addresses
    raw_client = await harness.start_request(client, f"{fault.prefix}{upstream}-small", streamed=streamed)
    if fault.pauses:
        await harness.wait_for_upstream_requests(fault.attempts)
    for pause in fault.pauses:
        assert not raw_client.finished, raw_client.response()
        await advance(pause)
    answer = await harness.read_response(raw_client)
    kind = fault.kind_at(upstream)
    words, status = error_codes(client, kind), error_status(client, kind)
    overloaded = client == "messages" and fault.kind_at(upstream) == "overloaded"  # 529, whatever it was (U38)
    if fault.status is not None and are_related(client, upstream) and not overloaded:
        words, status = (fault.status, *words[1:]) if words[:1] == (status,) else words, fault.status
    told = assert_refused(client, answer, words, status)
    assert fault.message in told.message, told
    assert not any(word in answer.raw for word in fault.hidden), answer.raw
    assert answer.headers.get("retry-after") == fault.retry_after
    line = harness.access_log_line()
    assert (line["status"], line["finish"], line["failure"]) == (answer.status, None, kind)
    assert len(harness.upstream.requests) == fault.attempts
    if not fault.keeps_connection:
        await wait_until_disconnected(harness)
    return answer, told


def are_related(client: str, upstream: str) -> bool:
    """Whether both dialects have their errors in common."""
    return client == upstream or any({client, upstream} <= {*family} for family in FAMILIES)


async def wait_until_disconnected(harness: GatewayHarness) -> None:
    """Wait until the upstream has seen all connections end."""
    await wait_until(lambda: all(one.closed is not None for one in harness.upstream.connections), "connections end")


async def assert_next_request_completes(harness: GatewayHarness, client: str, upstream: str) -> None:
    """Assert that the next request is answered as if nothing had been."""
    harness.addresses = ("127.0.0.1",)
    harness.upstream.script(valid_response(upstream, streamed=False))
    answer = await harness.request(client, f"{upstream}-small", streamed=False)
    assert_completed(client, answer, streamed=False)
    assert len(harness.access_log.lines) == 2, harness.access_log.lines
