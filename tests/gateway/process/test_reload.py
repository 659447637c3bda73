"""K14, K12, K13: the gateway exchanged for another in flight, and the end of all that is under way."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from tests.backends.raw_server import advance, becomes, leakless, turns
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import CHAT, FIRST_EVENTS, HELLO, BlockingBackend
from tests.gateway.server_on_loop import HEALTH, HEALTHY, ServerOnLoop, post_bytes, serve_on_loop
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.discovery import FoundConfig
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import KeySettings, ServerSettings
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.reload import FileSource, Reloader
from xenoglot.gateway.process.shared_resources import SharedResources
from xenoglot.model.events import BlockEnded, Finished
from xenoglot.model.response import Finish
from xenoglot.store.ledger import audit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.load import Config
    from xenoglot.store.sqlite import Memory

PATH = "/v1/chat/completions"
READY = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
ENDING = (BlockEnded(), Finished(finish=Finish(reason="stop")))


class RecordingSource:
    """A source that says what it was told last; `closed` are the backends that were let go of."""

    path = None

    def __init__(self, config: Config, backend: Backend) -> None:
        self.config: Config | ConfigurationError = config
        self.backend = backend
        self.closed: list[Backend] = []

    def load(self, *, host: str | None = None, port: int | None = None) -> Config:
        """Say it."""
        if isinstance(self.config, ConfigurationError):
            raise self.config
        server = self.config.server
        return replace(self.config, server=replace(server, host=host or server.host, port=port or server.port))

    @asynccontextmanager
    async def assemble(self, config: Config) -> AsyncGenerator[Gateway]:
        """Put a gateway together."""
        backend = self.backend
        yield Gateway(config, {"scripted": backend})
        self.closed.append(backend)


@asynccontextmanager
async def reloading(backend: Backend, config: Config) -> AsyncIterator[tuple[ServerOnLoop, RecordingSource, Reloader]]:
    """Serve, and be ready to reload."""
    told = RecordingSource(config, backend)
    async with serve_on_loop(backend, config) as stage:
        reloader = Reloader(stage.server, told, told.assemble, AsyncExitStack())
        try:
            yield stage, told, reloader
        finally:
            await reloader.aclose()


async def done(reloader: Reloader) -> None:
    """Reload, and wait until that is done."""
    reloader.reload()
    assert reloader._task is not None
    await reloader._task


@leakless
async def test_k14_what_is_under_way_keeps_the_old_gateway() -> None:
    old, new = BlockingBackend(FIRST_EVENTS, ENDING), Scripted(HELLO)
    async with reloading(old, config_for("scripted")) as (stage, told, reloader):
        stream = await stage.connect()
        stream.send(post_bytes(PATH, {**CHAT, "stream": True}, "Connection: close"))
        await stream.read_until(b"Hel")
        told.backend = new
        await done(reloader)
        first = stage.server.former
        assert len(first) == 1
        other = await stage.connect()
        other.send(post_bytes(PATH, CHAT))
        assert b"Hello" in await other.read_until(b'"usage"')
        assert old._resumed is not None
        old._resumed.set_result(None)
        assert (await stream.read_to_end()).endswith(b"0\r\n\r\n")
        await becomes(set(), lambda: stage.server.former)
        assert len(new.requests) == 1
        await done(reloader)
        await becomes([new], lambda: told.closed)


@leakless
async def test_k14_an_invalid_file_changes_nothing_and_tells_every_mistake(caplog: pytest.LogCaptureFixture) -> None:
    async with reloading(Scripted(HELLO), config_for("scripted")) as (stage, told, reloader):
        before = stage.server.application
        with pytest.raises(ConfigurationError) as caught:
            check({"server": {"port": "x"}, "zzz": 1}, {}, "the file")
        told.config = caught.value
        await done(reloader)
        assert stage.server.application is before
    assert caplog.messages[-1] == f"configuration not reloaded: {caught.value}"
    assert [line.split(":")[0].strip() for line in str(caught.value).splitlines()] == ["the file", "server.port", "zzz"]


@leakless
async def test_k14_a_revoked_key_opens_nothing_from_then_on() -> None:
    def keyed(*names: str) -> Config:
        return config_for("scripted", keys=KeySettings(env=names), secrets=Secrets({"A": "key-a", "B": "key-b"}))

    def asked(key: str) -> bytes:
        return post_bytes(PATH, CHAT, f"x-api-key: {key}", "Connection: close")

    async with reloading(Scripted(HELLO), keyed("A", "B")) as (stage, told, reloader):
        kept = await stage.connect()
        kept.send(post_bytes(PATH, CHAT, "x-api-key: key-b"))
        await kept.read_until(b'"usage"')
        told.config = keyed("A")
        await done(reloader)
        assert (await kept.exchange(asked("key-b"))).partition(b"HTTP/1.1 ")[2].startswith(b"401 ")
        assert (await stage.exchange(asked("key-a"))).startswith(b"HTTP/1.1 200 ")


@leakless
async def test_k14_what_cannot_be_changed_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with reloading(Scripted(HELLO), config_for("scripted")) as (stage, told, reloader):
        told.config = config_for("scripted", server=ServerSettings(port=9999, workers=3, ping_interval=2.0))
        await done(reloader)
        server = stage.server.application.config.server
        assert (server.port, server.workers, server.ping_interval) == (8080, 1, 2.0)
    told_of = [line for line in caplog.messages if line.startswith("server.")]
    assert told_of == [
        "server.port: stays 8080 until the gateway is restarted",
        "server.workers: stays 1 until the gateway is restarted",
    ]


@leakless
async def test_k14_the_numbers_go_on() -> None:
    async with reloading(Scripted(HELLO), config_for("scripted")) as (stage, _, reloader):
        client = await stage.connect()
        client.send(HEALTH)
        await client.read_until(HEALTHY)
        await done(reloader)
        client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await client.read_until(b'requests_total{route="/health",status="200"} 1\n')


@leakless
async def test_k14_what_is_configured_alike_is_shared() -> None:
    shelf = SharedResources()
    plain = {
        "upstreams": {"main": {"dialect": "chat", "base_url": "http://upstream.invalid"}},
        "store": {"url": "memory"},
    }
    other = {**plain, "store": {"url": "memory", "max_age_days": 1.0}, "limits": {"output_tokens": 7}}
    async with AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(build_gateway(check(said, {}, "the test"), shelf=shelf))
            for said in (plain, plain, other)
        ]
        assert gateways[0].keeper is gateways[1].keeper
        assert gateways[0].keeper is not gateways[2].keeper
        assert gateways[0].limiter is gateways[2].limiter
    assert shelf._things == {}


class Working:
    """A job in the background that is over when the test says so."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def wait(self) -> None:
        """Wait for that."""
        await self.over.wait()


@leakless
async def test_k14_a_gateway_is_not_over_before_the_work_that_its_last_request_began() -> None:
    backend = BlockingBackend(FIRST_EVENTS, ENDING)
    async with reloading(backend, config_for("scripted")) as (stage, told, reloader):
        client = await stage.connect()
        client.send(post_bytes(PATH, {**CHAT, "stream": True}, "Connection: close"))
        await client.read_until(b"Hel")
        await done(reloader)
        (former,) = stage.server.former
        assert former.keeper is not None
        job = Working()
        former.keeper.jobs["", "begun by the request"] = job  # type: ignore[assignment]  # as much of one as is looked at
        assert backend._resumed is not None
        backend._resumed.set_result(None)
        await client.read_to_end()
        await turns(100)
        assert (told.closed, stage.server.former) == ([], {former})
        former.keeper.jobs.clear()
        job.over.set()
        await becomes(set(), lambda: stage.server.former)


@leakless
async def test_k14_ten_signals_in_a_row_are_one_reload_and_those_in_its_midst_another(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reloading(Scripted(HELLO), config_for("scripted")) as (stage, told, reloader):
        stormy = iter([10])

        def load(*, host: str | None = None, port: int | None = None) -> Config:
            for _ in range(next(stormy, 0)):
                reloader.reload()
            return RecordingSource.load(told, host=host, port=port)

        monkeypatch.setattr(told, "load", load)
        for _ in range(10):
            reloader.reload()
        assert reloader._task is not None
        await reloader._task
        await becomes(set(), lambda: stage.server.former)
    assert caplog.messages.count("configuration reloaded") == 2


def test_a_file_that_was_found_needs_trust_again_after_a_change(tmp_path: Path) -> None:
    file = tmp_path / "xenoglot.toml"
    environ = {"HOME": str(tmp_path)}
    file.write_text('[upstreams.a]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9"\n')
    found, named = FileSource(str(file), environ, found=FoundConfig(file, local=True)), FileSource(str(file), environ)
    assert found.load().upstreams == named.load().upstreams
    file.write_text('[upstreams.a]\ndialect = "chat"\nbase_url = "https://elsewhere.example"\n')
    with pytest.raises(ConfigurationError, match="is not trusted"):
        found.load()
    assert named.load().upstreams["a"].base_url == "https://elsewhere.example"


@leakless
async def test_k14_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "xenoglot.toml"
    said = (
        '[upstreams.scripted]\ndialect = "chat"\nbase_url = "http://upstream.invalid"\n[server]\nping_interval = {}\n'
    )
    file.write_text(said.format(3.0))
    source = FileSource(str(file), {})
    told = RecordingSource(source.load(), Scripted(HELLO))
    async with serve_on_loop(told.backend, source.load()) as stage:
        reloader = Reloader(stage.server, source, told.assemble, AsyncExitStack())
        reloader.watch()
        await advance(2.0)
        assert reloader._task is None
        file.write_text(said.format(4.25))
        await advance(2.0)
        await becomes(4.25, lambda: stage.server.application.config.server.ping_interval)
        file.unlink()
        await advance(2.0)
        await becomes(1, lambda: int(reloader._task is None or reloader._task.done()))
        assert stage.server.application.config.server.ping_interval == 4.25
        await reloader.aclose()


@leakless
async def test_without_a_file_there_is_nothing_to_read(caplog: pytest.LogCaptureFixture) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        Reloader(
            stage.server, None, RecordingSource(config_for("s"), Scripted(HELLO)).assemble, AsyncExitStack()
        ).reload()
    assert "there is no configuration file to reload" in caplog.messages


@leakless
async def test_k12_readiness_is_false_from_the_first_signal_and_connections_end_with_their_response() -> None:
    async with serve_on_loop(BlockingBackend(FIRST_EVENTS, ENDING)) as stage:
        idle, begun, busy = [await stage.connect() for _ in range(3)]
        begun.send(READY + READY[:-2])
        assert b'{"status":"ready"}' in await begun.read_until(b'ready"}')
        busy.send(post_bytes(PATH, {**CHAT, "stream": True}))
        await busy.read_until(b"Hel")
        await turns()
        stage.server.stop_accepting()
        assert await idle.read_to_end() == b""
        answer = await begun.exchange(READY[-2:])
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"connection: close\r\n" in answer
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*stage._address)
        stage.server.stop_now()
        rest = await busy.read_to_end()
        assert b"service unavailable: the gateway is being stopped" in rest
        assert not rest.endswith(b"0\r\n\r\n")


@pytest.fixture(autouse=True)
def _captured_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


@leakless
async def test_k14_an_administrator_reloads_and_is_told_the_mistake() -> None:
    async with reloading(Scripted(HELLO), config_for("scripted")) as (stage, told, reloader):
        before = stage.server.application
        before.reload = reloader.reload_now
        request = post_bytes("/admin/v1/reload", {}, "Connection: close")
        good, told.config = told.config, ConfigurationError("the file: no")
        assert b'"message":"configuration not reloaded: the file: no"' in await stage.exchange(request)
        assert (stage.server.application is before, before.replaced) == (True, False)
        told.config = good
        assert (await stage.exchange(request)).endswith(b'{"object":"reload","ok":true}')
        after = stage.server.application
        assert (after is before, before.replaced, after.replaced) == (False, True, False)
        assert after.reload is before.reload
        assert before.keeper is not None
        (entry,) = await cast("Memory", before.keeper.store).read(audit.entries(audit.AuditFilter()))
        assert (entry.actor, entry.action, entry.object) == ("local", "reload", "config")
