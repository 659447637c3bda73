"""Options of a call, and the request that they build from them and the messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, cast, get_args

import msgspec
from msgspec import Struct

from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.client.call.messages import messages_of, texts_of_system
from xenoglot.client.call.tools import decode_tools, tool_choice_of, tools_of
from xenoglot.client.call.validate_request import find_invalid_field, wire_error
from xenoglot.codec.requests.checks import MOST_TOKENS, bounded
from xenoglot.codec.requests.encode_context import ADDED
from xenoglot.errors import WireError
from xenoglot.http1.syntax import CONNECTION_FIELDS, NOT_IN_VALUES, TOKEN
from xenoglot.model.content import Extra
from xenoglot.model.json import JSONObject  # at run time: `typing.get_type_hints(Options)` needs it
from xenoglot.model.request import Effort, MediaOutput, OutputFormat, Request, Sampling, Thinking

if TYPE_CHECKING:
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.tools import AnyTool, Choice
    from xenoglot.tools.budget import Budget, RunSpend
    from xenoglot.tools.compaction import Compaction
    from xenoglot.tools.events import Order
    from xenoglot.tools.run_options import Approver


class CallOptions(TypedDict, total=False):
    """The options of every call of a model, except `tools` and `output`. `Client.complete` describes each."""

    model: str | None
    system: str | Sequence[JSONObject] | None
    tool_choice: Choice | None
    parallel_tool_calls: bool | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    seed: int | None
    stop: str | Sequence[str] | None
    n: int | None
    frequency_penalty: float | None
    presence_penalty: float | None
    repetition_penalty: float | None
    logit_bias: Mapping[str | int, float] | None
    logprobs: bool | None
    top_logprobs: int | None
    thinking: Thinking | Effort | Mapping[str, Any] | None
    media: MediaOutput | Mapping[str, Any] | None
    verbosity: str | None
    user: str | None
    metadata: JSONObject | None
    service_tier: str | None
    cache_key: str | None
    store: bool | None
    previous: str | None
    extra: JSONObject | None
    headers: Mapping[str, str] | None
    timeout: float | Deadlines | None


class ModelOptions(CallOptions, total=False):
    """The options of `parse`: those of every call, and the tools."""

    tools: Sequence[AnyTool] | None


class Options(ModelOptions, total=False):
    """The options of `complete`, `stream` and `count_tokens`."""

    output: OutputFormat | Mapping[str, Any] | type[Any] | str | None


class ToolRunOptions(CallOptions, total=False):
    """The options of `run` and `run_stream`: those of every call, and those of the tool loop."""

    output: OutputFormat | Mapping[str, Any] | type[Any] | str | None
    max_rounds: int
    on_limit: Literal["end", "answer"]
    budget: Budget | None
    spent: RunSpend | None
    parallel: bool
    order: Order
    time_limit: float | None
    result_limit: int
    continue_length: bool
    compaction: Compaction | None
    approve: Approver | None


TOOL_RUN_DEFAULTS: Final[Mapping[str, object]] = {
    "max_rounds": 16,
    "on_limit": "end",
    "parallel": True,
    "order": "call",
    "result_limit": 100_000,
    "continue_length": True,
}
"""Defaults of `ToolRunOptions` that are not `None`, so that plain clients do not load the tool loop."""

_NAMES = Options.__optional_keys__
T = TypeVar("T")

_OTHER_NAMES: dict[str, str] = {
    "max_completion_tokens": "`max_tokens`",
    "max_output_tokens": "`max_tokens`",
    "stream": "the call `stream`",
    "response_format": "`output`",
    "output_format": "`output`",
    "text_format": "`output`",
    "reasoning": "`thinking`",
    "reasoning_effort": "`thinking`",
    "stop_sequences": "`stop`",
    "modalities": "`media`",
    "functions": "`tools`",
    "function_call": "`tool_choice`",
    "instructions": "`system`",
    "previous_response_id": "`previous`",
    "prompt_cache_key": "`cache_key`",
    "extra_body": "`extra`",
    "extra_headers": "`headers`",
    "api_key": "`key` of the client",
    "base_url": "the client's first argument",
    "api_base": "the client's first argument",
    "max_retries": "`retry` of the client",
    "num_retries": "`retry` of the client",
}
"""Option names of other libraries, and ours."""

_SAMPLING = frozenset(Sampling.__struct_fields__)


class _Plain(Struct, kw_only=True):
    """Options that are fields of a request unchanged; `extra` is dialect-specific."""

    parallel_tool_calls: bool | None = None
    media: MediaOutput | None = None
    verbosity: str | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    cache_key: str | None = None
    store: bool | None = None
    previous: str | None = None
    model: str | None = None
    extra: dict[str, Any] | None = None


_PLAIN = frozenset(_Plain.__struct_fields__)


class CallRequest(Struct, frozen=True, kw_only=True):
    """A request, and the options that are not part of it."""

    request: Request
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float | Deadlines | None = None


def build_request(messages: Messages, options: Options, *, model: str, dialect: str, stream: bool) -> CallRequest:
    """Return the request and its options; `model` and `dialect` are the upstream's defaults.

    Raises:
        WireError: a message or an option is not valid; the error has its path.
        TypeError: unknown option.
    """
    check_names(options)
    said = cast("dict[str, Any]", {name: value for name, value in options.items() if value is not None})
    request = messages if isinstance(messages, Request) else Request(model="", messages=messages_of(messages))
    plain = {name: said[name] for name in said.keys() & _PLAIN}
    if plain:
        checked = _checked(plain, _Plain)
        if checked.media is not None:
            plain["media"] = checked.media
    fields: dict[str, Any] = {name: value for name, value in plain.items() if name not in {"model", "extra"}}
    if "system" in said:
        fields["messages"] = (*texts_of_system(said["system"]), *request.messages)
    if "tools" in said:
        fields["tools"] = tools_of(said["tools"], dialect)
    if "tool_choice" in said:
        fields["tool_choice"] = tool_choice_of(said["tool_choice"])
    if "output" in said:
        fields["output"] = output_of(said["output"])
    if "thinking" in said:
        fields["thinking"] = _thinking(said["thinking"])
    if "extra" in said:
        fields["extra"] = _added(request.extra, dict(said["extra"]), dialect)
    named = said.get("model") or request.model or model
    sampling = _sampling(request.sampling, {name: said[name] for name in said.keys() & _SAMPLING})
    made = msgspec.structs.replace(
        request, **fields, model=named, sampling=sampling, stream=stream, stream_usage=stream or None
    )
    with find_invalid_field(made):
        bounded(made)
    return CallRequest(request=made, headers=headers_of(said.get("headers")), timeout=timeout_of(said.get("timeout")))


def check_names(options: Mapping[str, object]) -> None:
    """Raise `TypeError` for an unknown option."""
    for name in options:
        if name not in _NAMES:
            near = (
                [_OTHER_NAMES[name]]
                if name in _OTHER_NAMES
                else [f"`{one}`" for one in get_close_matches(name, _NAMES, n=1)]
            )
            raise TypeError(f"there is no option `{name}`" + (f"; did you mean {near[0]}?" if near else ""))


def output_of(said: object) -> OutputFormat:
    """Return the form that the answer is to have.

    Raises:
        WireError: that is none.
    """
    match said:
        case OutputFormat():
            return said
        case "text" | "json":
            return OutputFormat(kind="text" if said == "text" else "json")
        case Mapping() if said.get("type") in ("text", "json_object", "json_schema"):
            return _format(dict(said))
        case Mapping():
            return OutputFormat(kind="json_schema", schema=dict(said), name="answer")
        case str():
            raise WireError("$.output", f"found `{said[:60]}`; expected `text`, `json`, a schema or a type")
        case _:
            from xenoglot.client.results.schemas import schema_of  # noqa: PLC0415  few calls have a type

            return schema_of(said)


def _format(said: JSONObject) -> OutputFormat:
    """Return the form of an answer as OpenAI's dialects or `messages` have it, which is no schema of one itself."""
    try:
        if "json_schema" in said or said["type"] != "json_schema":
            request = decode_tools("chat", {"response_format": said})
        else:
            request = decode_tools("responses", {"text": {"format": {"name": "answer"} | said}})
    except WireError as error:
        raise WireError("$.output", error.problem) from None
    return request.output or OutputFormat(kind="text")


def headers_of(said: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return header fields as they are sent.

    Raises:
        WireError: one of them cannot be sent; its value is not repeated.
    """
    given: object = said or {}
    if not isinstance(given, Mapping):
        raise WireError("$.headers", f"found a `{type(said).__name__}`; expected a dict")
    return tuple([_header(name, value) for name, value in given.items()])


def _header(name: object, value: object) -> tuple[str, str]:
    where = f"$.headers[{str(name)[:60]!r}]"
    if not isinstance(name, str) or not TOKEN.fullmatch(name):
        raise WireError(where, "is no name of a header field")
    if name.lower() in CONNECTION_FIELDS:
        raise WireError(where, "belongs to the connection, and is written by the transport")
    if not isinstance(value, str) or NOT_IN_VALUES.search(value):
        raise WireError(where, "is no text that a header field can have")
    return name.lower(), value


def _added(extra: Extra | None, said: JSONObject, dialect: str) -> Extra:
    """Return the `extra` of a request, extended by options; its dialect stays."""
    if extra is None or extra.dialect != dialect:
        return Extra(dialect=dialect, fields=said, form={ADDED: True})
    return msgspec.structs.replace(extra, fields=extra.fields | said)


def _sampling(base: Sampling, said: dict[str, Any]) -> Sampling:
    if not said:
        return base
    if isinstance(said.get("stop"), str):
        said["stop"] = (said["stop"],)
    if isinstance(biases := said.get("logit_bias"), Mapping):
        said["logit_bias"] = {str(token) if type(token) is int else token: bias for token, bias in biases.items()}
    for name, value in said.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise WireError(f"$.{name}", "is no finite number")
    told = _checked(said, Sampling)
    return msgspec.structs.replace(base, **{name: getattr(told, name) for name in said})


def _checked(said: dict[str, Any], kind: type[T]) -> T:
    """Return options as the fields of `kind`, type-checked."""
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError as error:
        raise wire_error(error) from None


def _reasoning(said: JSONObject) -> Request:
    """Return a request with the `thinking` of messages, or the `reasoning` of responses."""
    try:
        if "type" in said:
            return decode_tools("messages", {"thinking": said, "max_tokens": MOST_TOKENS})
        return decode_tools("responses", {"reasoning": said})
    except WireError as error:
        raise WireError("$.thinking", error.problem) from None


def _thinking(said: object) -> Thinking:
    match said:
        case Thinking():
            return said
        case str() if said in get_args(Effort):
            return Thinking(effort=cast("Effort", said))
        case Mapping():
            found = _reasoning(dict(said))
            if found.thinking is not None:
                return found.thinking
        case _:
            pass
    raise WireError("$.thinking", f"expected a `Thinking`, or one of: {', '.join(get_args(Effort))}")


def timeout_of(said: object) -> float | Deadlines | None:
    """Return the timeout of a call. Raises `WireError` for an invalid value."""
    if said is None or isinstance(said, Deadlines):
        return said
    if isinstance(said, bool) or not isinstance(said, int | float) or not said > 0:
        raise WireError("$.timeout", "expected seconds above 0, or `Deadlines`")
    return float(said)
