"""U05: upstreams whose TLS is not in order are not spoken to, least of all without it."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_view import error_codes, error_status
from tests.faults.fault_cases import Fault, each_dialect
from tests.faults.harness import HOST, GatewayHarness
from tests.faults.upstream_steps import valid_response
from xenoglot.testing.script import Close, Receive, Reset, Send
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator

GOOD, EXPIRED, OTHER_NAME, UNKNOWN, RESET, PLAIN = (f"127.0.1.{number}" for number in range(1, 7))
FAULTS = {
    "U05-expired": EXPIRED,
    "U05-of-another-name": OTHER_NAME,
    "U05-of-an-unknown-authority": UNKNOWN,
    "U05-reset-in-the-handshake": RESET,
    "U05-no-tls-at-all": PLAIN,
}


def tls_upstream(authority: trustme.CA, name: str = HOST, until: datetime | None = None) -> ssl.SSLContext:
    """Return what a server with such a certificate speaks with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, not_after=until).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def tls_harness() -> Generator[GatewayHarness]:
    """Give a harness behind which stand servers with all sorts of certificates."""
    authority = trustme.CA()
    trust = ssl.create_default_context()
    trust.set_alpn_protocols(["http/1.1"])
    authority.configure_trust(trust)
    past = datetime(2020, 1, 2, tzinfo=UTC)
    secure = {
        GOOD: Upstream(host=GOOD, tls=tls_upstream(authority)),
        EXPIRED: Upstream(host=EXPIRED, tls=tls_upstream(authority, until=past)),
        OTHER_NAME: Upstream(host=OTHER_NAME, tls=tls_upstream(authority, "elsewhere.test")),
        UNKNOWN: Upstream(host=UNKNOWN, tls=tls_upstream(trustme.CA())),
        RESET: Upstream(host=RESET, greeting=(Receive(), Reset())),
        PLAIN: Upstream(host=PLAIN, greeting=(Receive(), Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close())),
    }
    with ExitStack() as stack:
        yield GatewayHarness(trust=trust, tls_upstreams=secure).start(stack)


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    each_dialect([Fault(name=name, steps=lambda *_: (), addresses=(address,)) for name, address in FAULTS.items()]),
)
def test_no_word_is_said(
    tls_harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    harness = tls_harness

    async def scenario() -> None:
        assert fault.addresses is not None
        harness.addresses = fault.addresses
        answer = await harness.request(client, f"tls-{upstream}-small", streamed=streamed)
        told = assert_refused(client, answer, error_codes(client, "upstream"), error_status(client, "upstream"))
        assert told.message == "the upstream's certificate or TLS handshake was refused"
        assert [one.requests for one in harness.tls_upstreams.values()] == [[]] * len(harness.tls_upstreams)
        assert harness.access_log_line()["tries"] == 1
        harness.addresses = (GOOD,)
        harness.tls_upstreams[GOOD].script(valid_response(upstream, streamed=streamed))
        assert_completed(
            client, await harness.request(client, f"tls-{upstream}-small", streamed=streamed), streamed=streamed
        )

    harness.run(scenario())
