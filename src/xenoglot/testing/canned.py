"""Canned answers of a server of any dialect, complete and streamed, encoded by our own codecs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import canonical, get, names
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, Event, ReasoningDelta, TextDelta
from xenoglot.model.fold import unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.testing.script import (
    Body,
    Close,
    End,
    Hang,
    Headers,
    Pause,
    RequestMatcher,
    Reset,
    Respond,
    ResponseHead,
    ScriptRule,
    Step,
    anywhere,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.content import Part
    from xenoglot.model.failure import Failure
    from xenoglot.testing.script import Split, Steps

MODEL = "scripted"
CREATED = 1_700_000_000
"""Creation time of every canned answer, in Unix seconds."""

USAGE = Usage(input_tokens=7, output_tokens=3)
JSON_TYPE = ("content-type", "application/json")

END: Steps = (End(),)
CUT: Steps = (Close(),)
BROKEN: Steps = (Reset(),)
SILENT: Steps = (Hang(),)


class Answers(Struct, frozen=True, kw_only=True):
    """One answer of a server of `dialect`: its `body`, and the `frames` of its stream, one for each event.

    The last frames end the stream as the dialect does. `path` and `stream_path` are the request paths, with the
    wildcard `*` for a model's name; `models` is the server's list of models.
    """

    dialect: str
    response: Response
    body: bytes
    frames: tuple[bytes, ...]
    media_type: str
    path: str
    stream_path: str
    models_path: str
    models: bytes

    @property
    def stream(self) -> bytes:
        """The complete stream."""
        return b"".join(self.frames)

    def complete(self, *, status: int = 200, headers: Headers = (), split: Split = 0) -> Steps:
        """Return the steps of the answer as one body."""
        return (Respond(status=status, headers=(JSON_TYPE, *headers), body=self.body, split=split),)

    def streamed(  # noqa: PLR0913  each is one way in which streams differ
        self,
        *,
        upto: int | None = None,
        then: Sequence[Step] = END,
        headers: Headers = (),
        split: Split = 0,
        pause: float = 0.0,
        together: bool = False,
    ) -> Steps:
        """Return the steps of the answer as a stream: a chunk for each frame, or all `together` in one.

        Only the frames before `upto` are sent (as the index of a slice), with `pause` seconds between two; `then` are
        the steps after them: the end, or `CUT`, `BROKEN`, `SILENT`, or any steps.
        """
        frames = self.frames[:upto]
        sent = (b"".join(frames),) if together else frames
        steps: list[Step] = [ResponseHead(headers=(("content-type", self.media_type), *headers))]
        for number, frame in enumerate(sent):
            if number and pause:
                steps.append(Pause(pause))
            steps.append(Body(frame, split))
        return (*steps, *then)

    def rules(self) -> tuple[ScriptRule, ...]:
        """Return rules of a server that gives this answer to every request, as a stream if requested."""
        stream = RequestMatcher(method="POST", path=self.stream_path, dialect=self.dialect, stream=True)
        whole = RequestMatcher(method="POST", path=self.path)
        listing = RequestMatcher(method="GET", path=self.models_path)
        return (
            ScriptRule(steps=self.streamed(), when=stream),
            ScriptRule(steps=self.complete(), when=whole),
            ScriptRule(steps=(Respond(headers=(JSON_TYPE,), body=self.models),), when=listing),
        )


class AnswerOptions(TypedDict, total=False):
    """Keyword options of `answers`."""

    text: str | Sequence[str]
    reasoning: str | None
    tool: tuple[str, str] | None
    finish: Finish | None
    usage: Usage | None
    model: str


class _AnswerSettings(Struct, frozen=True, kw_only=True):
    text: str | Sequence[str] = ("Hel", "lo.")
    reasoning: str | None = None
    tool: tuple[str, str] | None = None
    finish: Finish | None = None
    usage: Usage | None = USAGE
    model: str = MODEL


def answers(dialect: str, **options: Unpack[AnswerOptions]) -> Answers:
    """Return an answer in `dialect`: `text` (each piece in an event of its own), optionally after `reasoning`.

    `tool` is a tool call after it: the name of the tool, and its arguments as JSON text.

    Raises:
        ConfigurationError: unknown dialect.
    """
    dialect = canonical(dialect)
    settings = _AnswerSettings(**options)
    text, tool = settings.text, settings.tool
    texts = (text,) if isinstance(text, str) else tuple(text)
    content: list[Part] = []
    if settings.reasoning is not None:
        content.append(Reasoning(text=settings.reasoning))
    if any(texts):
        content.append(Text(text="".join(texts)))
    if tool is not None:
        content.append(ToolCall(id="call_1", name=tool[0], arguments=tool[1]))
    ended = settings.finish or Finish(reason="stop" if tool is None else "tool_calls")
    return answered(
        dialect,
        Response(
            id=get(dialect).id_prefix + MODEL,
            model=settings.model,
            created=CREATED,
            candidates=(Candidate(content=tuple(content), finish=ended),),
            usage=settings.usage,
        ),
        texts=texts,
    )


def answered(dialect: str, response: Response, *, texts: Sequence[str] = ()) -> Answers:
    """Return `response` as a server of `dialect` sends it; `texts` are the pieces of its text.

    Features that the dialect does not support are left out.

    Raises:
        ConfigurationError: unknown dialect.
    """
    spoken = get(dialect)
    return Answers(
        dialect=dialect,
        response=response,
        body=encode_json(spoken.encode_response(response, _request(response, stream=False), Losses())),
        frames=tuple(frames(dialect, _pieced(unfold(response), texts), _request(response, stream=True))),
        media_type=spoken.framing.media_type,
        path=anywhere(spoken.path),
        stream_path=anywhere(spoken.stream_path or spoken.path),
        models_path=anywhere(spoken.models_path),
        models=encode_json(spoken.encode_models((ModelInfo(id=response.model or MODEL, created=CREATED),))),
    )


def frames(dialect: str, events: Iterable[Event], request: Request | None = None) -> Iterable[bytes]:
    """Yield the frames of a stream of `events`, as a server of `dialect` sends it for `request`."""
    spoken = get(dialect)
    asked = request or Request(model=MODEL, stream=True, stream_usage=True)
    encoder, framing = spoken.stream_encoder(asked, Losses()), spoken.framing.encoder()
    for event in events:
        for wire in encoder.feed(event):
            yield from framing.feed(wire)
    for wire in encoder.close():
        yield from framing.feed(wire)
    yield from framing.close()


def refusal(dialect: str, failure: Failure, headers: Headers = ()) -> Steps:
    """Return the steps of the error `failure` in `dialect`."""
    status, body = get(dialect).encode_error(failure)
    return (Respond(status=status, headers=(JSON_TYPE, *headers), body=encode_json(body)),)


def polyglot(**options: Unpack[AnswerOptions]) -> tuple[ScriptRule, ...]:
    """Return rules of a server that gives the same answer in every dialect; `options` are those of `answers`."""
    every = [answers(name, **options) for name in names()]
    return tuple(rule for each in every for rule in each.rules())


def _request(response: Response, *, stream: bool) -> Request:
    return Request(model=response.model or MODEL, stream=stream, stream_usage=stream or None)


def _pieced(events: Iterable[Event], texts: Sequence[str]) -> Iterable[Event]:
    """Yield the events, the text in its pieces, reasoning and arguments in two halves."""
    for event in events:
        match event:
            case TextDelta(text=text) if text == "".join(texts):
                yield from (replace(event, text=piece) for piece in texts)
            case ReasoningDelta(text=text) | ArgumentsDelta(text=text) if len(text) > 1:
                half = len(text) // 2
                yield from (replace(event, text=text[:half]), replace(event, text=text[half:]))
            case _:
                yield event


def paths(dialect: Dialect) -> tuple[str, ...]:
    """Return all request paths of `dialect`, as patterns."""
    own = (dialect.path, *((dialect.stream_path,) if dialect.stream_path else ()))
    return tuple(anywhere(path) for path in (*own, *dialect.aliases))
