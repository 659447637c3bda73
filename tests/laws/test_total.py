"""Total: each field of the canonical model, set alone, is written, or is a `Loss` at its path, or says nothing.

The fields are read from the structs, so that a new one is held to it from the day it exists: in every dialect and in
every backend that is not a server. What says nothing stands in `NEUTRAL`, each with its reason.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import NamedTuple

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tests.exact import exact
from tests.laws.scripted_runtimes import BACKENDS
from tests.laws.single_fields import SCHEMA, changes
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Text
from xenoglot.model.fold import unfold
from xenoglot.model.json import JSON
from xenoglot.model.request import MediaOutput, Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response, Usage

HI = Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),))
TOOLS = replace(HI, tools=(Tool(name="f", parameters=SCHEMA), Tool(name="g", parameters=SCHEMA)))
FORMAT = OutputFormat(kind="json_schema", schema={"type": "object"})


class Place(NamedTuple):
    """A struct within a request: its path, the struct before, how a request holds it, and values of some fields."""

    path: str
    base: Struct
    request: Callable[..., Request]
    values: Mapping[str, tuple[object, ...]] = MappingProxyType({})


PLACES = {
    "Request": Place("$", HI, lambda value: value, {"model": ("n",), "service_tier": ("auto", "default", "flex", "x")}),
    "Request with tools": Place("$", TOOLS, lambda value: value, {"model": ("n",)}),
    "Sampling": Place("$.sampling", Sampling(), lambda value: replace(HI, sampling=value)),
    "OutputFormat": Place("$.output", FORMAT, lambda value: replace(HI, output=value), {"kind": ()}),
    "Thinking": Place(
        "$.thinking",
        Thinking(),
        lambda value: HI if value == Thinking() else replace(HI, thinking=value),
        {"display": ("omitted", "summarized"), "summary": ("auto", "detailed")},
    ),
    "MediaOutput": Place(
        "$.media", MediaOutput(), lambda value: HI if value == MediaOutput() else replace(HI, media=value)
    ),
    "Tool": Place(
        "$.tools[0]", Tool(name="f", parameters=SCHEMA), lambda value: replace(HI, tools=(value,)), {"kind": ()}
    ),
    "ToolChoice": Place(
        "$.tool_choice",
        ToolChoice(mode="auto"),
        lambda value: replace(TOOLS, tool_choice=value),
        {"names": (("f",),), "kind": ()},
    ),
}
"""`kind` decides what the other fields of a struct mean, so it is not set alone: `Request` has a value of each kind."""

PROMPTED = "function of a prompt|function of a prompt and settings"
OWN = f"{PROMPTED}|engine with a tokenizer|transformers"
LOCAL = f"embedded|{OWN}"
ANYWHERE = ".*"

NEUTRAL: dict[tuple[str, str], str] = {
    (r"Request.*\.stream_usage=.*", ANYWHERE): "usage is always requested or sent; the client's own encoder heeds it",
    (r"Request.*\.output=OutputFormat\(kind='text'\)", ANYWHERE): "the default",
    (r"Request.*\.store=False", ANYWHERE): "the default where nothing is stored; `responses` writes it in any case",
    (r"Request.*\.tool_choice=ToolChoice\(mode='auto', .*", ANYWHERE): "the default where there are tools",
    (r"Request with tools\.tool_choice=ToolChoice\(mode='none', .*", PROMPTED): "no tools are shown in any case",
    (r"ToolChoice\.mode='none'", PROMPTED): "no tools are shown in any case",
    (r"Request.*\.model='n'", LOCAL): "the backend is one model",
    (r"Request.*\.stream=True", LOCAL): "the answer is made of events in any case",
    (r"Request with tools\.parallel_tool_calls=False", "embedded"): "the default of a model that knows no calls",
    (r"Request.*\.parallel_tool_calls=True", "ollama"): "the default: the model decides how many tools it calls",
    (r"OutputFormat\.strict=False", "chat|responses"): "written as false where the schema is not closed",
    (r"OutputFormat\.strict=.*", "embedded"): "decides on schemas that cannot be held, and this one can",
    (r"OutputFormat\.name='x'", "embedded"): "a label of the schema, for the client's own use",
    (r"Tool\.format=.*", ANYWHERE): "the grammar of a free-text tool; this one is a function",
    (r"Tool\.defer_loading=False", ANYWHERE): "the default: the model reads of the tool in the prompt",
    (r"Tool\.strict=False", ANYWHERE): "the default where the dialect has no such field, or writes it",
    (r"Tool\.strict=True", "embedded"): "arguments are held to the schema in any case",
    (r"Tool\..*", "engine with a tokenizer"): "its template shows the number of tools alone",
    (r"Sampling\.logprobs=False", ANYWHERE): "the default",
    (r"Sampling\.stop=.*", OWN): "the backend ends the answer itself",
    (r"Thinking\.(mode='disabled'|effort='none')", f"embedded|{PROMPTED}|engine with a tokenizer"): (
        "a model without a switch for thinking"
    ),
}
"""A field with its value, and the dialects and backends, as patterns, to the reason why it requests nothing there."""

CLIENTS_ONLY = ("function of a request",)
"""Backends that are given the whole request: the function heeds what it likes."""

USAGE = Usage(input_tokens=100, output_tokens=50)


class Outcome(NamedTuple):
    """What a model is asked, and what is lost; `None` where it is refused, of which the client is told."""

    wire: JSON
    losses: frozenset[Loss] = frozenset()


def encoded(dialect: str, request: Request) -> Outcome:
    """Return what a server of `dialect` is sent for `request`."""
    losses = Losses()
    try:
        wire = get(dialect).encode_request(fitted(request, dialect, Target(), losses), losses, Target())
    except (WireError, FailureError):
        return Outcome(None)
    return Outcome(wire, frozenset(losses))


async def recorded_request(kind: str, request: Request) -> Outcome:
    """Return what a backend asks its model for `request`; how it answers is no part of this."""
    losses = Losses()
    record: list[JSON] = []
    backend = BACKENDS[kind](record)
    try:
        answer = await backend.answer(Call(request=request, losses=losses))
        assert isinstance(answer, EventAnswer)
        async with aclosing(answer):
            async for _ in answer.batches:
                pass
    except (WireError, FailureError):
        return Outcome(record or None, frozenset(losses))
    finally:
        await backend.aclose()
    return Outcome(record, frozenset(losses))


def is_silent(path: str, before: Outcome, after: Outcome) -> bool:
    """Return whether the field at `path` changed nothing of what is asked, and is in no loss."""
    if after.wire is None or before.wire != after.wire:
        return False
    return not any(path.startswith(at) or at.startswith(path) for at in map(place_of, after.losses))


def place_of(loss: Loss) -> str:
    """Return the path of what was lost: a field, or the whole tool that it is of."""
    if loss.what == "tool":
        return loss.where
    return f"{loss.where}.{loss.what}"


async def silent(kind: str) -> AsyncIterator[str]:
    """Yield each field with its value that a dialect, or a backend, neither heeds nor reports."""

    async def outcome(request: Request) -> Outcome:
        return await recorded_request(kind, request) if kind in BACKENDS else encoded(kind, request)

    for name, place in PLACES.items():
        before = await outcome(place.request(place.base))
        for change in changes(place.base, place.values):
            after = await outcome(place.request(change.changed))
            if is_silent(f"{place.path}.{change.name}", before, after):
                yield f"{name}.{change.name}={shown(change.value)} ({kind})"


def shown(value: object) -> str:
    """Return a value in short: of a struct the fields that are set."""
    if not isinstance(value, Struct):
        return exact(value)
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    set_ones = [f"{name}={exact(field)}" for name, field in fields.items() if field not in (None, ())]
    return f"{type(value).__name__}({', '.join(set_ones)})"


def unexplained(lines: Iterable[str]) -> list[str]:
    """Return the lines that no row of `NEUTRAL` explains."""
    rows = [re.compile(rf"{field} \((?:{kinds})\)") for field, kinds in NEUTRAL]
    return sorted(line for line in lines if not any(row.fullmatch(line) for row in rows))


@pytest.mark.parametrize("kind", [*names(), *(kind for kind in BACKENDS if kind not in CLIENTS_ONLY)])
async def test_every_field_of_a_request_is_heeded_or_reported(kind: str) -> None:
    assert unexplained([line async for line in silent(kind)]) == []


async def test_a_function_of_requests_is_given_every_field() -> None:
    assert [line async for line in silent("function of a request")] == []


@pytest.mark.parametrize(("dialect", "stream"), [(name, stream) for name in names() for stream in (False, True)])
def test_every_field_of_usage_is_written_or_reported(dialect: str, *, stream: bool) -> None:
    before = answered(dialect, USAGE, stream=stream)
    lost = [
        change.name
        for change in changes(USAGE)
        if is_silent(f"$.usage.{change.name}", before, answered(dialect, change.changed, stream=stream))
    ]
    assert lost == []


def answered(dialect: str, usage: Usage, *, stream: bool) -> Outcome:
    """Return what a client of `dialect` is sent for an answer with `usage`."""
    candidate = Candidate(content=(Text(text="Hi"),), finish=Finish(reason="stop"))
    response = Response(id="a", model="m", created=1, candidates=(candidate,), usage=usage)
    losses, request = Losses(), replace(HI, stream=stream, stream_usage=stream or None)
    if not stream:
        return Outcome(get(dialect).encode_response(response, request, losses), frozenset(losses))
    encoder = get(dialect).stream_encoder(request, losses)
    wire = [frame.data for event in unfold(response) for frame in encoder.feed(event)]
    return Outcome([*wire, *(frame.data for frame in encoder.close())], frozenset(losses))
