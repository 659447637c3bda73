"""Conversion between the call arguments of the official SDKs and requests.

OpenAI's, Anthropic's and Ollama's arguments are the fields of their wire format, with SDK objects among them. Google's
are not: the fields of `config` are split on the wire.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Final

from xenoglot.client.sdk.objects import SDKS, builtins, module_of
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import encode_fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.client.sdk.objects import Sdk
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

_TRANSPORT_OPTIONS: Final = ("extra_headers", "extra_query", "timeout")
"""Arguments that control sending and are not part of the request."""

_UNSAID: Final = ("NotGiven", "Omit")

_CALLS: Final[Mapping[Sdk, tuple[str, str, str]]] = {
    "openai": ("openai.resources.chat.completions", "Completions", "create"),
    "openai_responses": ("openai.resources.responses", "Responses", "create"),
    "openai_completions": ("openai.resources.completions", "Completions", "create"),
    "anthropic": ("anthropic.resources.messages", "Messages", "create"),
    "ollama": ("ollama", "Client", "chat"),
}

_TOP_LEVEL: Final = (
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
)
"""Fields of Google's `config` that are outside `generationConfig` on the wire."""

_OF_THE_CLIENT: Final = ("httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling")


def request_from_sdk(sdk: Sdk, **arguments: object) -> Request:
    """Return the request that an SDK's call with these arguments would send.

    The calls are `create`, for Ollama `chat`, and for Google `models.generate_content`.

    Raises:
        TypeError: an argument that no SDK sends, like a function.
        WireError: not a valid request of its dialect; the error has the path.
    """
    further = builtins(arguments.pop("extra_body", None)) or {}
    said = {
        name: builtins(value)
        for name, value in arguments.items()
        if name not in _TRANSPORT_OPTIONS and type(value).__name__ not in _UNSAID
    }
    body = _google_body(said) if sdk == "gemini" else said
    return get(SDKS[sdk].dialect).decode_request(body | further)


def arguments_for_sdk(sdk: Sdk, request: Request, losses: Losses | None = None) -> JSONObject:
    """Return the arguments of an SDK's call that sends `request`; unsupported features are added to `losses`.

    Fields without an argument go into `extra_body`, if the call has it.

    Raises:
        ConfigurationError: the SDK is not installed.
        WireError: the dialect cannot express the request.
        LossError: something is lost, and `losses` are strict.
    """
    losses, row = Losses() if losses is None else losses, SDKS[sdk]
    module = module_of(row)
    body = encode_fitted(get(row.dialect), request, Target(), losses)
    if sdk == "gemini":
        arguments = _google_arguments(module, body, request.model)
    else:
        home, name, call = _CALLS[sdk]
        arguments = _parted(body, signature(getattr(getattr(import_module(home), name), call)).parameters, losses)
    losses.settle()
    return arguments


def _parted(body: JSONObject, known: Iterable[str], losses: Losses) -> JSONObject:
    """Return the fields as arguments, those without one apart."""
    names = set(known)
    arguments = {name: value for name, value in body.items() if name in names}
    further = {name: value for name, value in body.items() if name not in names}
    if further and "extra_body" in names:
        arguments["extra_body"] = further
    else:
        for name in further:
            losses.dropped("$", name, "the call of the SDK has no argument for it")
    return arguments


def _google_arguments(types: JSON, body: JSONObject, model: str) -> JSONObject:
    """Return `model`, `contents` and `config` as objects: their fields have names of their own in Python."""
    config: JSONObject = {name: body[name] for name in _TOP_LEVEL if name in body}
    config |= body.get("generationConfig", {})
    contents = [types.Content.model_validate_json(encode_json(one)) for one in body.get("contents", [])]
    return {
        "model": model,
        "contents": contents,
        "config": types.GenerateContentConfig.model_validate_json(encode_json(config)),
    }


def _google_body(said: JSONObject) -> JSONObject:
    given: JSONObject = said.get("config") or {}
    config: JSONObject = {_camel(name): value for name, value in given.items()}
    beside: JSONObject = {name: config.pop(name) for name in _TOP_LEVEL if name in config}
    if "systemInstruction" in beside:
        beside["systemInstruction"] = {"parts": _google_parts(beside["systemInstruction"])}
    settings = {name: value for name, value in config.items() if name not in _OF_THE_CLIENT}
    body = {"model": said.get("model"), "contents": _google_contents(said.get("contents")), **beside}
    return {**body, "generationConfig": settings} if settings else body


def _google_contents(value: JSON) -> JSON:
    """Return messages; Google's SDK accepts a text, a part or a list of these for a user message."""
    turns: list[JSON] = []
    loose: list[JSON] = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict) and "parts" in one:
            turns += [{"role": "user", "parts": loose}] if loose else []
            turns.append(one)
            loose = []
        else:
            loose += _google_parts(one)
    return [*turns, *([{"role": "user", "parts": loose}] if loose else [])]


def _google_parts(value: JSON) -> list[JSON]:
    if isinstance(value, dict) and "parts" in value:
        parts: list[JSON] = value["parts"]
        return parts
    listed = value if isinstance(value, list) else [value]
    return [{"text": one} if isinstance(one, str) else one for one in listed]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
