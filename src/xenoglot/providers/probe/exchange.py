"""One probe request and its response as data, decoded in a dialect."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall
from xenoglot.model.events import Failed, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.json import JSON
from xenoglot.model.response import Response
from xenoglot.providers.probe.findings import ProbeExchange
from xenoglot.providers.provider import AuthForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event

Outcome: TypeAlias = Literal["answered", "foreign", "absent", "refused", "locked", "limited", "failing"]
"""Outcome of a request: `foreign` is an answer that is not in the dialect, `absent` a path that does not exist,
`locked` a path that needs a (different) key, `limited` a rate limit."""

_OK = 200
_REDIRECT = 300
_BAD = 400
_SERVER_ERROR = 500
_LONGEST_SUMMARY = 160
_BY_STATUS: dict[int, Outcome] = {
    401: "locked",
    402: "locked",
    403: "locked",
    404: "absent",
    405: "absent",
    408: "failing",
    429: "limited",
    501: "absent",
}


class ProbeRequest(Struct, frozen=True, kw_only=True):
    """One request. `path` is one of `dialect`, below whatever base URL; `auth` is how a key is shown, if there is one.

    `stream` is whether the answer may come as a stream, `description` describes the request for people.
    """

    method: Literal["GET", "POST"]
    dialect: str
    path: str
    description: str
    query: str = ""
    body: JSON = None
    stream: bool = False
    auth: AuthForm | None = None


class ProbeResponse(Struct, frozen=True, kw_only=True):
    """What came: a response with lower-case header names; or a `problem`, and then perhaps the beginning of one."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    problem: str | None = None


Result_co = TypeVar("Result_co", covariant=True)

Conversation: TypeAlias = Generator[ProbeRequest, ProbeResponse, Result_co]
"""Yields requests, receives their responses, and returns a result."""


class ProbeAnswer(Struct, frozen=True, kw_only=True):
    """A reply, understood as far as it can be.

    `values` are the JSON values that it holds: one, or one for each event of a stream. `ending` is the last event of a
    stream as it came; `complete` is whether an answer has the end that its dialect demands.
    """

    request: ProbeRequest
    outcome: Outcome
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    values: tuple[JSON, ...] = ()
    response: Response | None = None
    failure: Failure | None = None
    problem: str | None = None
    streamed: bool = False
    complete: bool = False
    ending: str = ""
    counted: bool = False

    @property
    def text(self) -> str:
        """The words of the first answer."""
        parts = self.response.candidates[0].content if self.response and self.response.candidates else ()
        return "".join(said for part in parts if isinstance(said := getattr(part, "text", None), str))

    @property
    def evidence(self) -> ProbeExchange:
        """The question and the answer, in words."""
        return ProbeExchange(asked=self.request.description, answered=self.summary)

    @property
    def summary(self) -> str:
        """What came back, in one line."""
        if self.problem is not None:
            return self.problem
        if self.failure is not None:
            return _short(f"{self.status}: {self.failure.message}")
        return _short(f"{self.status}: {self._message()}")

    def _message(self) -> str:
        if self.outcome == "foreign":
            return "an answer, but none of this dialect"
        if self.response is None:
            return "understood"
        answers = self.response.candidates
        parts = [part for one in answers for part in one.content]
        calls = [f"{part.name}({part.arguments})" for part in parts if isinstance(part, ToolCall)]
        finish = answers[0].finish if answers else None
        ended = "" if finish is None else f", ended by {finish.raw or finish.reason}"
        said = " and ".join(calls) if calls else f'"{" ".join(self.text.split())}"'
        return f"{said}{ended}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_SUMMARY else line[: _LONGEST_SUMMARY - 1] + "…"


def read_answer(ask: ProbeRequest, reply: ProbeResponse, dialect: Dialect) -> ProbeAnswer:
    """Return `reply`, decoded by the rules of `dialect`."""
    if reply.problem is not None and not reply.status:
        return ProbeAnswer(request=ask, outcome="failing", status=0, problem=reply.problem)
    media_type = dict(reply.headers).get("content-type", "").lower()
    if reply.status == _OK and ask.stream and media_type.startswith(dialect.framing.media_type):
        return _streamed(ask, reply, dialect)
    body = _json(reply.body)
    if _OK <= reply.status < _REDIRECT and not _is_error(body):
        return _complete_answer(ask, reply, body, dialect)
    failure = dialect.decode_error(reply.status, body)
    return ProbeAnswer(
        request=ask,
        outcome=outcome_of(reply.status),
        status=reply.status,
        headers=reply.headers,
        values=() if body is None else (body,),
        failure=failure,
        problem=reply.problem,
    )


def outcome_of(status: int) -> Outcome:
    """Return the outcome for a status other than success; an error with status 200 is a refusal."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if _OK < status < _BAD:
        return "absent"
    return "failing" if status >= _SERVER_ERROR else "refused"


def _is_error(body: JSON) -> bool:
    return isinstance(body, dict) and body.get("error") is not None


def _json(data: bytes) -> JSON:
    try:
        return decode_answer(data)
    except WireError:
        return None


def _complete_answer(ask: ProbeRequest, reply: ProbeResponse, body: JSON, dialect: Dialect) -> ProbeAnswer:
    try:
        response = dialect.decode_response(body)
    except WireError:
        response = None
    here = response is not None and bool(response.candidates)
    return ProbeAnswer(
        request=ask,
        outcome="answered" if here else "foreign",
        status=reply.status,
        headers=reply.headers,
        values=() if body is None else (body,),
        response=response if here else None,
        problem=reply.problem,
        complete=here and reply.problem is None,
        counted=_counts(response),
    )


def _counts(response: Response | None) -> bool:
    return response is not None and response.usage is not None and response.usage.output_tokens is not None


def _streamed(ask: ProbeRequest, reply: ProbeResponse, dialect: Dialect) -> ProbeAnswer:
    frames = _frames(reply.body, dialect)
    events = list(_events(frames, dialect))
    folded = fold(event for event in events if not isinstance(event, Failed))
    failure = next((event.failure for event in events if isinstance(event, Failed)), None)
    response = folded if isinstance(folded, Response) and folded.candidates else None
    values = tuple(value for frame in frames if (value := _json(frame.data)) is not None)
    return ProbeAnswer(
        request=ask,
        outcome="foreign" if response is None and failure is None else "answered" if response else "refused",
        status=reply.status,
        headers=reply.headers,
        values=values,
        response=response,
        failure=failure if response is None else None,
        problem=reply.problem,
        streamed=True,
        complete=failure is None and reply.problem is None,
        ending=_ending(frames[-1]) if frames else "",
        counted=any(isinstance(event, UsageReported) and event.usage.output_tokens is not None for event in events),
    )


def _frames(body: bytes, dialect: Dialect) -> list[ServerSentEvent]:
    decoder = dialect.framing.decoder()
    try:
        return [*decoder.feed(body), *decoder.close()]
    except WireError:
        return []


def _events(frames: Iterable[ServerSentEvent], dialect: Dialect) -> Sequence[Event]:
    decoder: Stage[ServerSentEvent, Event] = Pipeline(dialect.stream_decoder())
    events: list[Event] = []
    try:
        for frame in frames:
            events += decoder.feed(frame)
        events += decoder.close()
    except WireError:
        return events
    return events


def _ending(frame: ServerSentEvent) -> str:
    """Return what the last event of a stream is called, empty where none of them has a name."""
    value = _json(frame.data)
    if not isinstance(value, dict):
        return _short(frame.data.decode("utf-8", "replace"))
    kind = value.get("type") or value.get("event_type") or frame.event
    return kind if isinstance(kind, str) else ""
