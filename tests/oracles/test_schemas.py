"""What we write obeys the schemas that vendors publish: answers, events, errors and lists of models."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from jsonschema_rs import Draft202012Validator
from msgspec import Struct
from msgspec.structs import replace
from openai.types.responses import ResponseCompactionCompactingEvent

from tests.laws.streams import HEADERS, streams
from tests.laws.vectors import Case, decoded, each
from tests.oracles.responses_sdk import as_documented
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get, names
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.events import Event
from xenoglot.model.failure import STATUS, Failure, FailureKind
from xenoglot.model.fold import fold
from xenoglot.model.json import JSON
from xenoglot.model.request import Request

FOLDER = Path(__file__).parent / "schemas"
ASKED = Request(model="m", stream=True, stream_usage=True)


class Published(Struct, frozen=True):
    """The names of the schemas of a dialect in its vendor's document; `None` where it has none."""

    document: str
    whole: str
    event: str | None
    error: str | None = None
    models: str | None = None


_PUBLISHED = {
    "chat": Published(
        "openai",
        "CreateChatCompletionResponse",
        "CreateChatCompletionStreamResponse",
        "ErrorResponse",
        "ListModelsResponse",
    ),
    # its pieces have the schema of the whole, which requires a reason of the end; OpenAI's own have none but the last
    "completions": Published("openai", "CreateCompletionResponse", None, "ErrorResponse"),
    "responses": Published("openai", "Response", "ResponseStreamEvent", "ErrorResponse"),
    "ollama": Published("ollama", "ChatResponse", "ChatStreamEvent", "ErrorResponse", "ListResponse"),
    "ollama_generate": Published("ollama", "GenerateResponse", "GenerateStreamEvent", "ErrorResponse"),
    "llama_stack": Published("llama_stack", "ChatCompletionResponse", "ChatCompletionResponseStreamChunk", "Error"),
    "llama_stack_completion": Published("llama_stack", "CompletionResponse", "CompletionResponseStreamChunk", "Error"),
}

PUBLISHED = {name: published for name, published in _PUBLISHED.items() if name in names()}


NEWER = {"response.compaction.compacting": ResponseCompactionCompactingEvent}
"""Events that the SDK has and the vendor's document has not."""

UNIONS = {"llama_stack"}
"""Documents whose `oneOf` are unions of Python's: in them 1 is an integer and a number too."""


def with_functions(value: JSON) -> JSON:
    """Return a chunk of chat with its free-text calls as functions: the document has no others in a stream."""
    for choice in value["choices"]:
        for call in choice.get("delta", {}).get("tool_calls", ()):
            if "custom" in call and "type" in call:
                call["type"] = "function"
    return value


SPOKEN = {"chat": with_functions, "responses": as_documented}
"""Dialect -> what is to be put right before the schema is asked, for the vendor's own servers do otherwise."""


@cache
def validator(document: str, schema: str) -> Draft202012Validator:
    text = (FOLDER / f"{document}.json").read_text(encoding="utf-8")
    schemas = json.loads(text.replace('"oneOf"', '"anyOf"') if document in UNIONS else text)
    return Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": {"schemas": schemas}})


def check(document: str, schema: str, value: JSON) -> None:
    """Demand that `value` obeys; the first few problems are told."""
    if isinstance(value, dict) and (newer := NEWER.get(str(value.get("type")))) is not None:
        assert newer.model_validate(value, strict=True).to_dict() == value
        return
    problems = [
        f"{error.instance_path}: {error.message}"[:400] for error in validator(document, schema).iter_errors(value)
    ]
    assert problems[:3] == [], json.dumps(value)[:2000]


def as_whole(value: JSON) -> JSON:
    """Return an event of the legacy API as its schema has it, which knows whole answers alone.

    Until the end there is no reason for it, and with `include_usage` no usage; its own servers write null there.
    """
    choices = [{**choice, "finish_reason": choice["finish_reason"] or "stop"} for choice in value["choices"]]
    return {key: item for key, item in value.items() if key != "usage" or item is not None} | {"choices": choices}


def check_answer(name: str, events: list[Event], asked: Request) -> None:
    """Write an answer in both ways and hold it against the schemas."""
    published, dialect, answer = PUBLISHED[name], get(name), fold(events)
    for event in through(events, dialect.stream_encoder(asked, Losses())):
        if published.event is not None and event.comment is None and event.data != b"[DONE]":
            value = decode_json(event.data)
            if "error" not in value:
                check(published.document, published.event, SPOKEN[name](value) if name in SPOKEN else value)
    if not isinstance(answer, Failure):
        whole = dialect.encode_response(answer, replace(asked, stream=False), Losses())
        check(published.document, published.whole, SPOKEN[name](whole) if name in SPOKEN else whole)


@each("stream.*")
def test_what_is_written_of_a_strangers_vector(case: Case) -> None:
    """At home a server's own departures from the schema go home as they came; there is nothing to hold them against."""
    for name in PUBLISHED:
        if case.folder.parent.name != name:
            asked = replace(case.asked(), stream=True, stream_usage=True)
            check_answer(name, decoded(case.dialect, [case.stream]), asked)


@pytest.mark.parametrize("name", PUBLISHED)
@settings(max_examples=80)
@given(events=streams(HEADERS, whole_arguments=True))
def test_what_is_written_of_any_stream(name: str, events: list[Event]) -> None:
    check_answer(name, events, ASKED)


@pytest.mark.parametrize("name", [name for name, published in PUBLISHED.items() if published.error])
@pytest.mark.parametrize("kind", STATUS)
def test_errors(name: str, kind: FailureKind) -> None:
    _, body = get(name).encode_error(Failure(kind=kind, message="no", param="$.messages[0]"))
    check(PUBLISHED[name].document, PUBLISHED[name].error or "", body)


@pytest.mark.parametrize("name", [name for name, published in PUBLISHED.items() if published.models])
def test_lists_of_models(name: str) -> None:
    models = (ModelInfo(id="a"), ModelInfo(id="b", display_name="B", created=7, owned_by="us", max_input_tokens=9))
    check(PUBLISHED[name].document, PUBLISHED[name].models or "", get(name).encode_models(models))
