"""Pictures by URL: what is never opened, and what of the rest comes back (R21, S12, C20)."""

from __future__ import annotations

import asyncio
import ssl
import tomllib
from base64 import b64decode, b64encode
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.faults.direct_exchange import handle
from tests.gateway.running_gateway import config_for
from xenoglot import dialect_registry as dialects
from xenoglot import testing
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.target import Target
from xenoglot.errors import FailureError
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import FetchSettings, UpstreamSettings
from xenoglot.gateway.media import fetch_image
from xenoglot.gateway.media.fetch_image import BlockedError, ImageFetcher, checked, is_public, kind_of, onward
from xenoglot.gateway.media.inline_images import InlineImageBackend
from xenoglot.testing import Close, Hang, RequestMatcher, Respond, ResponseHead, ScriptRule, Send

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing import Step

CORPUS = tomllib.loads((Path(__file__).parent / "ssrf.toml").read_text(encoding="utf-8"))
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
HOST = "pictures.example"
FETCH_FAILED = "an image given by URL could not be had: send its data instead"


@pytest.mark.parametrize("url", [pytest.param(url, id=f"S12-{n}") for n, url in enumerate(CORPUS["blocked"])])
def test_r21_s12_is_never_opened(url: str) -> None:
    with pytest.raises(BlockedError):
        checked(url, (443,))


@pytest.mark.parametrize("url", CORPUS["opened"])
def test_r21_may_be_opened(url: str) -> None:
    location = checked(url, (443,))
    assert (location.origin.scheme, location.origin.port) == ("https", 443)


def test_r21_s12_addresses() -> None:
    every = [*CORPUS["addresses"]["blocked"], *CORPUS["addresses"]["public"]]
    assert [address for address in every if is_public(address)] == CORPUS["addresses"]["public"]


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b?c=d", "https://pictures.example:443/b?c=d"),
        ("https://other.example/x", "https://other.example/x"),
        *(
            (location, None)
            for location in ("", "//127.0.0.1/", "b.png", "http://pictures.example/", "\\\\127.0.0.1", "?x", "#", " /b")
        ),
    ],
)
def test_s12_where_a_redirect_leads(location: str, url: str | None) -> None:
    if url is None:
        with pytest.raises(BlockedError):
            onward("https://pictures.example:443/a", location)
    else:
        assert onward("https://pictures.example:443/a", location) == url


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"<!DOCTYPE html>", None),
        (b"", None),
        (b"BM", None),
        (b"root:x:0:0", None),
    ],
)
def test_s12_c20_what_is_a_picture(data: bytes, kind: str | None) -> None:
    assert kind_of(data) == kind


# -- fetched from a server that is really there


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Give who signs certificates here."""
    return trustme.CA()


class FakeResolver:
    """A name server: what each name leads to, one answer for each time it is asked; the last one stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.asked: list[str] = []
        self._answers = {name.replace("_", "."): list(answer) for name, answer in answers.items()}

    async def __call__(self, host: str) -> Sequence[str]:
        """Return the addresses of a host."""
        self.asked.append(host)
        answers = self._answers.get(host, [["127.0.0.1"]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


@asynccontextmanager
async def run_fetch(
    authority: trustme.CA,
    monkeypatch: pytest.MonkeyPatch,
    *rules: ScriptRule,
    names: FakeResolver | None = None,
    **settings: object,
) -> AsyncGenerator[tuple[ImageFetcher, testing.Upstream, str]]:
    """Give a fetcher, a server of pictures at an address that is taken for a public one, and the URL of that."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(HOST, "other.example").configure_cert(server)
    authority.configure_trust(client)
    monkeypatch.setattr(fetch_image, "is_public", lambda address: address == "127.0.0.1" or is_public(address))
    async with testing.Upstream(*rules, tls=server) as upstream:
        wanted = FetchSettings(enabled=True, ports=(upstream.port,), **settings)  # type: ignore[arg-type]
        fetcher = ImageFetcher(
            wanted, resolve=names or FakeResolver(), transport=partial(Transport, ssl_context=client)
        )
        try:
            yield fetcher, upstream, f"https://{HOST}:{upstream.port}"
        finally:
            await fetcher.aclose()


def redirect(path: str, location: str, status: int = 302) -> ScriptRule:
    """A page that leads elsewhere."""
    return ScriptRule(steps=(Respond(status, (("location", location),), b""),), when=RequestMatcher(path=path))


def image_at(path: str, *steps: Step) -> ScriptRule:
    """A picture, or what `steps` make."""
    return ScriptRule(
        steps=steps or (Respond(200, (("content-type", "image/png"),), PNG),), when=RequestMatcher(path=path)
    )


async def test_r21_a_picture_is_fetched_once_and_without_any_credential(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_fetch(authority, monkeypatch, image_at("/a.png")) as (fetcher, upstream, url):
        images = await fetcher.images([f"{url}/a.png", f"{url}/a.png"])
    assert {name: (image.data, image.media_type) for name, image in images.items()} == {
        f"{url}/a.png": (b64encode(PNG).decode(), "image/png")
    }
    (received,) = upstream.requests
    assert (received.method, dict(received.headers)) == (
        "GET",
        {
            "host": f"{HOST}:{upstream.port}",
            "accept": "image/png, image/jpeg, image/gif, image/webp",
            "user-agent": "xenoglot",
            "accept-encoding": "identity",
        },
    )


async def test_s12_redirects_are_followed_three_times_each_checked(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [redirect(f"/{n}", f"/{n + 1}", status) for n, status in enumerate((301, 302, 307, 308))]
    async with run_fetch(authority, monkeypatch, *rules, image_at("/4")) as (fetcher, upstream, url):
        images = await fetcher.images([f"{url}/1"])
        with pytest.raises(FailureError, match=FETCH_FAILED):
            await fetcher.images([f"{url}/0"])
    assert len(images) == 1
    assert [received.target for received in upstream.requests] == ["/1", "/2", "/3", "/4", "/0", "/1", "/2", "/3"]


@pytest.mark.parametrize(
    "location",
    [
        "http://pictures.example/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest",
        "//127.0.0.1/",
        "file:///etc/passwd",
    ],
)
async def test_s12_a_redirect_to_what_is_blocked_ends_it(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    async with run_fetch(authority, monkeypatch, redirect("/a", location)) as (fetcher, upstream, url):
        with pytest.raises(FailureError, match=FETCH_FAILED):
            await fetcher.images([f"{url}/a"])
    assert [received.target for received in upstream.requests] == ["/a"]


PRIVATE = [["10.0.0.1"], ["127.0.0.2"], ["8.8.8.8", "192.168.0.1"], ["::1"], ["fe80::1%eth0"], ["::ffff:127.0.0.1"], []]


@pytest.mark.parametrize("addresses", PRIVATE, ids=str)
async def test_s12_a_name_of_a_private_address_is_not_connected_to(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    connected: list[object] = []
    loop = asyncio.get_running_loop()
    names = FakeResolver(pictures_example=[addresses])
    async with run_fetch(authority, monkeypatch, image_at("/a"), names=names) as (fetcher, upstream, url):
        monkeypatch.setattr(loop, "create_connection", lambda *_, **__: connected.append(1))
        with pytest.raises(FailureError, match=FETCH_FAILED):
            await fetcher.images([f"{url}/a"])
    assert (connected, upstream.connections, names.asked) == ([], [], [HOST])


async def test_s12_rebinding_the_address_checked_is_the_one_connected_to(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = FakeResolver(pictures_example=[["127.0.0.1"], ["10.0.0.1"]])
    async with run_fetch(authority, monkeypatch, image_at("/a"), names=names) as (fetcher, upstream, url):
        assert len(await fetcher.images([f"{url}/a"])) == 1
    assert (names.asked, len(upstream.connections)) == ([HOST], 1)


async def test_s12_a_redirect_to_another_name_is_looked_up_and_checked_too(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = FakeResolver(other_example=[["192.168.0.1"]])
    async with run_fetch(authority, monkeypatch, names=names) as (fetcher, upstream, url):
        upstream.script(redirect("/a", f"https://other.example:{upstream.port}/b"))
        with pytest.raises(FailureError, match=FETCH_FAILED):
            await fetcher.images([f"{url}/a"])
    assert names.asked == [HOST, "other.example"]


SECRET = b"root:x:0:0:a-secret-of-the-target"
BROKEN: dict[str, tuple[Step, ...]] = {
    "not-there": (Respond(404, (), SECRET),),
    "fails": (Respond(500, (("x-secret", SECRET.decode()),), SECRET),),
    "no-picture": (Respond(200, (("content-type", "image/png"),), SECRET),),
    "svg": (Respond(200, (("content-type", "image/svg+xml"),), b"<svg>" + SECRET),),
    "too-large": (Respond(200, (), PNG + bytes(5000)),),
    "cut": (Respond(200, (), PNG, length=5000), Close()),
    "no-http": (Send(b"220 " + SECRET + b"\r\n"),),
    "bomb": (Respond(200, (), PNG + bytes(4_000_000), coding="gzip"),),
    "redirect-to-nowhere": (Respond(302, (), SECRET),),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_s12_r21_nothing_of_the_target_is_told(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    rule = image_at("/a", *BROKEN[case])
    async with run_fetch(authority, monkeypatch, rule, max_bytes=1000) as (fetcher, _, url):
        with pytest.raises(FailureError) as caught:
            await fetcher.images([f"{url}/a"])
    failure = caught.value.failure
    assert (failure.kind, failure.message, failure.details) == ("invalid_request", FETCH_FAILED, None)
    assert caught.value.__cause__ is None


async def test_s12_a_server_that_hangs_costs_the_time_that_was_allowed(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = image_at("/a", ResponseHead(200, ()), Hang())
    async with run_fetch(authority, monkeypatch, rule, seconds=0.05) as (fetcher, _, url):
        with pytest.raises(FailureError, match=FETCH_FAILED):
            await fetcher.images([f"{url}/a"])


async def test_s12_the_certificate_has_to_be_the_names(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_fetch(authority, monkeypatch, image_at("/a")) as (fetcher, upstream, _):
        with pytest.raises(FailureError, match=FETCH_FAILED):
            await fetcher.images([f"https://foreign.example:{upstream.port}/a"])
    assert upstream.requests == []


async def test_s12_too_many_pictures_are_not_begun_with() -> None:
    names = FakeResolver()
    fetcher = ImageFetcher(FetchSettings(enabled=True, max_images=2), resolve=names)
    with pytest.raises(FailureError, match="more than 2 images are given by URL"):
        await fetcher.images([f"https://pictures.example/{n}" for n in range(3)])
    assert names.asked == []


# -- through the gateway, from each dialect that has pictures by URL

IMAGES: dict[str, tuple[str, JSONObject, str]] = {
    "chat": ("/v1/chat/completions", {"type": "image_url", "image_url": {"url": "URL"}}, "messages"),
    "messages": ("/v1/messages", {"type": "image", "source": {"type": "url", "url": "URL"}}, "messages"),
    "responses": ("/v1/responses", {"type": "input_image", "image_url": "URL"}, "input"),
}


def request_with_image(client: str, url: str) -> tuple[str, JSONObject]:
    """A request of a client with a picture."""
    path, part, key = IMAGES[client]
    shown = _put(part, url)
    return path, {"model": "m", "max_tokens": 9, key: [{"role": "user", "content": [shown]}]}


def _put(value: JSON, url: str) -> JSON:
    if isinstance(value, dict):
        return {key: _put(item, url) for key, item in value.items()}
    return url if value == "URL" else value


@asynccontextmanager
async def serving(fetcher: ImageFetcher | None) -> AsyncGenerator[tuple[Gateway, testing.Upstream]]:
    """Give a gateway before a server that fetches nothing, and that server."""
    async with testing.Upstream(*testing.answers("chat", text=("Hello",)).rules()) as upstream:
        transport = Transport()
        server = Remote(
            "main", dialects.get("chat"), f"{upstream.url}/v1", transport=transport, target=Target(image_urls=False)
        )
        config = config_for(upstreams={"main": UpstreamSettings(dialect="chat", base_url=f"{upstream.url}/v1")})
        backend = server if fetcher is None else InlineImageBackend(server, fetcher)
        yield Gateway(config, {"main": backend}), upstream
        await transport.aclose()


@pytest.mark.parametrize("client", IMAGES)
async def test_r21_the_server_gets_the_data(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    async with (
        run_fetch(authority, monkeypatch, image_at("/a")) as (fetcher, _, url),
        serving(fetcher) as (gateway, upstream),
    ):
        asked = await handle(gateway, "POST", *request_with_image(client, f"{url}/a"))
    assert (asked.status, asked.response_headers["x-xenoglot-losses"].partition("; ")[0]) == (
        200,
        "$.messages[0].content[0] image emulated (the server fetches none: its data was fetched for it)",
    )
    assert f"data:image/png;base64,{b64encode(PNG).decode()}".encode() in upstream.requests[0].body


@pytest.mark.parametrize("client", IMAGES)
@pytest.mark.parametrize("url", ["https://127.0.0.1/", "http://pictures.example/", "file:///etc/passwd"])
async def test_s12_c20_a_blocked_url_is_a_400_and_goes_nowhere(client: str, url: str) -> None:
    names = FakeResolver()
    async with serving(ImageFetcher(FetchSettings(enabled=True), resolve=names)) as (gateway, upstream):
        asked = await handle(gateway, "POST", *request_with_image(client, url))
    assert (asked.status, names.asked, upstream.requests) == (400, [], [])
    assert "not opened here" in asked.json["error"]["message"]


@pytest.mark.parametrize("client", IMAGES)
async def test_r21_without_leave_nothing_is_fetched(client: str) -> None:
    async with serving(None) as (gateway, upstream):
        asked = await handle(gateway, "POST", *request_with_image(client, "https://pictures.example/a.png"))
    assert (asked.status, "the server fetches no URL" in asked.response_headers["x-xenoglot-losses"]) == (200, True)
    assert b"pictures.example" not in upstream.requests[0].body


def test_r21_it_is_off_unless_it_is_asked_for() -> None:
    assert not check({}, {}, "here").fetch.enabled
    assert check({"fetch": {"enabled": True, "ports": [443, 8443]}}, {}, "here").fetch == FetchSettings(
        enabled=True, ports=(443, 8443)
    )
