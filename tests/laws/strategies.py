"""Random values of the canonical model, and random JSON."""

from base64 import b64encode
from typing import TypeVar, get_args

from hypothesis import strategies as st
from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.dialect_registry import names
from xenoglot.model.content import (
    Audio,
    CacheMark,
    Citation,
    CodeOutput,
    CompactedHistory,
    Extra,
    File,
    HostedCall,
    HostedKind,
    HostedResult,
    Image,
    Inline,
    Logprob,
    Opaque,
    Origin,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    SearchResult,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.failure import STATUS, Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import (
    Message,
    OutputFormat,
    Prompt,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage

T = TypeVar("T")

ALIEN = "alien"
"""A dialect that nobody here speaks."""


def maybe(values: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | values


def tuples_of(values: st.SearchStrategy[T], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(values, min_size=least, max_size=most).map(tuple)


# JSON

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["Hello", " world\n", '{"a": 1}', "<think>", "data: x\r\n\r\n", "[tool error] ", "\U0001f600", "\u2028", "</s>"]
)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8)
NAMES = st.text("abcdefXYZ019_-", min_size=1, max_size=12)
COUNTS = st.integers(0, 100_000)
FLOATS = st.floats(-10, 10).map(lambda number: round(number, 3))
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXTS
VALUES: st.SearchStrategy[JSON] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS: st.SearchStrategy[JSONObject] = st.dictionaries(TEXTS, VALUES, max_size=3)

# Content

EXTRAS = st.builds(
    Extra,
    dialect=st.just(ALIEN),
    fields=st.dictionaries(NAMES.map("x_".__add__), VALUES, max_size=2),
    form=st.dictionaries(NAMES, TEXTS, max_size=1),
)
CACHE_MARKS = st.builds(CacheMark, ttl=st.sampled_from([None, "5m", "1h"]))
BASE64 = st.binary(min_size=1, max_size=6).map(lambda data: b64encode(data).decode())
URLS = NAMES.map("https://example.com/".__add__)
ORIGINS = st.builds(Origin, dialect=st.sampled_from([*names(), ALIEN]), provider=st.sampled_from([None, "acme"]))
LOGPROBS = st.builds(
    Logprob,
    token=TEXTS,
    logprob=FLOATS,
    bytes=maybe(tuples_of(st.integers(0, 255))),
    top=maybe(tuples_of(st.builds(Logprob, token=TEXTS, logprob=FLOATS), most=2)),
)
CITATIONS = st.builds(
    Citation,
    kind=st.just("url_citation"),
    url=URLS,
    title=TEXTS,
    start=st.integers(0, 5),
    end=st.integers(5, 9),
)
OPAQUES = st.builds(
    Opaque,
    dialect=st.sampled_from([*names(), ALIEN]),
    data=OBJECTS.map(lambda fields: {"type": "x_new", **{f"x_{name}": value for name, value in fields.items()}}),
    text=maybe(TEXTS),
)
TEXT_PARTS = st.builds(Text, text=TEXTS, cache=maybe(CACHE_MARKS), extra=maybe(EXTRAS))
IMAGES = st.builds(
    Image,
    source=st.builds(Inline, BASE64, st.sampled_from(["image/png", "image/jpeg"])) | st.builds(Remote, URLS),
    detail=st.sampled_from([None, "auto", "low", "high"]),
    cache=maybe(CACHE_MARKS),
    extra=maybe(EXTRAS),
)
AUDIOS = st.builds(Audio, source=st.builds(Inline, BASE64), format=st.sampled_from(["wav", "mp3"]))
VIDEOS = st.builds(
    Video,
    source=st.builds(Inline, BASE64, st.just("video/mp4")) | st.builds(Remote, URLS.map("{}.mp4".format)),
    start=st.sampled_from([None, 1.5, 10.0]),
    end=st.sampled_from([None, 20.0]),
    fps=st.sampled_from([None, 2.0]),
    cache=maybe(CACHE_MARKS),
    extra=maybe(EXTRAS),
)
FILES = st.builds(
    File,
    source=st.one_of(
        st.builds(Inline, BASE64, st.just("application/pdf")),
        st.builds(Remote, URLS),
        st.builds(Stored, NAMES),
        st.builds(Plain, TEXTS, st.just("text/plain")),
    ),
    name=maybe(WORDS),
    context=maybe(TEXTS),
    citable=st.sampled_from([None, True, False]),
    cache=maybe(CACHE_MARKS),
)
REASONINGS = st.one_of(
    st.builds(Reasoning, text=TEXTS.filter(bool), signature=maybe(NAMES), origin=maybe(ORIGINS), extra=maybe(EXTRAS)),
    st.builds(Reasoning, text=st.just(""), signature=NAMES, origin=ORIGINS),
    st.builds(Reasoning, encrypted=NAMES, redacted=st.just(value=True), origin=ORIGINS),
    st.builds(
        Reasoning, summary=tuples_of(TEXTS.filter(bool), least=1, most=2), encrypted=maybe(NAMES), origin=maybe(ORIGINS)
    ),
)
REFUSALS = st.builds(Refusal, text=TEXTS)
COMPACTED = st.builds(CompactedHistory, text=TEXTS.filter(bool))
ARGUMENTS = OBJECTS.map(to_text) | st.sampled_from(["", "{}", '{"a": 1.0, "b": 9007199254740993}', "not JSON", "[1]"])


def tool_calls(ids: st.SearchStrategy[str]) -> st.SearchStrategy[ToolCall]:
    return st.builds(
        ToolCall,
        id=ids,
        name=NAMES,
        arguments=ARGUMENTS,
        cache=maybe(CACHE_MARKS),
        extra=maybe(EXTRAS),
    ) | st.builds(ToolCall, id=ids, name=NAMES, arguments=TEXTS, kind=st.just("custom"))


def tool_results(ids: st.SearchStrategy[str]) -> st.SearchStrategy[ToolResult]:
    return st.builds(
        ToolResult,
        call_id=ids,
        content=tuples_of(TEXT_PARTS | IMAGES, most=2),
        is_error=st.sampled_from([None, True, False]),
        cache=maybe(CACHE_MARKS),
    )


HOSTED_KINDS: st.SearchStrategy[HostedKind] = st.sampled_from(get_args(HostedKind))
FOUND = st.builds(
    SearchResult, url=maybe(URLS), title=maybe(TEXTS), text=maybe(TEXTS), extra=maybe(EXTRAS)
) | st.builds(CodeOutput, stdout=TEXTS, stderr=TEXTS, exit_code=st.sampled_from([None, 0, 1]))


def hosted_calls(ids: st.SearchStrategy[str]) -> st.SearchStrategy[HostedCall]:
    return st.builds(
        HostedCall,
        id=ids,
        kind=HOSTED_KINDS,
        name=maybe(NAMES),
        arguments=ARGUMENTS,
        server=maybe(NAMES),
        extra=maybe(EXTRAS),
    )


def hosted_results(ids: st.SearchStrategy[str]) -> st.SearchStrategy[HostedResult]:
    return st.builds(
        HostedResult, call_id=ids, kind=HOSTED_KINDS, content=tuples_of(FOUND | TEXT_PARTS, most=2), error=maybe(WORDS)
    )


# Requests

SYSTEM = st.builds(
    Message,
    role=st.sampled_from(["system", "developer"]),
    content=tuples_of(TEXT_PARTS, least=1, most=2),
    extra=maybe(EXTRAS),
)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Return a user turn, or an assistant turn with the results of its calls."""
    if draw(st.booleans()):
        parts = st.one_of(TEXT_PARTS, IMAGES, AUDIOS, VIDEOS, FILES, OPAQUES)
        return [Message(role="user", content=draw(tuples_of(parts, least=1)), name=draw(maybe(NAMES)))]
    ids = [f"call_{draw(st.integers(0, 2**64))}" for _ in range(draw(st.integers(0, 2)))]  # no two the same
    said = draw(tuples_of(st.one_of(TEXT_PARTS, REASONINGS, REFUSALS, OPAQUES), least=0 if ids else 1))
    calls = [draw(tool_calls(st.just(call_id))) for call_id in ids]
    results = [Message(role="tool", content=(draw(tool_results(st.just(call_id))),)) for call_id in ids]
    if draw(st.booleans()) and results:  # as in Messages: all results in one user turn
        results = [Message(role="user", content=tuple(part for result in results for part in result.content))]
    return [Message(role="assistant", content=(*said, *calls)), *results]


TOOLS = st.builds(
    Tool,
    name=NAMES,
    description=maybe(TEXTS),
    parameters=st.none() | OBJECTS.map(lambda fields: {"type": "object", "properties": {}, **fields}),
    strict=st.sampled_from([None, True, False]),
    cache=maybe(CACHE_MARKS),
    extra=maybe(EXTRAS),
) | st.builds(Tool, name=NAMES, kind=st.just("custom"), description=maybe(TEXTS))

SAMPLINGS = st.builds(
    Sampling,
    max_tokens=maybe(st.integers(1, 200_000)),
    temperature=maybe(st.floats(0, 2).map(lambda number: round(number, 2))),
    top_p=maybe(st.floats(0, 1).map(lambda number: round(number, 2))),
    top_k=maybe(st.integers(1, 100)),
    min_p=maybe(st.floats(0, 1).map(lambda number: round(number, 2))),
    seed=maybe(st.integers(-(2**63), 2**63 - 1)),
    frequency_penalty=maybe(st.floats(-2, 2).map(lambda number: round(number, 2))),
    presence_penalty=maybe(st.floats(-2, 2).map(lambda number: round(number, 2))),
    repetition_penalty=maybe(st.floats(0.5, 2).map(lambda number: round(number, 2))),
    logit_bias=maybe(st.dictionaries(st.integers(0, 99).map(str), st.integers(-100, 100).map(float), max_size=2)),
    logprobs=st.sampled_from([None, True, False]),
    top_logprobs=maybe(st.integers(0, 20)),
    stop=maybe(tuples_of(WORDS, least=1, most=4)),
    n=st.sampled_from([None, 1]),
)
OUTPUTS = st.builds(OutputFormat, kind=st.sampled_from(["text", "json"])) | st.builds(
    OutputFormat,
    kind=st.just("json_schema"),
    schema=st.just({"type": "object"}),
    name=maybe(NAMES),
    strict=st.sampled_from([None, True]),
)
EFFORTS = st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh", "max"])
THINKINGS = st.one_of(
    st.builds(Thinking, effort=EFFORTS),
    st.builds(Thinking, mode=st.just("enabled"), budget_tokens=st.integers(1024, 60_000)),
    st.builds(Thinking, mode=st.just("adaptive"), effort=st.sampled_from([None, "low", "high"])),
    st.builds(Thinking, mode=st.just("disabled")),
)


PROMPTS = st.builds(
    Prompt,
    texts=tuples_of(TEXTS | tuples_of(COUNTS, least=1), least=1, most=2),
    suffix=maybe(TEXTS),
    echo=st.sampled_from([None, True, False]),
    best_of=st.sampled_from([None, 1, 3]),
) | st.builds(Prompt, texts=TEXTS.map(lambda text: (text,)), echo=st.sampled_from([None, True]))


@st.composite
def continuations(draw: st.DrawFn) -> Request:
    """Return a request to go on with a text."""
    return Request(
        model=draw(NAMES),
        messages=tuple(draw(st.lists(SYSTEM, max_size=1))),
        prompt=draw(PROMPTS),
        sampling=draw(SAMPLINGS),
        stream=draw(st.booleans()),
        user=draw(maybe(WORDS)),
        extra=draw(maybe(EXTRAS)),
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Return a request that a sensible client could make; tools are named where a choice names them."""
    if draw(st.integers(0, 5)) == 0:
        return draw(continuations())
    messages = [*draw(st.lists(SYSTEM, max_size=2)), Message(role="user", content=(Text(text="Hi"),))]
    for _ in range(draw(st.integers(0, 2))):
        messages += draw(turns())
        messages += draw(st.lists(SYSTEM, max_size=1))
    tools = draw(st.lists(TOOLS, max_size=2, unique_by=lambda tool: tool.name))
    choices: list[ToolChoice] = [ToolChoice(mode=mode) for mode in ("auto", "required", "none")]
    choices += [ToolChoice(mode="required", names=(tool.name,), kind=tool.kind) for tool in tools]
    thinking = draw(maybe(THINKINGS))
    sampling = draw(SAMPLINGS)
    if thinking is not None and thinking.budget_tokens is not None:
        sampling = replace(sampling, max_tokens=thinking.budget_tokens + draw(st.integers(1, 1000)))
    if sampling.top_logprobs is not None:
        sampling = replace(sampling, logprobs=True)
    return Request(
        model=draw(NAMES),
        messages=tuple(messages),
        tools=(*tools, *draw(tuples_of(OPAQUES, most=1))),
        tool_choice=draw(maybe(st.sampled_from(choices))) if tools else None,
        parallel_tool_calls=draw(st.sampled_from([None, True, False])) if tools else None,
        sampling=sampling,
        output=draw(maybe(OUTPUTS)),
        thinking=thinking,
        verbosity=draw(st.sampled_from([None, "low", "high"])),
        stream=draw(st.booleans()),
        stream_usage=draw(st.sampled_from([None, True, False])),
        user=draw(maybe(WORDS)),
        metadata=draw(maybe(st.dictionaries(NAMES, WORDS, max_size=2))),
        service_tier=draw(st.sampled_from([None, "auto", "default", "flex", "priority"])),
        store=draw(st.sampled_from([None, True, False])),
        previous=draw(maybe(NAMES)),
        cache=draw(maybe(CACHE_MARKS | st.just(CacheMark(explicit=True)))),
        cache_key=draw(maybe(NAMES)),
        cache_retention=draw(st.sampled_from([None, "in_memory", "24h"])),
        moderation=draw(st.sampled_from([None, {"model": "omni-moderation-latest"}])),
        extra=draw(maybe(EXTRAS)),
    )


# Answers

USAGES = st.builds(
    Usage,
    input_tokens=st.integers(100, 1000),
    output_tokens=st.integers(100, 1000),
    cache_read=maybe(st.integers(0, 50)),
    cache_write=maybe(st.integers(0, 50)),
    reasoning=maybe(st.integers(0, 100)),
)
REASONS: st.SearchStrategy[FinishReason] = st.sampled_from(
    ("stop", "length", "context", "refusal", "pause", "compaction", "unknown", "stop_sequence")
)


@st.composite
def finishes(draw: st.DrawFn, *, calls: bool) -> Finish:
    """Return why an answer ended: for a tool where there are calls, for anything else where there are none."""
    reason = "tool_calls" if calls else draw(REASONS)
    return Finish(reason=reason, stop_sequence=draw(WORDS) if reason == "stop_sequence" else None)


ANSWERED = {
    Text: st.builds(Text, text=TEXTS, extra=maybe(EXTRAS))
    | st.builds(Text, text=TEXTS.filter(bool), citations=tuples_of(CITATIONS, most=1)),
    Refusal: REFUSALS,
    CompactedHistory: COMPACTED,
    Reasoning: REASONINGS,
    ToolCall: tool_calls(NAMES),
    Audio: st.builds(Audio, id=NAMES, source=st.builds(Inline, BASE64), transcript=TEXTS, expires_at=COUNTS),
    HostedCall: hosted_calls(NAMES),
    HostedResult: hosted_results(NAMES),
    Opaque: OPAQUES,
}
SPOKEN: st.SearchStrategy[Part] = st.one_of(ANSWERED[Text], REFUSALS, REASONINGS, ANSWERED[ToolCall])
ANY_PART: st.SearchStrategy[Part] = st.one_of(
    *ANSWERED.values(), IMAGES, FILES, tool_results(NAMES), st.builds(Text, text=TEXTS, logprobs=tuples_of(LOGPROBS))
)


@st.composite
def candidates(draw: st.DrawFn, parts: st.SearchStrategy[Part] = SPOKEN) -> Candidate:
    ids: set[str] = set()
    kept: list[Part] = []
    for part in draw(st.lists(parts, max_size=4)):
        if not isinstance(part, ToolCall):
            kept.append(part)
        elif part.id not in ids:
            ids.add(part.id)
            kept.append(part)
    return Candidate(content=tuple(kept), finish=draw(finishes(calls=bool(ids))))


def responses(parts: st.SearchStrategy[Part] = SPOKEN, most: int = 1) -> st.SearchStrategy[Response]:
    """Return answers of up to `most` candidates made of `parts`."""
    return st.builds(
        Response,
        id=NAMES,
        model=NAMES,
        created=st.integers(1, 2**31),
        candidates=tuples_of(candidates(parts), least=1, most=most),
        usage=maybe(USAGES),
        service_tier=st.sampled_from([None, "default", "priority"]),
        extra=maybe(EXTRAS),
    )


FAILURES = st.builds(
    Failure,
    kind=st.sampled_from(sorted(STATUS)),
    message=TEXTS,
    status=maybe(st.integers(400, 599)),
    dialect=st.sampled_from([None, ALIEN]),
    raw_type=maybe(NAMES),
    code=maybe(NAMES),
    param=maybe(NAMES.map("$.".__add__)),
    retry_after=maybe(st.floats(0, 100)),
    tokens=maybe(COUNTS),
    limit=maybe(COUNTS),
    request_id=maybe(NAMES),
)
