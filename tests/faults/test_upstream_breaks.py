"""Streams that break, in every dialect: what came is told, then the error, then nothing; and never a mark of the end.

U13 to U15, U17 and U22.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.faults.cases import STREAMED, Fault, after, everywhere, gone, is_refused
from tests.faults.heard import words_of
from tests.faults.house import House, broken, stream, within_reason
from tests.faults.wires import (
    DIALECTS,
    DONE,
    FIRST,
    HELLO,
    MESSAGE_STOP,
    OVERLOADED,
    Wire,
    data,
    named,
)
from xenoglot.testing.script import Body, Close, End, Hang, Reset, Step, WaitEvent

if TYPE_CHECKING:
    from tests.faults.house import Answer

ERROR = HELLO["chat"].error
HEARD = "heard"
LINED = ("ollama", "ollama_generate")
"""Dialects whose events are lines."""
EARLY, CUT = (
    "connection lost: the upstream's stream ended without being complete",
    "connection lost: the upstream closed it",
)


class Break(Struct, frozen=True, kw_only=True):
    """A way to break: what comes behind the first word, once that was heard, and how the connection ends.

    `torn` says that a frame never ends whose bytes are passed on, where they pass untouched: then nothing can be said.
    """

    name: str
    late: Callable[[str, Wire], Sequence[bytes]] = lambda *_: ()
    ending: tuple[Step, ...] = (End(),)
    kind: str = "upstream"
    said: str = ""
    unsaid: str = "canary-of-the-wire"
    upstreams: tuple[str, ...] = DIALECTS
    torn: bool = False


def unended(upstream: str, wire: Wire) -> Sequence[bytes]:
    """Return all that there is but the reason of the end: the mark comes without it."""
    match upstream:
        case "messages":
            return (*wire.more, wire.ended[0], MESSAGE_STOP)
        case _:
            return (*wire.more, DONE)


def cut_json(upstream: str, _wire: Wire) -> Sequence[bytes]:
    """Return an event whose JSON is cut."""
    if upstream in LINED:
        return (b'{"model":"canary-of-the-wire","mes\n',)
    return (b'data: {"id":"canary-of-the-wire","cho\n\n',)


def half_a_frame(_upstream: str, wire: Wire) -> Sequence[bytes]:
    """Return the beginning of a frame."""
    return (wire.more[0][:-9],)


def other_errors(upstream: str, _wire: Wire) -> Sequence[bytes]:
    """Return an error in another form than the usual one, as servers and what stands before them tell it."""
    told = {"message": OVERLOADED, "type": "server_error", "param": None, "code": "service_unavailable"}
    match upstream:
        case "chat" | "completions":
            return (data({"error": told}, "error"),)
        case "responses":
            return (named(told | {"type": "error"}),)
        case "messages":
            return (data({"error": {"type": "overloaded_error", "message": OVERLOADED}}),)
        case "gemini":
            error = {"code": 503, "message": OVERLOADED, "status": "UNAVAILABLE"}
            return (json.dumps([{"error": error}]).encode() + b"\n\n",)
        case _:
            return (data({"error": {"message": f"503: {OVERLOADED}"}}, "error"),)


def said_at(upstream: str) -> str:
    """Return the kind that an upstream's error event tells: Ollama has but a sentence."""
    return "upstream" if upstream in LINED else "overloaded"


BREAKS = (
    Break(name="U13-reset", ending=(Reset(),), said=CUT),
    Break(name="U13-closed-without-the-final-chunk", ending=(Close(),), said=CUT),
    Break(name="U13-cut-inside-a-frame", late=half_a_frame, ending=(Reset(),), said=CUT, torn=True),
    Break(name="U14-ended-early", said=EARLY),
    Break(
        name="U15-no-reason",
        late=unended,
        upstreams=("gemini", "messages"),
        said=EARLY,
    ),
    Break(name="U17-cut-json", late=cut_json, ending=(Hang(),)),
    Break(name="U22-error-event", late=lambda _, wire: (wire.error,), ending=(Hang(),), kind="said"),
    Break(
        name="U22-error-event-in-another-form",
        late=other_errors,
        ending=(Hang(),),
        kind="said",
        upstreams=tuple(name for name in DIALECTS if name not in LINED),
    ),
)


def cases() -> list[object]:
    """Return every break at every upstream, for every client."""
    return [
        pytest.param(case, client, upstream, id=f"{case.name}-{client}-to-{upstream}")
        for case in BREAKS
        for client in DIALECTS
        for upstream in case.upstreams
    ]


@pytest.mark.parametrize(("case", "client", "upstream"), cases())
def test_a_broken_stream(house: House, case: Break, client: str, upstream: str) -> None:
    async def scene() -> None:
        wire = HELLO[upstream]
        late = (WaitEvent(HEARD), *(Body(frame) for frame in case.late(upstream, wire)), *case.ending)
        house.upstream.script(stream(upstream, *wire.begun, ending=late))
        answer = await heard_first(house, client, f"{upstream}-small")
        kind = said_at(upstream) if case.kind == "said" else case.kind
        if client == upstream and (case.torn or case.name.endswith("in-another-form")):  # the very bytes
            assert not answer.complete
            assert answer.body.endswith(case.late(upstream, wire)[-1])
        else:
            more = wire.more[0] in case.late(upstream, wire) and client != upstream  # else it is held back with the end
            text = FIRST + ("lo" if more else "")
            told = broken(client, answer, words_of(client, kind, streamed=True), text)
            assert case.said in told.message
        assert case.unsaid.encode() not in answer.body
        said = house.line()
        assert (said["status"], said["finish"], said["failure"]) == (200, None, kind)
        await gone(house)
        await after(house, client, upstream)

    house.play(scene())


async def heard_first(house: House, client: str, model: str) -> Answer:
    """Ask for a stream, let the upstream go on once its first word has been heard, and return all that came."""
    caller = await house.call(client, model, streamed=True)
    await within_reason(lambda: FIRST.encode() in caller.reader.body or caller.over, "the first word is heard")
    house.upstream.release(HEARD)
    return await house.finish(caller)


AT_ONCE = (
    Fault(
        name="U22-error-event-at-once",
        steps=lambda upstream, _: stream(upstream, HELLO[upstream].error),
        kind=said_at,
        modes=STREAMED,
    ),
    Fault(
        name="U14-nothing-in-it",
        steps=lambda upstream, _: stream(upstream),
        said=EARLY,
        modes=STREAMED,
    ),
)


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), everywhere(AT_ONCE))
def test_a_stream_that_fails_before_its_first_word(
    house: House, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    """Nothing was sent by then: the client gets a status, and may ask again."""

    async def scene() -> None:
        await is_refused(house, fault, client, upstream, streamed=streamed)
        await after(house, client, upstream)

    house.play(scene())
