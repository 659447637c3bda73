"""Examples of features of requests: a request for each feature, and one without any (`BASE`).

Dialects express a feature in different forms: reasoning with a signature and without, a schema with a name and without.
An example has a request for each form, the fullest first; a dialect gets the first of which nothing is lost there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.content import (
    Audio,
    CacheMark,
    Citation,
    File,
    Image,
    Inline,
    Origin,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import (
    MediaOutput,
    Message,
    OutputFormat,
    Prompt,
    Request,
    Role,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject

BYTES: Final = "UE5H"
QUESTION: Final = Text(text="Is it raining in Oslo?")
CITY: Final[JSONObject] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLOSED: Final[JSONObject] = {**CITY, "additionalProperties": False}
WEATHER: Final = Tool(name="weather", description="The weather of a city.", parameters=CITY)


class RequestExample(Struct, frozen=True, kw_only=True):
    """A feature, its group in the table, and requests with it, the fullest form first."""

    group: str
    feature: str
    forms: tuple[Request, ...]


def turn(role: Role, *parts: Part) -> Message:
    """Return a turn."""
    return Message(role=role, content=parts)


YES: Final = Text(text="Yes.")
YES_TURN: Final = turn("assistant", YES)
AGAIN: Final = turn("user", Text(text="And in Bergen?"))
CALL: Final = ToolCall(id="call_1", name="weather", arguments='{"city":"Oslo"}')
SIGNATURE: Final = "c2lnbmF0dXJl"
BASE: Final = Request(model="example", messages=(turn("user", QUESTION),))
WITH_TOOLS: Final = replace(BASE, tools=(WEATHER,))


def request_examples(dialect: str) -> Iterator[RequestExample]:
    """Yield an example of each feature, in the order of the table; what is signed is of this dialect."""
    for group, made in _GROUPS.items():
        for feature, forms in made(Origin(dialect=dialect)):
            yield RequestExample(group=group, feature=feature, forms=forms)


Made: TypeAlias = "tuple[str, tuple[Request, ...]]"
"""A feature, and requests with it."""


def _made(feature: str, *forms: Request) -> Made:
    return feature, forms


def _turns(_: Origin) -> Iterator[Made]:
    rule, asked = turn("system", Text(text="Answer in one sentence.")), BASE.messages[0]
    yield _made("system turn", _said(rule, asked))
    yield _made("developer turn", _said(replace(rule, role="developer"), asked))
    yield _made("system turn between the others", _said(asked, YES_TURN, rule, AGAIN))
    yield _made("name of a speaker", _said(replace(asked, name="ada")))
    yield _made("last turn of the assistant, to go on with", _said(asked, turn("assistant", Text(text="In Oslo it"))))
    yield _made("prompt without turns", replace(BASE, messages=(), prompt=Prompt(texts=("Oslo is",))))


def _content(_: Origin) -> Iterator[Made]:
    png, wav, mp4, pdf = (Inline(BYTES, kind) for kind in ("image/png", "audio/wav", "video/mp4", "application/pdf"))
    link, stored, note = "https://example.com/a", Stored("file_1"), Plain("It rains.", "text/plain")
    features: dict[str, tuple[Part, ...]] = {
        "image inline": (Image(source=png), Image(source=Inline(BYTES))),
        "image by URL": (Image(source=Remote(f"{link}.png")),),
        "image by an id of the provider": (Image(source=stored),),
        "image detail": (Image(source=png, detail="low"),),
        "audio inline": (Audio(source=wav, format="wav"), Audio(source=wav)),
        "video inline": (Video(source=mp4),),
        "video by URL": (Video(source=Remote(f"{link}.mp4")),),
        "file inline": (File(source=pdf, name="report.pdf"), File(source=pdf, name="report"), File(source=pdf)),
        "file by URL": (File(source=Remote(f"{link}.pdf")),),
        "file by an id of the provider": (File(source=stored),),
        "file as text": (File(source=note),),
        "file to be cited": (File(source=note, citable=True),),
    }
    for feature, parts in features.items():
        after = [_said(turn("user", QUESTION, part)) for part in parts]
        yield _made(feature, *after, *(_said(turn("user", part, QUESTION)) for part in parts))
    cited = Citation(kind="url_citation", url=link, title="Weather", start=0, end=4)
    yield _made("citations", _history(Text(text="Yes.", citations=(cited,))))
    yield _made("refusal", _history(Refusal(text="I do not know.")))
    yield _made("cache mark", _said(turn("user", replace(QUESTION, cache=CacheMark()))))


def _reasoning(origin: Origin) -> Iterator[Made]:
    thought, summary = "Oslo is in Norway.", ("Thought of Oslo.",)
    features: dict[str, tuple[Reasoning, ...]] = {
        "reasoning: text": (Reasoning(text=thought), Reasoning(text=thought, signature=SIGNATURE, origin=origin)),
        "reasoning: summary": (
            Reasoning(summary=summary),
            Reasoning(summary=summary, encrypted=SIGNATURE, origin=origin, id="rs_1"),
            Reasoning(summary=summary, signature=SIGNATURE, origin=origin),
        ),
    }
    for feature, thoughts in features.items():
        yield _made(feature, *(_history(one, YES) for one in thoughts))
    yield _made("reasoning: signature", _history(Reasoning(text=thought, signature=SIGNATURE, origin=origin), YES))
    long = replace(BASE, sampling=Sampling(max_tokens=20_000))
    yield _made("thinking: effort", replace(long, thinking=Thinking(effort="low")))
    yield _made("thinking: budget_tokens", replace(long, thinking=Thinking(mode="enabled", budget_tokens=2000)))
    yield _made("thinking: mode", replace(long, thinking=Thinking(mode="disabled")))


def _tools(_: Origin) -> Iterator[Made]:
    yield _made("function", WITH_TOOLS)
    yield _made("function: strict", replace(BASE, tools=(replace(WEATHER, parameters=CLOSED, strict=True),)))
    script = Tool(name="script", description="Runs a script.", kind="custom")
    yield _made("custom tool", replace(BASE, tools=(script,)))
    yield _made("tool that the provider runs", replace(BASE, tools=(HostedTool(kind="web_search"),)))
    modes: tuple[tuple[str, Literal["required", "none"], tuple[str, ...]], ...] = (
        ("choice: some tool", "required", ()),
        ("choice: no tool", "none", ()),
        ("choice: one tool", "required", ("weather",)),
    )
    for feature, mode, names in modes:
        yield _made(feature, replace(WITH_TOOLS, tool_choice=ToolChoice(mode=mode, names=names)))
    yield _made("several calls at once, or not", replace(WITH_TOOLS, parallel_tool_calls=False))
    rain, picture = Text(text="rain"), Image(source=Inline(BYTES, "image/png"))
    called, earlier = _called(rain), _called(rain, later=(YES_TURN, AGAIN))
    yield _made("call", called, earlier)
    yield _made("result: image or file", _called(rain, picture), _called(rain, picture, later=(YES_TURN, AGAIN)))
    yield _made("result: error or not", _called(rain, is_error=True))


def _sampling(_: Origin) -> Iterator[Made]:
    for name, value in (
        ("max_tokens", 500),
        ("temperature", 0.7),
        ("top_p", 0.9),
        ("top_k", 40),
        ("min_p", 0.05),
        ("seed", 7),
        ("frequency_penalty", 0.5),
        ("presence_penalty", 0.5),
        ("repetition_penalty", 1.1),
        ("logit_bias", {"50256": -100.0}),
        ("logprobs", True),
        ("stop", ("END",)),
        ("n", 2),
    ):
        yield _made(name, replace(BASE, sampling=Sampling(**{name: value})))  # type: ignore[arg-type]  # as named
    yield _made("top_logprobs", replace(BASE, sampling=Sampling(logprobs=True, top_logprobs=3)))


def _output(_: Origin) -> Iterator[Made]:
    yield _made("output: JSON", replace(BASE, output=OutputFormat(kind="json")))
    named = OutputFormat(kind="json_schema", name="weather", schema=CLOSED, strict=True)
    strict = replace(named, name=None)
    forms = (named, replace(named, strict=None), strict, replace(strict, strict=None))
    yield _made("output: JSON of a schema", *(replace(BASE, output=form) for form in forms))
    yield _made("verbosity", replace(BASE, verbosity="low"))


def _around(_: Origin) -> Iterator[Made]:
    yield _made("user", replace(BASE, user="ada"))
    yield _made("metadata", replace(BASE, metadata={"ticket": "7"}))
    yield _made("service tier", replace(BASE, service_tier="priority"))
    yield _made("store", replace(BASE, store=True))
    yield _made("goes on from a stored answer", replace(BASE, previous="resp_1"))
    yield _made("cache mark for the whole", replace(BASE, cache=CacheMark()))
    yield _made("cache key", replace(BASE, cache_key="weather"))
    sound = MediaOutput(modalities=("text", "audio"), voice="alloy", audio_format="wav")
    forms = (sound, MediaOutput(modalities=("text", "image")), MediaOutput(modalities=("image",)))
    yield _made("media of the answer", *(replace(BASE, media=form) for form in forms))


_GROUPS: Final = {
    "Turns": _turns,
    "Content": _content,
    "Reasoning": _reasoning,
    "Tools": _tools,
    "Sampling": _sampling,
    "Output": _output,
    "Around it": _around,
}


def _said(*turns: Message) -> Request:
    return replace(BASE, messages=turns)


def _history(*parts: Part) -> Request:
    """Return a request that follows an answer of these parts."""
    return _said(BASE.messages[0], turn("assistant", *parts), AGAIN)


def _called(*content: Part, later: tuple[Message, ...] = (), is_error: bool | None = None) -> Request:
    """Return a request with a call and its result."""
    result = ToolResult(call_id=CALL.id, name=CALL.name, content=content, is_error=is_error)
    return replace(WITH_TOOLS, messages=(*BASE.messages, turn("assistant", CALL), turn("tool", result), *later))
