"""Catalogue of faults between a gateway and a model server, each as the steps of one answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError
from xenoglot.model.failure import Failure
from xenoglot.testing.canned import BROKEN, CUT, END, JSON_TYPE, SILENT, Answers, answers, refusal
from xenoglot.testing.script import (
    Body,
    Close,
    Drip,
    Hang,
    Repeat,
    RequestMatcher,
    Reset,
    Respond,
    ResponseHead,
    ScriptRule,
    Send,
    Steps,
)

if TYPE_CHECKING:
    from xenoglot.model.failure import FailureKind
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

HTML = Respond(status=200, headers=(("content-type", "text/html"),), body=b"<html><body>Welcome</body></html>")
PAGE = Respond(status=502, headers=(("content-type", "text/html"),), body=b"<html><body>Bad Gateway</body></html>")
INTERIM = Send(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
STORM = 1_000
"""Number of interim responses of that fault."""


class Fault(Struct, frozen=True):
    """One fault: its `description`, its steps for an answer that is streamed or not, and its outcome.

    With `fails` false the answer is whole, and unusual only in how it comes.
    """

    description: str
    steps: Callable[[Answers, bool], Steps]
    fails: bool = True

    @property
    def says(self) -> str:
        """The `description` under its name of the last release."""
        warnings.warn("`Fault.says` is now `Fault.description`", DeprecationWarning, stacklevel=2)
        return self.description


def _half(answer: Answers, *, streamed: bool, then: Steps) -> Steps:
    """Return the steps of the first half of an answer, followed by `then`."""
    if streamed:
        return answer.streamed(upto=len(answer.frames) // 2, then=then)
    half = answer.body[: len(answer.body) // 2]
    return (ResponseHead(headers=(JSON_TYPE,), length=len(answer.body)), Body(half), *then)


def _early(answer: Answers, streamed: bool) -> Steps:  # noqa: FBT001 - as `Fault.steps` is called
    if streamed:
        return answer.streamed(upto=len(answer.frames) // 2)
    return (Respond(headers=(JSON_TYPE,), body=answer.body[: len(answer.body) // 2]),)


def _spoilt(answer: Answers, data: bytes, *, streamed: bool) -> Steps:
    """Return the steps of an answer with `data` inserted in the middle."""
    if not streamed:
        body = answer.body
        return (Respond(headers=(JSON_TYPE,), body=body[: len(body) // 2] + data + body[len(body) // 2 :]),)
    middle = len(answer.frames) // 2
    frame = answer.frames[middle]
    brace = frame.rindex(b"{") + 1
    head = ResponseHead(headers=(("content-type", answer.media_type),))
    spoilt = (*answer.frames[:middle], frame[:brace] + data + frame[brace:], *answer.frames[middle + 1 :])
    return (head, *map(Body, spoilt), *END)


def _error_in_200(answer: Answers, _streamed: bool) -> Steps:  # noqa: FBT001 - as `Fault.steps` is called
    _, body = get(answer.dialect).encode_error(Failure(kind="internal", message="scripted"))
    return (Respond(headers=(JSON_TYPE,), body=encode_json(body)),)


def _refusal(kind: FailureKind) -> Callable[[Answers, bool], Steps]:
    """Return the steps of an error in the answer's dialect."""

    def steps(answer: Answers, _streamed: bool) -> Steps:  # noqa: FBT001 - as `Fault.steps` is called
        failure = Failure(kind=kind, message="scripted")
        return refusal(answer.dialect, failure, (("retry-after", "1"),) if kind == "rate_limit" else ())

    return steps


def _always(*steps: Step) -> Callable[[Answers, bool], Steps]:
    return lambda _answer, _streamed: steps


def _complete(answer: Answers, *, streamed: bool, split: int = 0, pause: float = 0.0, together: bool = False) -> Steps:
    return answer.streamed(split=split, pause=pause, together=together) if streamed else answer.complete(split=split)


FAULTS: dict[str, Fault] = {
    "fine": Fault("nothing goes wrong", lambda a, s: _complete(a, streamed=s), fails=False),
    "bytewise": Fault("each byte is a segment of its own", lambda a, s: _complete(a, streamed=s, split=1), fails=False),
    "together": Fault("all events are one chunk", lambda a, s: _complete(a, streamed=s, together=True), fails=False),
    "hints": Fault("interim responses come first", lambda a, s: (INTERIM, *_complete(a, streamed=s)), fails=False),
    "reset-at-once": Fault("RST instead of an answer", _always(Reset())),
    "close-at-once": Fault("FIN instead of an answer", _always(Close())),
    "no-head": Fault("nothing comes", _always(Hang())),
    "half-head": Fault("FIN in the middle of the head", _always(Send(b"HTTP/1.1 200 OK\r\ncontent-ty"), Close())),
    "slow-head": Fault("the head comes byte by byte", _always(Drip(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 99, 0.5))),
    "garbage": Fault("bytes that are no HTTP", _always(Send(b"\x16\x03\x01\x00\xa5 no\r\n\r\n"), Close())),
    "hints-storm": Fault("interim responses without end", _always(Repeat((INTERIM,), times=STORM), Hang())),
    "html": Fault("200, and a page", _always(HTML)),
    "bad-gateway": Fault("502, and a page", _always(PAGE)),
    "empty": Fault("200, and no body", _always(Respond(headers=(JSON_TYPE,)))),
    "error-in-200": Fault("200, and an error", _error_in_200),
    "redirect": Fault("a redirect", _always(Respond(status=302, headers=(("location", "http://localhost:9/"),)))),
    "internal": Fault("500 in the dialect's words", _refusal("internal")),
    "overloaded": Fault("overloaded, in the dialect's words", _refusal("overloaded")),
    "rate-limit": Fault("429 in the dialect's words", _refusal("rate_limit")),
    "unauthorised": Fault("401 in the dialect's words", _refusal("authentication")),
    "cut": Fault("FIN in the middle", lambda a, s: _half(a, streamed=s, then=CUT)),
    "reset": Fault("RST in the middle", lambda a, s: _half(a, streamed=s, then=BROKEN)),
    "silence": Fault("nothing more after the middle", lambda a, s: _half(a, streamed=s, then=SILENT)),
    "early-end": Fault("a valid end of the HTTP message in the middle of the stream", _early),
    "garbled": Fault("a NUL in the middle, which no JSON has", lambda a, s: _spoilt(a, b"\0", streamed=s)),
    "coding": Fault(
        "gzip is announced, and does not come",
        _always(Respond(headers=(JSON_TYPE, ("content-encoding", "gzip")), body=b"{}" * 99)),
    ),
}
"""Faults by name. All but `fine`, `bytewise`, `together` and `hints` leave the client without a complete answer."""


def fault(name: str, dialect: str, *, streamed: bool) -> Steps:
    """Return the steps of the fault `name` in an answer of `dialect`.

    Raises:
        ConfigurationError: unknown fault or dialect.
    """
    found = FAULTS.get(name)
    if found is None:
        raise ConfigurationError(f"there is no fault `{name}`; there are: {', '.join(FAULTS)}")
    return found.steps(answers(dialect), streamed)


def faulty(name: str, dialect: str) -> tuple[ScriptRule, ...]:
    """Return rules of a server of `dialect` whose answers all have the fault `name`.

    Raises:
        ConfigurationError: as above.
    """
    stream, whole, listing = answers(dialect).rules()
    streamed = ScriptRule(steps=fault(name, dialect, streamed=True), when=stream.when)
    return (streamed, ScriptRule(steps=fault(name, dialect, streamed=False), when=whole.when), listing)


MARK = b"fault:"


def by_request(dialect: str) -> tuple[ScriptRule, ...]:
    """Return rules of a server of `dialect` with faults on demand: a request that contains `fault:NAME!` gets it.

    Other requests get a good answer.
    """
    answer = answers(dialect)
    stream, whole, listing = answer.rules()

    def made(streamed: bool) -> Callable[[Received], Steps]:  # noqa: FBT001 - as `Fault.steps` is called
        def steps(request: Received) -> Steps:
            name = request.body.partition(MARK)[2].split(b"!", 1)[0].decode("ascii", "replace")
            return FAULTS.get(name, FAULTS["fine"]).steps(answer, streamed)

        return steps

    return (
        ScriptRule(steps=made(True), when=stream.when),  # noqa: FBT003 - as above
        ScriptRule(steps=made(False), when=RequestMatcher(method="POST", path=whole.when.path)),  # noqa: FBT003 - as above
        listing,
    )
