"""The clients that are measured, each in a process of its own that loads no other: `python -m bench.clients NAME`.

Such a process reads `Task`s from its standard input, a line of JSON each, and writes what each took to its output.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

KEY: Final = "sk-bench"


class Site(NamedTuple):
    """Where a client asks, and the bodies of the same request as both dialects write it."""

    url: str
    chat: dict[str, Any]
    messages: dict[str, Any]


class Task(NamedTuple):
    """What a process does: so many answers, so many of them at once, whole or streamed."""

    stream: bool
    answers: int
    at_once: int


class Took(NamedTuple):
    """What it took: microseconds of this process on a processor, and the requests or tokens that they were for."""

    cpu_us: float
    units: int


class Awaited(NamedTuple):
    """An asynchronous client: one whole answer, and the events with words in them of one that streams."""

    whole: Callable[[], Awaitable[object]]
    streamed: Callable[[], Awaitable[int]]


class Blocking(NamedTuple):
    """The same of a client that blocks."""

    whole: Callable[[], object]
    streamed: Callable[[], int]


def _xenoglot(dialect: str) -> Callable[[Site], Awaited]:
    def make(site: Site) -> Awaited:
        import xenoglot  # noqa: PLC0415  a process has its own client in it, and no other

        client = xenoglot.AsyncClient(**_upstream(site, dialect))
        return _canonical(client, site)

    return make


def _canonical(client: Any, site: Site) -> Awaited:  # noqa: ANN401  its class is loaded where it is measured
    from xenoglot.model.events import TextDelta  # noqa: PLC0415  as above

    messages, options = site.chat["messages"], _options(site)

    async def whole() -> object:
        return (await client.complete(messages, **options)).text

    async def streamed() -> int:
        async with client.stream(messages, **options) as stream:
            return sum([1 async for event in stream if isinstance(event, TextDelta)])

    return Awaited(whole, streamed)


def _xenoglot_blocking(dialect: str) -> Callable[[Site], Blocking]:
    def make(site: Site) -> Blocking:
        import xenoglot  # noqa: PLC0415  as above
        from xenoglot.model.events import TextDelta  # noqa: PLC0415

        client = xenoglot.Client(**_upstream(site, dialect))
        messages, options = site.chat["messages"], _options(site)

        def streamed() -> int:
            with client.stream(messages, **options) as stream:
                return sum(isinstance(event, TextDelta) for event in stream)

        return Blocking(lambda: client.complete(messages, **options).text, streamed)

    return make


def _xenoglot_raw(site: Site) -> Awaited:
    import xenoglot  # noqa: PLC0415  as above

    client = xenoglot.AsyncClient(**_upstream(site, "chat"))

    async def streamed() -> int:
        async with client.raw_stream(site.chat) as stream:
            return sum([1 async for event in stream if _has_words(event)])

    return Awaited(lambda: client.raw(site.chat), streamed)


def _has_words(chunk: dict[str, Any]) -> bool:
    return bool(chunk["choices"] and chunk["choices"][0]["delta"].get("content"))


def _scripted(site: Site) -> Awaited:
    """Return the client before a backend in its own process: what it costs without a connection or a dialect."""
    import xenoglot  # noqa: PLC0415  as above
    from xenoglot.backends.scripted import Scripted  # noqa: PLC0415
    from xenoglot.model import events  # noqa: PLC0415
    from xenoglot.model.content import Text  # noqa: PLC0415
    from xenoglot.model.response import Finish  # noqa: PLC0415

    words = [events.TextDelta(text=" token")] * PIECES
    opened: tuple[events.Event, ...] = (events.Started(id="1", model="m"), events.BlockStarted(part=Text(text="")))
    turn = (*opened, *words, events.BlockEnded(), events.Finished(finish=Finish(reason="stop")))
    return _canonical(xenoglot.AsyncClient(Scripted(turn), model="m"), site)


def _openai(site: Site) -> Awaited:
    from openai import AsyncOpenAI  # noqa: PLC0415  as above

    client = AsyncOpenAI(base_url=f"{site.url}/v1", api_key=KEY)

    async def streamed() -> int:
        chunks = await client.chat.completions.create(**site.chat, stream=True)
        return sum([1 async for chunk in chunks if chunk.choices and chunk.choices[0].delta.content])

    return Awaited(lambda: client.chat.completions.create(**site.chat), streamed)


def _openai_blocking(site: Site) -> Blocking:
    from openai import OpenAI  # noqa: PLC0415  as above

    client = OpenAI(base_url=f"{site.url}/v1", api_key=KEY)

    def streamed() -> int:
        chunks = client.chat.completions.create(**site.chat, stream=True)
        return sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks)

    return Blocking(lambda: client.chat.completions.create(**site.chat), streamed)


def _anthropic(site: Site) -> Awaited:
    from anthropic import AsyncAnthropic  # noqa: PLC0415  as above

    client = AsyncAnthropic(base_url=site.url, api_key=KEY)

    async def streamed() -> int:
        events = await client.messages.create(**site.messages, stream=True)
        return sum([1 async for event in events if event.type == "content_block_delta"])

    return Awaited(lambda: client.messages.create(**site.messages), streamed)


def _anthropic_blocking(site: Site) -> Blocking:
    from anthropic import Anthropic  # noqa: PLC0415  as above

    client = Anthropic(base_url=site.url, api_key=KEY)

    def streamed() -> int:
        events = client.messages.create(**site.messages, stream=True)
        return sum(event.type == "content_block_delta" for event in events)

    return Blocking(lambda: client.messages.create(**site.messages), streamed)


def _upstream(site: Site, dialect: str) -> dict[str, Any]:
    return {"upstream": f"{site.url}/v1", "dialect": dialect, "key": KEY, "model": site.chat["model"]}


def _options(site: Site) -> dict[str, Any]:
    return {"max_tokens": site.messages["max_tokens"]}


CLIENTS: Final[dict[str, Callable[[Site], Awaited | Blocking]]] = {
    "chat: openai, async": _openai,
    "chat: xenoglot, async": _xenoglot("chat"),
    "chat: openai": _openai_blocking,
    "chat: xenoglot": _xenoglot_blocking("chat"),
    "messages: anthropic, async": _anthropic,
    "messages: xenoglot, async": _xenoglot("messages"),
    "messages: anthropic": _anthropic_blocking,
    "messages: xenoglot": _xenoglot_blocking("messages"),
    "chat: xenoglot, async, raw": _xenoglot_raw,
    "in process: xenoglot, async": _scripted,
}
"""By their names: the dialect, whose client it is, and of what kind."""

PIECES: Final = 100
"""Tokens of a streamed answer."""


def did(client: Awaited | Blocking, task: Task, run: Callable[[Coroutine[Any, Any, int]], int]) -> Took:
    """Return what `task` took; `run` drives an event loop."""
    begun = time.process_time_ns()
    if isinstance(client, Awaited):
        units = run(_crowd(client, task))
    elif task.at_once == 1:
        units = _turn(client, task, task.answers)
    else:
        with ThreadPoolExecutor(task.at_once) as threads:
            each = task.answers // task.at_once
            units = sum(threads.map(lambda _: _turn(client, task, each), range(task.at_once)))
    return Took((time.process_time_ns() - begun) / 1000, units)


def _turn(client: Blocking, task: Task, count: int) -> int:
    done = 0
    for _ in range(count):
        done += client.streamed() if task.stream else bool(client.whole())
    return done


async def _crowd(client: Awaited, task: Task) -> int:
    async def turn(count: int) -> int:
        done = 0
        for _ in range(count):
            done += await client.streamed() if task.stream else bool(await client.whole())
        return done

    return sum(await asyncio.gather(*[turn(task.answers // task.at_once) for _ in range(task.at_once)]))


def serve(client: Awaited | Blocking, lines: Iterable[str]) -> None:
    """Do the tasks of `lines`, and say of each what it took."""
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        for line in lines:
            sys.stdout.write(json.dumps(did(client, Task(*json.loads(line)), run)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve(CLIENTS[sys.argv[1]](Site(*json.loads(sys.stdin.readline()))), iter(sys.stdin.readline, ""))
