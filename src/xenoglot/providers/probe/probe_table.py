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
from xenoglot.providers.probe.dialect_client import NONSENSE, DialectClient, make_message, parts_of
from xenoglot.providers.probe.exchange import ProbeAnswer
from xenoglot.providers.probe.findings import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator


HELLO: Final = "Say hello in one word."

DOT: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w"
    "/SM9AAAAAElFTkSuQmCC"
)
"""A red PNG image of 32 x 32 pixels, because some servers refuse smaller ones."""

TOOLS: Final = ("tool", "tools")
"""What losses call tools that a dialect does not have."""

WORD: Final = "amber"
"""A word that a model writes only if a schema requires it."""

SCHEMA: Final[JSON] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}

WEATHER: Final = Tool(
    name="get_weather",
    description="Returns the weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)

_CLOSED: Final = Tool(name="pick", description="Picks a word.", parameters=SCHEMA, strict=True)
_CUSTOM: Final = Tool(name="note", description="Takes a note.", kind="custom")


class ProbeRow(Struct, frozen=True, kw_only=True):
    """One thing, as canonical requests.

    `request` has it, `plain` has not (by default a greeting). `needs` are the losses by which a dialect reports that it
    cannot be written; `target` the facts that the encoder needs to write it, each of which must change the body. A
    `expensive` one allows a long answer. The others are those of `ProbeItem`.
    """

    what: str
    description: str
    request: Callable[[DialectClient], Request]
    plain: Callable[[DialectClient], Request] | None = None
    needs: tuple[str, ...] = ()
    target: dict[str, object] = {}
    invalid_fields: tuple[tuple[str, JSON], ...] | None = None
    named: tuple[str, ...] = ()
    yes: JSONObject = {}
    no: JSONObject = {}
    ignored: JSONObject = {}
    scope: Scope = "server"
    effect: Callable[[ProbeAnswer], Effect] = hidden
    images: bool = False
    expensive: bool = False


def probe_items(speaker: DialectClient, *, images: bool) -> Iterator[tuple[ProbeItem, Callable[[ProbeAnswer], Effect]]]:
    """Yield the tests that the dialect of `speaker` supports, each with the check of its effect."""
    for row in ROWS:
        thing = probe_item(speaker, row) if images or not row.images else None
        if thing is not None:
            yield thing, row.effect


def probe_item(speaker: DialectClient, row: ProbeRow) -> ProbeItem | None:
    """Return the pair of requests that ask for a row; `None` where the dialect has no words for it."""
    request = row.request(speaker)
    body = speaker.encode(request, row.needs, **row.target)
    plain = speaker.encode((row.plain or greeting)(speaker))
    opposite = {name: not value for name, value in row.target.items() if isinstance(value, bool)}
    if body is None or plain is None or (opposite and body == speaker.encode(request, (), **opposite)):
        return None
    return ProbeItem(
        what=row.what,
        description=row.description,
        body=body,
        plain=plain,
        decoy=_decoy(speaker, body, plain) if row.expensive else None,
        invalid_fields=row.invalid_fields,
        named=row.named,
        yes=row.yes,
        no=row.no,
        ignored=row.ignored,
        scope=row.scope,
    )


def _decoy(speaker: DialectClient, body: JSONObject, plain: JSONObject) -> JSONObject | None:
    """Return a short request with an invalid value in the tested field; a server that accepts it ignores the field."""
    short = speaker.encode(greeting(speaker))
    new = {key: NONSENSE for key, value in body.items() if plain.get(key) != value}
    nested = any(key in plain for key in new)
    return None if short is None or nested else short | new


def greeting(speaker: DialectClient) -> Request:
    """The plainest request."""
    return speaker.request(HELLO)


def with_tool(speaker: DialectClient) -> Request:
    """The plainest request with a tool."""
    return speaker.request(HELLO, tools=(WEATHER,))


def follows_schema(answer: ProbeAnswer) -> Effect:
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


def has_logprobs(answer: ProbeAnswer) -> Effect:
    """Whether the answer has likelihoods of its tokens."""
    return "seen" if any(isinstance(part, Text) and part.logprobs for part in parts_of(answer)) else "contrary"


def answers_twice(answer: ProbeAnswer) -> Effect:
    """Whether there are two answers."""
    return "seen" if answer.response is not None and len(answer.response.candidates) > 1 else "contrary"


def continues_prefill(answer: ProbeAnswer) -> Effect:
    """Whether the text continues inside the word at which the turn ended."""
    return "seen" if answer.text.startswith("is") else "not seen"


def sees_red(answer: ProbeAnswer) -> Effect:
    """Whether the answer names the colour of the image, red."""
    return "seen" if "red" in answer.text.lower() else "not seen"


def _with(**fields: object) -> Callable[[DialectClient], Request]:
    return lambda speaker: speaker.request(HELLO, **fields)


def _sampling(**fields: object) -> Callable[[DialectClient], Request]:
    return _with(sampling=Sampling(**fields))  # type: ignore[arg-type]


def _inline_system(speaker: DialectClient) -> Request:
    system = make_message("system", "Be brief.")
    return speaker.request(
        make_message("user", "Hello."), make_message("assistant", "Hello."), system, make_message("user", HELLO)
    )


def _prefilled(speaker: DialectClient) -> Request:
    return speaker.request("What is the capital of France?", make_message("assistant", "The capital of France is Par"))


def _media_in_result(speaker: DialectClient) -> Request:
    call = ToolCall(id="call_1", name=WEATHER.name, arguments='{"city":"Lyon"}')
    result = ToolResult(call_id="call_1", name=WEATHER.name, content=(_dot(),))
    turns = (
        make_message("user", "Which colour has the map of the weather in Lyon?"),
        make_message("assistant", call),
        make_message("tool", result),
    )
    return speaker.request(*turns, tools=(WEATHER,))


def _dot() -> Image:
    return Image(source=Inline(data=DOT, media_type="image/png"))


ROWS: Final = (
    ProbeRow(
        what="developer_role",
        description="a turn of the `developer`",
        request=lambda speaker: speaker.request(make_message("developer", "Be brief."), make_message("user", HELLO)),
        target={"developer_role": True},
        invalid_fields=(("role", "developer"),),
        named=("developer", "role"),
        yes={"developer_role": True},
        no={"developer_role": False},
    ),
    ProbeRow(
        what="inline_system",
        description="a system turn between the others",
        request=_inline_system,
        needs=("role", "turns"),
        invalid_fields=(),
        named=("system", "role"),
        yes={"inline_system": True},
        no={"inline_system": False},
    ),
    ProbeRow(
        what="text_parts",
        description="a turn of two texts in a list",
        request=lambda speaker: speaker.request(make_message("user", "Say hello", " in one word.")),
        target={"text_parts": True},
        invalid_fields=(("type", "text"),),
        named=("content", "type"),
        yes={"text_parts": True},
        no={"text_parts": False},
    ),
    ProbeRow(
        what="strict_tools",
        description="a tool with `strict`",
        request=_with(tools=(_CLOSED,)),
        plain=with_tool,
        needs=("strict", *TOOLS),
        invalid_fields=(("strict", True),),
        yes={"strict_tools": True},
        no={"strict_tools": False},
    ),
    ProbeRow(
        what="custom_tools",
        description="a tool that takes free text",
        request=_with(tools=(_CUSTOM,)),
        plain=with_tool,
        needs=TOOLS,
        target={"custom_tools": True},
        invalid_fields=(("type", "custom"),),
        named=("custom", "type", "function"),
        yes={"custom_tools": True},
        no={"custom_tools": False},
    ),
    ProbeRow(
        what="parallel_tool_calls",
        description="`parallel_tool_calls`, which is no",
        request=_with(tools=(WEATHER,), parallel_tool_calls=False),
        plain=with_tool,
        needs=("parallel_tool_calls", *TOOLS),
        named=("parallel",),
        yes={"parallel_tool_calls": True},
        no={"parallel_tool_calls": False},
    ),
    ProbeRow(
        what="cache_marks",
        description="a text with a cache mark",
        request=lambda speaker: speaker.request(make_message("user", Text(text=HELLO, cache=CacheMark()))),
        target={"cache_marks": True},
        invalid_fields=(("cache_control", {"type": "ephemeral"}), ("prompt_cache_breakpoint", {"mode": "explicit"})),
        named=("cache",),
        yes={"cache_marks": True},
        no={"cache_marks": False},
    ),
    ProbeRow(
        what="logprobs",
        description="the likelihoods of tokens",
        request=_sampling(logprobs=True, top_logprobs=2),
        needs=("logprobs", "top_logprobs"),
        named=("logprob",),
        effect=has_logprobs,
    ),
    ProbeRow(
        what="n",
        description="two answers at once",
        request=_sampling(n=2),
        needs=("n",),
        named=("`n`", "'n'", "candidate", "choices"),
        yes={"fan_out": False},
        no={"fan_out": True},
        ignored={"fan_out": True},
        effect=answers_twice,
    ),
    ProbeRow(
        what="prefill",
        description="a last turn of the assistant, to be continued",
        request=_prefilled,
        needs=("prefill", "turns"),
        target={"prefill": "native"},
        invalid_fields=(),
        named=("assistant", "prefill", "last message"),
        yes={"prefill": "native"},
        no={"prefill": "none"},
        scope="model",
        effect=continues_prefill,
    ),
    ProbeRow(
        what="images",
        description="a small image in the request",
        request=lambda speaker: speaker.request(make_message("user", "Which colour is this?", _dot())),
        needs=("Image", "image", "media"),
        invalid_fields=(),
        named=("image", "content", "multimodal", "vision"),
        effect=sees_red,
        yes={"images": True},
        no={"images": False},
        scope="model",
        images=True,
    ),
    ProbeRow(
        what="tool_result_media",
        description="a small image in the result of a tool",
        request=_media_in_result,
        needs=TOOLS,
        target={"tool_result_media": True},
        invalid_fields=(),
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
        description=" and ".join(f"`{field}`" for field in fields),
        request=_sampling(**{field: EXTENDED[field] for field in fields}),
        needs=fields,
        target={"extended_sampling": True},
        yes={"extended_sampling": True},
        no={"extended_sampling": False},
    )


SCHEMA_ROW: Final = ProbeRow(
    what="json_schema",
    description="an answer by a JSON schema that allows one only",
    request=lambda speaker: speaker.request(
        "What is the weather like?",
        output=OutputFormat(kind="json_schema", name="answer", schema=SCHEMA, strict=True),
    ),
    plain=lambda speaker: speaker.request("What is the weather like?"),
    needs=("output", "schema", "kind"),
    named=("schema", "format"),
    yes={"json_schema": "native"},
    effect=follows_schema,
)

OBJECT_ROW: Final = ProbeRow(
    what="json_object",
    description="an answer that is any JSON object",
    request=lambda speaker: speaker.request(
        "Describe amber as a JSON object with one key.", output=OutputFormat(kind="json")
    ),
    plain=lambda speaker: speaker.request("Describe amber as a JSON object with one key."),
    needs=("output", "kind"),
    named=("format", "json"),
    effect=is_json,
)
