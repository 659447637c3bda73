"""Examples of features of answers: an answer for each feature in several forms, and one without any (`BASE`).

`request_examples` has the reason for the forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.content import (
    Audio,
    Citation,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Logprob,
    Origin,
    Reasoning,
    Refusal,
    SearchResult,
    Text,
    ToolCall,
)
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.content import Part

BYTES: Final = "UE5H"
SIGNATURE: Final = "c2lnbmF0dXJl"
YES: Final = Text(text="Yes, it rains.")
SEARCH: Final = HostedCall(id="search_1", kind="web_search", arguments='{"query":"weather Oslo"}')
FINISHES: Final[tuple[FinishReason, ...]] = ("length", "context", "refusal", "pause")
"""Reasons of an end that are features of their own; that of a call is in its example."""


class ResponseExample(Struct, frozen=True, kw_only=True):
    """A feature, its group in the table, and answers with it, the fullest form first."""

    group: str
    feature: str
    forms: tuple[Response, ...]


BASE: Final = Response(
    id="answer_1",
    model="example",
    created=1_700_000_000,
    candidates=(Candidate(content=(YES,), finish=Finish(reason="stop")),),
    usage=Usage(input_tokens=12, output_tokens=5),
)


def response_examples(dialect: str) -> Iterator[ResponseExample]:
    """Yield an example of each feature, in the order of the table; what is signed is of this dialect."""
    for group, made in _GROUPS.items():
        for feature, forms in made(Origin(dialect=dialect)):
            yield ResponseExample(group=group, feature=feature, forms=forms)


Made: TypeAlias = "tuple[str, tuple[Response, ...]]"
"""A feature, and answers with it."""


def _made(feature: str, *forms: Response) -> Made:
    return feature, forms


def _content(origin: Origin) -> Iterator[Made]:
    cited = Citation(kind="url_citation", url="https://example.com/a", title="Weather", start=0, end=3)
    whole = replace(cited, start=None, end=None)
    forms = (cited, whole, replace(whole, cited_text="Rain."))
    yield _made("citations", *(_with(replace(YES, citations=(form,))) for form in forms))
    other = Logprob(token="No", logprob=-2.5, bytes=(78, 111))  # noqa: S106  a token of a text
    full = Logprob(token="Yes", logprob=-0.1, bytes=(89, 101, 115), top=(other,))  # noqa: S106  the same
    plain = replace(full, bytes=None, top=(replace(other, bytes=None),))
    chances = (full, plain, replace(plain, top=None))
    yield _made("logprobs", *(_with(Text(text="Yes", logprobs=(form,))) for form in chances))
    yield _made("refusal", _with(Refusal(text="I cannot say that."), reason="refusal"))
    thought = Reasoning(text="Oslo is in Norway.")
    yield _made(
        "reasoning: text", _with(thought, YES), _with(replace(thought, signature=SIGNATURE, origin=origin), YES)
    )
    yield _made("reasoning: signature", _with(replace(thought, signature=SIGNATURE, origin=origin), YES))
    yield _made("reasoning: summary", _with(Reasoning(summary=("Thought of Oslo.",)), YES))
    yield _made("image inline", _with(YES, Image(source=Inline(BYTES, "image/png"))))
    sound = Audio(source=Inline(BYTES, "audio/wav"), id="audio_1", transcript="Yes.", expires_at=1_700_003_600)
    yield _made("audio inline", _with(sound), _with(Audio(source=Inline(BYTES, "audio/wav"), format="wav")))


def _calls(_: Origin) -> Iterator[Made]:
    call = ToolCall(id="call_1", name="weather", arguments='{"city":"Oslo"}')
    yield _made("call", _with(YES, call, reason="tool_calls"), _with(call, reason="tool_calls"))
    free = ToolCall(id="call_1", name="script", arguments="print(1)", kind="custom")
    yield _made("call of a custom tool", _with(free, reason="tool_calls"))
    broken = replace(call, arguments='{"city":')
    yield _made("call: arguments that are no JSON", _with(broken, reason="tool_calls"))
    yield _made("call of a tool that the provider runs", _with(SEARCH, YES))
    found = SearchResult(url="https://example.com/a", title="Weather")
    result = HostedResult(call_id="search_1", kind="web_search", content=(found,))
    yield _made("result of a tool that the provider ran", _with(SEARCH, result, YES))


def _end(_: Origin) -> Iterator[Made]:
    for reason in FINISHES:
        yield _made(f"end: {reason}", _with(YES, reason=reason))
    met = Finish(reason="stop_sequence", stop_sequence="END")
    yield _made("stop string that was met", replace(BASE, candidates=(Candidate(content=(YES,), finish=met),)))


def _usage(_: Origin) -> Iterator[Made]:
    counted = Usage(input_tokens=12, output_tokens=5)
    for name, number in (
        ("cache_read", 8),
        ("cache_write", 4),
        ("reasoning", 2),
        ("input_audio", 3),
        ("output_audio", 2),
        ("total", 20),
    ):
        yield _made(f"usage: {name}", replace(BASE, usage=replace(counted, **{name: number})))


def _around(_: Origin) -> Iterator[Made]:
    other = Candidate(content=(Text(text="No."),), finish=Finish(reason="stop"))
    yield _made("several candidates", replace(BASE, candidates=(*BASE.candidates, other)))
    yield _made("service tier", replace(BASE, service_tier="priority"))


_GROUPS: Final = {"Content": _content, "Calls": _calls, "End": _end, "Usage": _usage, "Around it": _around}


def _with(*content: Part, reason: FinishReason = "stop") -> Response:
    return replace(BASE, candidates=(Candidate(content=content, finish=Finish(reason=reason)),))
