"""U05: upstreams whose TLS is not in order are not spoken to, least of all without it."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.faults.cases import Fault, each
from tests.faults.heard import status_of, words_of
from tests.faults.house import HOST, House, fine, refused, well
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


def speaking(authority: trustme.CA, name: str = HOST, until: datetime | None = None) -> ssl.SSLContext:
    """Return what a server with such a certificate speaks with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, not_after=until).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def tls_house() -> Generator[House]:
    """Give a house behind which stand servers with all sorts of certificates."""
    authority = trustme.CA()
    trust = ssl.create_default_context()
    trust.set_alpn_protocols(["http/1.1"])
    authority.configure_trust(trust)
    past = datetime(2020, 1, 2, tzinfo=UTC)
    secure = {
        GOOD: Upstream(host=GOOD, tls=speaking(authority)),
        EXPIRED: Upstream(host=EXPIRED, tls=speaking(authority, until=past)),
        OTHER_NAME: Upstream(host=OTHER_NAME, tls=speaking(authority, "elsewhere.test")),
        UNKNOWN: Upstream(host=UNKNOWN, tls=speaking(trustme.CA())),
        RESET: Upstream(host=RESET, greeting=(Receive(), Reset())),
        PLAIN: Upstream(host=PLAIN, greeting=(Receive(), Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close())),
    }
    with ExitStack() as stack:
        yield House(trust=trust, secure=secure).start(stack)


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    each([Fault(name=name, steps=lambda *_: (), addresses=(address,)) for name, address in FAULTS.items()]),
)
def test_no_word_is_said(tls_house: House, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    house = tls_house

    async def scene() -> None:
        assert fault.addresses is not None
        house.addresses = fault.addresses
        answer = await house.ask(client, f"tls-{upstream}-small", streamed=streamed)
        told = refused(client, answer, words_of(client, "upstream"), status_of(client, "upstream"))
        assert told.message == "the upstream's certificate or TLS handshake was refused"
        assert [one.requests for one in house.secure.values()] == [[]] * len(house.secure)
        assert house.line()["tries"] == 1
        house.addresses = (GOOD,)
        house.secure[GOOD].script(well(upstream, streamed=streamed))
        fine(client, await house.ask(client, f"tls-{upstream}-small", streamed=streamed), streamed=streamed)

    house.play(scene())
