"""Folds the events of a stream into a response, and unfolds a response into events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import Audio, HostedCall, Inline, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xenoglot.model.content import Citation, Extra, Logprob, Part
    from xenoglot.model.failure import Failure

_DELTAS = (TextDelta, ReasoningDelta, ArgumentsDelta, SignatureDelta, CitationDelta, AudioDelta)
"""What a block grows by."""


def fold(events: Iterable[Event]) -> Response | Failure:
    """Return the answer that `events` build, or the failure that ended them.

    A candidate that no `Finished` closed has `finish=None`: the caller decides whether that is an error.
    """
    folder = Folder()
    for event in events:
        folder.feed(event)
    return folder.failure or folder.response()


def unfold(response: Response) -> Iterator[Event]:
    """Yield the shortest stream that folds to `response`: one delta per block, candidates one after the other.

    A candidate without a `finish` gives no `Finished`: the stream is then not valid, and the candidate's `extra` lost.
    """
    yield Started(
        id=response.id,
        model=response.model,
        created=response.created,
        service_tier=response.service_tier,
        extra=response.extra,
    )
    last = len(response.candidates) - 1
    for index, candidate in enumerate(response.candidates):
        for part in candidate.content:
            yield from unfold_part(part, index)
        if index == last and response.usage is not None:
            yield UsageReported(usage=response.usage)
        if candidate.finish is not None:
            yield Finished(finish=candidate.finish, candidate=index, extra=candidate.extra)
    if last < 0 and response.usage is not None:
        yield UsageReported(usage=response.usage)


def unfold_part(part: Part, candidate: int = 0) -> Iterator[Event]:
    """Yield the events of one block that holds `part`."""
    header, deltas = _split(part, candidate)
    yield BlockStarted(part=header, candidate=candidate)
    yield from deltas
    yield BlockEnded(candidate=candidate)


def grown_part(header: Part, deltas: Iterable[Event]) -> Part:
    """Return the part that began as `header` and grew by `deltas`."""
    growing = _GrowingPart(header)
    for delta in deltas:
        growing.feed(delta)
    return growing.part()


def merge_usage(earlier: Usage | None, later: Usage) -> Usage:
    """Return the snapshot `later`, with what it leaves out taken from `earlier`."""
    if earlier is None:
        return later
    said = {name: value for name in Usage.__struct_fields__ if (value := getattr(later, name)) is not None}
    return replace(earlier, **said)


class Folder:
    """The accumulator of `fold`, for callers that also read the growing answer."""

    def __init__(self) -> None:
        self.failure: Failure | None = None
        self._started = Started()
        self._usage: Usage | None = None
        self._candidates: dict[int, _GrowingCandidate] = {}

    def feed(self, event: Event) -> None:
        """Take one event in. Order is not checked here: that is `codec.grammar`'s part."""
        if isinstance(event, _DELTAS):
            self._candidate(event.candidate).block.feed(event)
        else:
            self._feed(event)

    def _feed(self, event: Event) -> None:
        match event:
            case BlockStarted(part=part, candidate=index):
                candidate = self._candidate(index)
                candidate.block, candidate.open = _GrowingPart(part), True
            case BlockEnded(part=part, candidate=index):
                candidate = self._candidate(index)
                candidate.content.append(part or candidate.block.part())
                candidate.open = False
            case Started():
                self._started = event
            case UsageReported(usage=usage):
                self._usage = merge_usage(self._usage, usage)
            case Finished():
                candidate = self._candidate(event.candidate)
                candidate.finish, candidate.extra = event.finish, event.extra
            case Failed(failure=failure):
                self.failure = failure
            case _:
                pass  # the whole of an `Opaque` comes with its `BlockEnded`

    def response(self, *, growing: bool = False) -> Response:
        """Return the answer so far; what there is of blocks that are still open is in it if `growing`."""
        count = max(self._candidates, default=-1) + 1
        return Response(
            id=self._started.id,
            model=self._started.model,
            created=self._started.created,
            service_tier=self._started.service_tier,
            extra=self._started.extra,
            usage=self._usage,
            candidates=tuple(self._candidate(index).candidate(growing=growing) for index in range(count)),
        )

    def content(self, index: int) -> Sequence[Part]:
        """Return the parts so far of one candidate, those alone that are over."""
        candidate = self._candidates.get(index)
        return () if candidate is None else candidate.content

    def _candidate(self, index: int) -> _GrowingCandidate:
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _GrowingCandidate()
        return candidate


class _GrowingCandidate:
    __slots__ = ("block", "content", "extra", "finish", "open")

    def __init__(self) -> None:
        self.block = _GrowingPart(Text(text=""))
        self.open = False
        self.content: list[Part] = []
        self.finish: Finish | None = None
        self.extra: Extra | None = None

    def candidate(self, *, growing: bool) -> Candidate:
        begun = (self.block.part(),) if growing and self.open else ()
        return Candidate(content=(*self.content, *begun), finish=self.finish, extra=self.extra)


class _GrowingPart:
    __slots__ = ("audio", "citations", "header", "logprobs", "signature", "summaries", "texts")

    def __init__(self, header: Part) -> None:
        self.header = header
        self.texts: list[str] = []
        self.audio: list[str] = []
        self.logprobs: list[Logprob] = []
        self.citations: list[Citation] = []
        self.summaries: dict[int, list[str]] = {}
        self.signature: str | None = None

    def feed(self, event: Event) -> None:
        if type(event) is TextDelta:
            self.texts.append(event.text)
            if event.logprobs:
                self.logprobs.extend(event.logprobs)
        elif type(event) is ArgumentsDelta or (type(event) is ReasoningDelta and event.summary is None):
            self.texts.append(event.text)
        else:
            self._feed(event)

    def _feed(self, event: Event) -> None:
        match event:
            case ReasoningDelta(text=text, summary=int(index)):
                self.summaries.setdefault(index, []).append(text)
            case SignatureDelta(signature=signature):
                self.signature = signature
            case CitationDelta(citation=citation):
                self.citations.append(citation)
            case AudioDelta(data=data, transcript=transcript):
                self.audio.append(data)
                self.texts.append(transcript)
            case _:
                pass  # not a delta that has a content

    def part(self) -> Part:
        text = "".join(self.texts)
        match self.header:
            case Text() as part:
                return replace(
                    part,
                    text=part.text + text,
                    logprobs=(*part.logprobs, *self.logprobs),
                    citations=(*part.citations, *self.citations),
                )
            case Refusal() as part:
                return replace(part, text=part.text + text, logprobs=(*part.logprobs, *self.logprobs))
            case ToolCall() | HostedCall() as part:
                return replace(part, arguments=part.arguments + text)
            case Reasoning() as part:
                return replace(
                    part,
                    text=(part.text or "") + text if self.texts else part.text,
                    summary=self._summary(part.summary),
                    signature=part.signature if self.signature is None else self.signature,
                )
            case Audio() as part:
                return self._audio(part, text)
            case part:
                return part

    def _summary(self, begun: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if not self.summaries:
            return begun
        given = begun or ()
        count = max(len(given), max(self.summaries) + 1)
        return tuple(
            (given[index] if index < len(given) else "") + "".join(self.summaries.get(index, ()))
            for index in range(count)
        )

    def _audio(self, part: Audio, transcript: str) -> Audio:
        data = "".join(self.audio)
        if isinstance(part.source, Inline):
            part = replace(part, source=replace(part.source, data=part.source.data + data))
        elif data:
            part = replace(part, source=Inline(data=data))
        if transcript:
            part = replace(part, transcript=(part.transcript or "") + transcript)
        return part


def _split(part: Part, index: int) -> tuple[Part, list[Event]]:
    """Return the part as it is known at its start, and the deltas that make it whole."""
    match part:
        case Text():
            deltas: list[Event] = []
            if part.text or part.logprobs:
                deltas.append(TextDelta(text=part.text, logprobs=part.logprobs, candidate=index))
            deltas += [CitationDelta(citation=citation, candidate=index) for citation in part.citations]
            return replace(part, text="", logprobs=(), citations=()), deltas
        case Refusal():
            delta = TextDelta(text=part.text, logprobs=part.logprobs, candidate=index)
            return replace(part, text="", logprobs=()), [delta] if part.text or part.logprobs else []
        case ToolCall() | HostedCall():
            grown = ArgumentsDelta(text=part.arguments, candidate=index)
            return replace(part, arguments=""), [grown] if part.arguments else []
        case Reasoning():
            return _split_reasoning(part, index)
        case _:
            return part, []


def _split_reasoning(part: Reasoning, index: int) -> tuple[Part, list[Event]]:
    deltas: list[Event] = []
    if part.text:
        deltas.append(ReasoningDelta(text=part.text, candidate=index))
    for number, summary in enumerate(part.summary or ()):
        deltas.append(ReasoningDelta(text=summary, summary=number, candidate=index))
    if part.signature is not None:
        deltas.append(SignatureDelta(signature=part.signature, candidate=index))
    header = replace(
        part,
        text=None if part.text is None else "",
        summary=None if part.summary is None else (),
        signature=None,
    )
    return header, deltas
