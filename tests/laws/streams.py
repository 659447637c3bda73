"""Random lawful streams of events: `GRAMMAR` and `GROWTH`, walked at random."""

from hypothesis import strategies as st
from msgspec.structs import replace

from tests.laws.strategies import (
    ALIEN,
    CITATIONS,
    EXTRAS,
    FAILURES,
    IMAGES,
    NAMES,
    OBJECTS,
    OPAQUES,
    REASONINGS,
    TEXTS,
    USAGES,
    finishes,
    hosted_calls,
    hosted_results,
    maybe,
)
from xenoglot.codec.json.json_io import to_text
from xenoglot.model.content import Audio, Part, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    BETWEEN,
    DONE,
    GRAMMAR,
    GROWTH,
    IDLE,
    INSIDE,
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    HostedProgress,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)

DELTAS: dict[type[Event], st.SearchStrategy[Event]] = {
    TextDelta: st.builds(TextDelta, text=TEXTS),
    CitationDelta: st.builds(CitationDelta, citation=CITATIONS),
    ReasoningDelta: st.builds(ReasoningDelta, text=TEXTS),
    SignatureDelta: st.builds(SignatureDelta, signature=NAMES),
    ArgumentsDelta: st.builds(ArgumentsDelta, text=TEXTS),
    AudioDelta: st.builds(AudioDelta, data=st.just("eA=="), transcript=TEXTS),
    HostedProgress: st.builds(HostedProgress),
    OpaqueDelta: st.builds(OpaqueDelta, dialect=st.just(ALIEN), data=OBJECTS, name=maybe(NAMES)),
    UsageReported: st.builds(UsageReported, usage=USAGES),
    Ping: st.just(Ping()),
}
BESIDE = {OpaqueDelta, UsageReported, Ping}
"""What may come anywhere."""

HEADERS: st.SearchStrategy[Part] = st.one_of(
    st.just(Text(text="")),
    st.just(Refusal(text="")),
    st.builds(Reasoning, text=st.just("")),
    st.builds(ToolCall, id=NAMES, name=NAMES),
    REASONINGS.filter(lambda part: part.redacted),
)
MORE_HEADERS = st.one_of(
    HEADERS, st.builds(Audio, id=NAMES), OPAQUES, IMAGES, hosted_calls(NAMES), hosted_results(NAMES)
)


@st.composite
def streams(
    draw: st.DrawFn,
    headers: st.SearchStrategy[Part] = HEADERS,
    *,
    most: int = 1,
    may_fail: bool = True,
    whole_arguments: bool = False,
) -> list[Event]:
    """Return a lawful stream of up to `most` candidates, drawn by walking the table.

    With `whole_arguments`, those of function calls are JSON objects, cut anywhere.
    """
    events: list[Event] = []
    while not events or not isinstance(events[-1], Started):
        kind = draw(st.sampled_from(list(GRAMMAR[IDLE])))
        events.append(draw(STARTS) if kind is Started else draw(DELTAS[kind]))
    walks = [_Walk(candidate, draw, headers) for candidate in range(draw(st.integers(1, most)))]
    events += [draw(st.sampled_from(walks)).step() for _ in range(draw(st.integers(0, 24)))]
    if whole_arguments:
        events = _with_whole_arguments(draw, events)
    if may_fail and draw(st.integers(0, 4)) == 0:
        return [*events, Failed(failure=draw(FAILURES))]
    for walk in walks:
        events += walk.end()
    return [*events, *draw(st.lists(DELTAS[UsageReported], max_size=1))]


STARTS = st.builds(Started, id=NAMES, model=NAMES, created=st.integers(1, 2**31), extra=maybe(EXTRAS))


def _with_whole_arguments(draw: st.DrawFn, events: list[Event]) -> list[Event]:
    """Return the events with the texts of their `ArgumentsDelta`s replaced, so that those of a block make an object."""
    blocks: list[list[int]] = []
    open_blocks: dict[int, list[int]] = {}
    for place, event in enumerate(events):
        if isinstance(event, BlockStarted) and isinstance(event.part, ToolCall):
            open_blocks[event.candidate] = []
            blocks.append(open_blocks[event.candidate])
        elif isinstance(event, ArgumentsDelta):
            open_blocks[event.candidate].append(place)
    changed = list(events)
    for places in filter(None, blocks):
        text = to_text(draw(OBJECTS))
        cuts = sorted(draw(st.integers(0, len(text))) for _ in places[1:])
        for place, start, end in zip(places, [0, *cuts], [*cuts, len(text)], strict=True):
            changed[place] = replace(events[place], text=text[start:end])
    return changed


class _Walk:
    """One candidate on its way through the table."""

    def __init__(self, candidate: int, draw: st.DrawFn, headers: st.SearchStrategy[Part]) -> None:
        self._candidate = candidate
        self._draw = draw
        self._headers = headers
        self._state = BETWEEN
        self._part: Part = Text(text="")
        self._ids: set[str] = set()

    def step(self) -> Event:
        kind = self._draw(st.sampled_from(self._possible()))
        self._state = GRAMMAR[self._state][kind]
        event = self._make(kind)
        return replace(event, candidate=self._candidate) if hasattr(event, "candidate") else event

    def end(self) -> list[Event]:
        events: list[Event] = []
        while self._state != DONE:
            towards = BlockEnded if BlockEnded in GRAMMAR[self._state] else Finished
            self._state = GRAMMAR[self._state][towards]
            events.append(replace(self._make(towards), candidate=self._candidate))
        return events

    def _possible(self) -> list[type[Event]]:
        """Return the kinds that may come, those that make an answer many times over those that stand beside it."""
        grown = GROWTH[type(self._part)] if not getattr(self._part, "redacted", False) else ()
        beside = [kind for kind in GRAMMAR[self._state] if kind not in DELTAS or kind in BESIDE]
        return [*(grown if self._state == INSIDE else (BlockStarted,) * (self._state == BETWEEN)) * 6, *beside]

    def _make(self, kind: type[Event]) -> Event:
        if kind is BlockStarted:
            self._part = self._fresh(self._draw(self._headers))
            return BlockStarted(part=self._part)
        if kind is BlockEnded:
            return BlockEnded()
        if kind is Finished:
            return Finished(finish=self._draw(finishes(calls=bool(self._ids))))
        return self._draw(DELTAS[kind])

    def _fresh(self, part: Part) -> Part:
        """Return the part; a tool call with an id that this candidate has not used."""
        if isinstance(part, ToolCall):
            part = replace(part, id=f"{part.id}-{self._candidate}-{len(self._ids)}")
            self._ids.add(part.id)
        return part
