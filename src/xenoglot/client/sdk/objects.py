"""Classes of the official SDKs: the dialect of each, and conversion of their objects to JSON and back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args, get_origin

import msgspec

from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import ConfigurationError, WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

Sdk: TypeAlias = Literal["openai", "openai_responses", "openai_completions", "anthropic", "gemini", "ollama"]


class Objects(msgspec.Struct, frozen=True):
    """The classes of an SDK for a dialect: their module, the class of complete answers and that of chunks."""

    dialect: str
    module: str
    response: str
    chunk: str
    homes: tuple[str, ...]
    """Modules in which only classes of this SDK are defined."""


SDKS: Final[Mapping[Sdk, Objects]] = {
    "openai": Objects("chat", "openai.types.chat", "ChatCompletion", "ChatCompletionChunk", ("openai.types.chat",)),
    "openai_responses": Objects(
        "responses", "openai.types.responses", "Response", "ResponseStreamEvent", ("openai.types.responses",)
    ),
    "openai_completions": Objects(
        "completions", "openai.types", "Completion", "Completion", ("openai.types.completion",)
    ),
    "anthropic": Objects("messages", "anthropic.types", "Message", "RawMessageStreamEvent", ("anthropic.types",)),
    "gemini": Objects(
        "gemini", "google.genai.types", "GenerateContentResponse", "GenerateContentResponse", ("google.genai.types",)
    ),
    "ollama": Objects("ollama", "ollama", "ChatResponse", "ChatResponse", ("ollama._types",)),
}
_OURS: Final = ("sdkHttpResponse", "automaticFunctionCallingHistory", "parsed")
"""Fields that Google's SDK adds to an answer."""


_ROUNDS: Final = 8
"""Most passes that remove refused fields: each pass reports only some."""


def module_of(row: Objects) -> JSON:
    """Return the module of an SDK's classes. Raises `ConfigurationError` if it is not installed."""
    try:
        return import_module(row.module)
    except ImportError:
        package = "google-genai" if row.dialect == "gemini" else row.module.partition(".")[0]
        raise ConfigurationError(f"the SDK is not installed: `pip install {package}`") from None


def row_of(found: object) -> Objects | None:
    """Return the SDK and dialect of `found`; helper classes that derive from an SDK's class match too."""
    for kind in type(found).__mro__:
        for row in SDKS.values():
            if kind.__module__.startswith(row.homes):
                return row
    return None


def to_json(found: object) -> JSONObject:
    """Return the JSON of an SDK's object: the fields that were set, under their wire names."""
    return {name: value for name, value in builtins(found).items() if name not in _OURS}


def builtins(value: object) -> JSON:
    """Return a value that may contain SDK objects as JSON.

    Raises:
        TypeError: it contains another object.
    """
    return msgspec.to_builtins(value, enc_hook=_dumped, str_keys=True)


def _dumped(value: object) -> JSON:
    """Return the fields of a pydantic model; bytes stay bytes, and become the base64 that wires have."""
    if not hasattr(value, "model_dump"):
        raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} is nothing that an SDK sends")
    nulls = type(value).__module__.startswith(("google.", "ollama."))  # what they do not say is `None` there
    return cast("Any", value).model_dump(by_alias=True, exclude_unset=True, exclude_none=nulls, warnings=False)


def build(kind: JSON, body: JSONObject, losses: Losses) -> object:
    """Return `body` as an object of the class `kind`; for a union, of the member that its `type` names.

    Raises:
        WireError: a required field is missing.
    """
    if get_origin(kind) is not None:
        kind = _member(kind, body)
    if hasattr(kind, "construct") and kind.model_config.get("extra") == "allow":
        return kind.construct(
            **body
        )  # of OpenAI's and Anthropic's: nested, lenient, and it keeps what it does not know
    found = _validated(kind, body, losses)
    for name in sorted(set(_names(body)) - set(_names(builtins(found)))):
        losses.dropped("$", name, _WHY)
    return found


def _member(union: JSON, body: JSONObject) -> JSON:
    """Return the class of `union` whose `type` is that of `body`; the first if none matches, as the SDKs do."""
    members = get_args(union)
    if get_origin(members[0]) is not None:  # the union itself is annotated
        members = get_args(members[0])
    for member in members:
        if body.get("type") in get_args(member.model_fields["type"].annotation):
            return member
    return members[0]


def _validated(kind: JSON, body: JSONObject, losses: Losses) -> object:
    """Return an object of a class that refuses unknown fields, without them, as Google's SDK does."""
    problems: JSON = []
    for _ in range(_ROUNDS):
        try:
            return kind.model_validate_json(encode_json(body))
        except ValueError as error:
            listed: Any = getattr(error, "errors", list)
            problems = listed(include_url=False, include_input=False)
        wrong = [problem["loc"] for problem in problems if problem["type"] != "missing"]
        if not wrong:
            break
        for steps in wrong:
            if _drop(body, steps):
                losses.dropped("$", str(steps[-1]), _WHY)
    where = ".".join(str(step) for problem in problems[:1] for step in problem["loc"])
    raise WireError(f"$.{where}", f"`{kind.__name__}` does not take the answer without it, or as it is")


_WHY: Final = "the class of the SDK does not take it"


def _drop(value: JSON, steps: tuple[str | int, ...]) -> bool:
    """Remove the value at `steps`, if it exists: some steps are names of types, not of fields."""
    for step in steps[:-1]:
        if not _has(value, step):
            return False
        value = value[step]
    found = _has(value, steps[-1])
    if found:
        del value[steps[-1]]
    return found


def _has(value: JSON, step: str | int) -> bool:
    return step in value if isinstance(value, dict) else isinstance(value, list) and step in range(len(value))


def _names(value: JSON) -> Iterator[str]:
    """Yield the names of all fields in a value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)
