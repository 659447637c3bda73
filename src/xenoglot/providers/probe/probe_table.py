"""The table of probes: what a server may accept or reject, as pairs of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import CacheMark, Image, Inline, Text, ToolCall, ToolResult
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling, Tool
from xenoglot.providers.probe.ab_test import Effect, ProbeItem, hidden
from xenoglot.providers.probe.dialect_client import NONSENSE, DialectClient, parts_of, said
from xenoglot.providers.probe.exchange import ProbeAnswer
from xenoglot.providers.probe.findings import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator


HELLO: Final = "Say hello in one word."

DOT: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w"
    "/SM9AAAAAElFTkSuQmCC"
)
"""A picture of nothing but red, as PNG: 32 pixels each way, for some servers refuse smaller ones."""

TOOLS: Final = ("tool", "tools")
"""What losses call tools that a dialect does not have."""

WORD: Final = "amber"
"""What nobody says unless a schema makes him."""

SCHEMA: Final[JSON] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}

WEATHER: Final = Tool(
    name="get_weather",
    description="Tells the weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)

_CLOSED: Final = Tool(name="pick", description="Picks a word.", parameters=SCHEMA, strict=True)
_CUSTOM: Final = Tool(name="note", description="Takes a note.", kind="custom")


class ProbeRow(Struct, frozen=True, kw_only=True):
    """One thing, as canonical requests.

    `asked` has it, `plain` has not (by default a greeting). `needs` are the losses by which a dialect says that it
    cannot be written; `target` what the encoder must be told so that it is, and a fact of it that may hold or not must
    show in the body. A `dear` one allows a long answer. The others are those of `ProbeItem`.
    """

    what: str
    words: str
    asked: Callable[[DialectClient], Request]
    plain: Callable[[DialectClient], Request] | None = None
    needs: tuple[str, ...] = ()
    target: dict[str, object] = {}
    spoils: tuple[tuple[str, JSON], ...] | None = None
    named: tuple[str, ...] = ()
    yes: JSONObject = {}
    no: JSONObject = {}
    ignored: JSONObject = {}
    scope: Scope = "server"
    effect: Callable[[ProbeAnswer], Effect] = hidden
    images: bool = False
    dear: bool = False


def things(speaker: DialectClient, *, images: bool) -> Iterator[tuple[ProbeItem, Callable[[ProbeAnswer], Effect]]]:
    """Yield what can be asked in the dialect of `speaker`, with what shows that it was done."""
    for row in ROWS:
        thing = thing_of(speaker, row) if images or not row.images else None
        if thing is not None:
            yield thing, row.effect


def thing_of(speaker: DialectClient, row: ProbeRow) -> ProbeItem | None:
    """Return the pair of requests that ask for a row; `None` where the dialect has no words for it."""
    request = row.asked(speaker)
    body = speaker.written(request, row.needs, **row.target)
    plain = speaker.written((row.plain or greeting)(speaker))
    opposite = {name: not value for name, value in row.target.items() if isinstance(value, bool)}
    if body is None or plain is None or (opposite and body == speaker.written(request, (), **opposite)):
        return None
    return ProbeItem(
        what=row.what,
        words=row.words,
        body=body,
        plain=plain,
        decoy=_decoy(speaker, body, plain) if row.dear else None,
        spoils=row.spoils,
        named=row.named,
        yes=row.yes,
        no=row.no,
        ignored=row.ignored,
        scope=row.scope,
    )


def _decoy(speaker: DialectClient, body: JSONObject, plain: JSONObject) -> JSONObject | None:
    """Return a short request with nonsense in what is new: whoever takes it would pass over the dear one too."""
    short = speaker.written(greeting(speaker))
    new = {key: NONSENSE for key, value in body.items() if plain.get(key) != value}
    nested = any(key in plain for key in new)
    return None if short is None or nested else short | new


def greeting(speaker: DialectClient) -> Request:
    """The plainest request."""
    return speaker.request(HELLO)


def with_tool(speaker: DialectClient) -> Request:
    """The plainest request with a tool."""
    return speaker.request(HELLO, tools=(WEATHER,))


def holds_to_schema(answer: ProbeAnswer) -> Effect:
    """Whether the text is what the schema alone allows."""
    try:
        found = decode_json(answer.text)
    except WireError:
        return "not seen"
    return "seen" if found == {"word": WORD} else "not seen"


def is_json(answer: ProbeAnswer) -> Effect:
    """Whether the text is a JSON object."""
    try:
        found = decode_json(answer.text)
    except WireError:
        return "not seen"
    return "seen" if isinstance(found, dict) else "not seen"


def tells_odds(answer: ProbeAnswer) -> Effect:
    """Whether the answer has likelihoods of its tokens."""
    return "seen" if any(isinstance(part, Text) and part.logprobs for part in parts_of(answer)) else "contrary"


def answers_twice(answer: ProbeAnswer) -> Effect:
    """Whether there are two answers."""
    return "seen" if answer.response is not None and len(answer.response.candidates) > 1 else "contrary"


def goes_on(answer: ProbeAnswer) -> Effect:
    """Whether the text goes on inside the word at which the turn was left."""
    return "seen" if answer.text.startswith("is") else "not seen"


def sees_red(answer: ProbeAnswer) -> Effect:
    """Whether the picture was looked at: it is red."""
    return "seen" if "red" in answer.text.lower() else "not seen"


def _with(**fields: object) -> Callable[[DialectClient], Request]:
    return lambda speaker: speaker.request(HELLO, **fields)


def _sampling(**fields: object) -> Callable[[DialectClient], Request]:
    return _with(sampling=Sampling(**fields))  # type: ignore[arg-type]


def _inline_system(speaker: DialectClient) -> Request:
    system = said("system", "Be brief.")
    return speaker.request(said("user", "Hello."), said("assistant", "Hello."), system, said("user", HELLO))


def _prefilled(speaker: DialectClient) -> Request:
    return speaker.request("What is the capital of France?", said("assistant", "The capital of France is Par"))


def _media_in_result(speaker: DialectClient) -> Request:
    call = ToolCall(id="call_1", name=WEATHER.name, arguments='{"city":"Lyon"}')
    result = ToolResult(call_id="call_1", name=WEATHER.name, content=(_dot(),))
    turns = (
        said("user", "Which colour has the map of the weather in Lyon?"),
        said("assistant", call),
        said("tool", result),
    )
    return speaker.request(*turns, tools=(WEATHER,))


def _dot() -> Image:
    return Image(source=Inline(data=DOT, media_type="image/png"))


ROWS: Final = (
    ProbeRow(
        what="developer_role",
        words="a turn of the `developer`",
        asked=lambda speaker: speaker.request(said("developer", "Be brief."), said("user", HELLO)),
        target={"developer_role": True},
        spoils=(("role", "developer"),),
        named=("developer", "role"),
        yes={"developer_role": True},
        no={"developer_role": False},
    ),
    ProbeRow(
        what="inline_system",
        words="a system turn between the others",
        asked=_inline_system,
        needs=("role", "turns"),
        spoils=(),
        named=("system", "role"),
        yes={"inline_system": True},
        no={"inline_system": False},
    ),
    ProbeRow(
        what="text_parts",
        words="a turn of two texts in a list",
        asked=lambda speaker: speaker.request(said("user", "Say hello", " in one word.")),
        target={"text_parts": True},
        spoils=(("type", "text"),),
        named=("content", "type"),
        yes={"text_parts": True},
        no={"text_parts": False},
    ),
    ProbeRow(
        what="strict_tools",
        words="a tool with `strict`",
        asked=_with(tools=(_CLOSED,)),
        plain=with_tool,
        needs=("strict", *TOOLS),
        spoils=(("strict", True),),
        yes={"strict_tools": True},
        no={"strict_tools": False},
    ),
    ProbeRow(
        what="custom_tools",
        words="a tool that takes free text",
        asked=_with(tools=(_CUSTOM,)),
        plain=with_tool,
        needs=TOOLS,
        target={"custom_tools": True},
        spoils=(("type", "custom"),),
        named=("custom", "type", "function"),
        yes={"custom_tools": True},
        no={"custom_tools": False},
    ),
    ProbeRow(
        what="parallel_tool_calls",
        words="`parallel_tool_calls`, which is no",
        asked=_with(tools=(WEATHER,), parallel_tool_calls=False),
        plain=with_tool,
        needs=("parallel_tool_calls", *TOOLS),
        named=("parallel",),
        yes={"parallel_tool_calls": True},
        no={"parallel_tool_calls": False},
    ),
    ProbeRow(
        what="cache_marks",
        words="a text with a cache mark",
        asked=lambda speaker: speaker.request(said("user", Text(text=HELLO, cache=CacheMark()))),
        target={"cache_marks": True},
        spoils=(("cache_control", {"type": "ephemeral"}), ("prompt_cache_breakpoint", {"mode": "explicit"})),
        named=("cache",),
        yes={"cache_marks": True},
        no={"cache_marks": False},
    ),
    ProbeRow(
        what="logprobs",
        words="the likelihoods of tokens",
        asked=_sampling(logprobs=True, top_logprobs=2),
        needs=("logprobs", "top_logprobs"),
        named=("logprob",),
        effect=tells_odds,
    ),
    ProbeRow(
        what="n",
        words="two answers at once",
        asked=_sampling(n=2),
        needs=("n",),
        named=("`n`", "'n'", "candidate", "choices"),
        yes={"fan_out": False},
        no={"fan_out": True},
        ignored={"fan_out": True},
        effect=answers_twice,
    ),
    ProbeRow(
        what="prefill",
        words="a last turn of the assistant, to be gone on with",
        asked=_prefilled,
        needs=("prefill", "turns"),
        target={"prefill": "native"},
        spoils=(),
        named=("assistant", "prefill", "last message"),
        yes={"prefill": "native"},
        no={"prefill": "none"},
        scope="model",
        effect=goes_on,
    ),
    ProbeRow(
        what="images",
        words="a small picture in the request",
        asked=lambda speaker: speaker.request(said("user", "Which colour is this?", _dot())),
        needs=("Image", "image", "media"),
        spoils=(),
        named=("image", "content", "multimodal", "vision"),
        effect=sees_red,
        yes={"images": True},
        no={"images": False},
        scope="model",
        images=True,
    ),
    ProbeRow(
        what="tool_result_media",
        words="a small picture in what a tool returned",
        asked=_media_in_result,
        needs=TOOLS,
        target={"tool_result_media": True},
        spoils=(),
        named=("image", "content", "tool"),
        yes={"tool_result_media": True},
        no={"tool_result_media": False},
        effect=sees_red,
        images=True,
    ),
)

EXTENDED: Final = {"top_k": 20, "min_p": 0.01, "repetition_penalty": 1.05}


def extended(*fields: str) -> ProbeRow:
    """Return a row that asks for sampling beyond what most dialects define."""
    return ProbeRow(
        what="extended_sampling",
        words=" and ".join(f"`{field}`" for field in fields),
        asked=_sampling(**{field: EXTENDED[field] for field in fields}),
        needs=fields,
        target={"extended_sampling": True},
        yes={"extended_sampling": True},
        no={"extended_sampling": False},
    )


SCHEMA_ROW: Final = ProbeRow(
    what="json_schema",
    words="an answer by a JSON schema that allows one only",
    asked=lambda speaker: speaker.request(
        "What is the weather like?",
        output=OutputFormat(kind="json_schema", name="answer", schema=SCHEMA, strict=True),
    ),
    plain=lambda speaker: speaker.request("What is the weather like?"),
    needs=("output", "schema", "kind"),
    named=("schema", "format"),
    yes={"json_schema": "native"},
    effect=holds_to_schema,
)

OBJECT_ROW: Final = ProbeRow(
    what="json_object",
    words="an answer that is any JSON object",
    asked=lambda speaker: speaker.request(
        "Describe amber as a JSON object with one key.", output=OutputFormat(kind="json")
    ),
    plain=lambda speaker: speaker.request("Describe amber as a JSON object with one key."),
    needs=("output", "kind"),
    named=("format", "json"),
    effect=is_json,
)
