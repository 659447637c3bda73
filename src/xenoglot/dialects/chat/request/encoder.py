"""Encodes requests."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.codec.fields import CORE, Fields
from xenoglot.codec.json.nested_extra import left
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.assistant_turns import turns_for
from xenoglot.codec.requests.custom_tools import wrap_custom
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.codec.requests.prompt_to_messages import as_turns
from xenoglot.codec.requests.system_turns import fold_system
from xenoglot.codec.schemas import is_strict
from xenoglot.dialects.chat.extras import NAME, own_fields
from xenoglot.dialects.chat.reasoning_effort import encode_thinking
from xenoglot.dialects.chat.request.message_encoder import MessageEncoder
from xenoglot.dialects.chat.tools import (
    encode_choice,
    encode_function_call,
    encode_functions,
    encode_tools,
)
from xenoglot.dialects.openai.sampling import encode_bias
from xenoglot.errors import WireError
from xenoglot.model.request import Request, Sampling

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import CacheMark
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import OutputFormat

USER_LIMIT = 64
"""The longest `user`; a longer one is written as its SHA-256, which is just as opaque (pitfall-23)."""

SCHEMA_NAME = "response"
"""The name of a schema that came without one: this dialect requires it."""

_STOP_LIMIT = 4
_PLAIN = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "n")
_EXTENDED = ("top_k", "min_p", "repetition_penalty")
_OPTIONS = {
    "verbosity": "verbosity",
    "metadata": "metadata",
    "service_tier": "service_tier",
    "store": "store",
    "cache_key": "prompt_cache_key",
}
"""Fields of a request that go as they are, by our names and those of the wire."""

_REQUEST = Fields(Request, "$", (*CORE, *_OPTIONS, "parallel_tool_calls", "thinking", "user", "cache"))
_SAMPLING = Fields(Sampling, "$.sampling", (*_PLAIN, *_EXTENDED, "max_tokens", "logit_bias", "stop"))


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server.

    One that came in this dialect goes out as it came, except for what a `target` other than the default demands.

    Raises:
        WireError: something cannot be asked of the server at all.
    """
    home = came_from(request, NAME)
    request = as_turns(request, losses)
    crossing = EncodeContext(losses, target, home)
    if not crossing.takes(target.custom_tools):  # most servers answer a tool of another type with a 400 (pitfall-62)
        request = wrap_custom(request, losses)
    form, own = form_of(request.extra, NAME), own_fields(request.extra, "$", losses)
    messages = request.messages if target.inline_system else fold_system(request.messages, losses)
    turns, joined = turns_for(messages, crossing, NAME)
    body: JSONObject = {"model": request.model, "messages": MessageEncoder(joined).encode(turns)}
    _note_prefill(request, crossing)
    if request.tools or request.tool_choice is not None or request.parallel_tool_calls is not None or form:
        body |= _tools(request, form, crossing)
    _write_sampling(request.sampling, body, form, crossing)
    if request.output is not None:
        body["response_format"] = _output(request.output, crossing)
    if request.thinking is not None:
        body |= encode_thinking(request.thinking, request.sampling.max_tokens, form, crossing)
    _write_options(request, body, form, crossing)
    _REQUEST.note_unsupported(request, losses)
    _SAMPLING.note_unsupported(request.sampling, losses)
    if request.stream or request.stream_usage is not None or "stream_options" in form:
        body |= _stream_options(request, form, own, crossing)
    if request.cache is not None:
        body |= _cache(request.cache, crossing)
    return body | own if own else body


def _note_prefill(request: Request, crossing: EncodeContext) -> None:
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and not crossing.home and crossing.target.prefill == "none":
        where = f"$.messages[{len(request.messages) - 1}]"
        crossing.losses.approximated(where, "prefill", "the server may answer the last turn, not go on with it")


def _tools(request: Request, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    legacy = "functions" in form
    fields: JSONObject = {}
    tools = encode_functions(request, crossing) if legacy else encode_tools(request, crossing)
    if tools or legacy or "tools" in form:
        fields["functions" if legacy else "tools"] = tools
    allowed = bool(tools) or crossing.home
    if request.tool_choice is not None:
        if not allowed:
            crossing.losses.dropped("$", "tool_choice", "there are no tools")
        elif "function_call" in form:
            fields["function_call"] = encode_function_call(request.tool_choice, crossing)
        else:
            fields["tool_choice"] = encode_choice(request.tool_choice, request.tools, crossing)
    if request.parallel_tool_calls is not None and (not legacy or "parallel" in form):
        if allowed:
            fields["parallel_tool_calls"] = request.parallel_tool_calls
        else:
            crossing.losses.dropped("$", "parallel_tool_calls", "there are no tools")
    return fields


def _write_sampling(sampling: Sampling, body: JSONObject, form: JSONObject, crossing: EncodeContext) -> None:
    for name in _PLAIN:
        value = getattr(sampling, name)
        if value is not None:
            body[name] = value
    if sampling.seed is not None and crossing.target.seed_field != "seed":
        body[crossing.target.seed_field] = body.pop("seed")
    if sampling.max_tokens is not None:
        body |= _max_tokens(sampling.max_tokens, form, crossing)
    _write_extended(sampling, body, form, crossing)
    if sampling.logit_bias is not None:
        body["logit_bias"] = encode_bias(sampling.logit_bias, form)
    if sampling.stop is not None:
        body["stop"] = _stop(sampling.stop, form, crossing)


def _write_extended(sampling: Sampling, body: JSONObject, form: JSONObject, crossing: EncodeContext) -> None:
    for name in _EXTENDED:
        value = getattr(sampling, name)
        if value is None:
            continue
        if crossing.home or crossing.target.extended_sampling:
            body[form.get(name, name)] = value
        else:
            crossing.losses.dropped("$.sampling", name, "the dialect has no such field")


def _max_tokens(wanted: int, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    limit, field = crossing.target.max_tokens_limit, crossing.target.max_tokens_field
    if limit is not None and wanted > limit:
        crossing.losses.approximated("$.sampling", "max_tokens", f"lowered to {limit}, the most of the server")
        wanted = limit
    return {field or form.get("max_tokens", "max_tokens"): wanted}


def _stop(stop: tuple[str, ...], form: JSONObject, crossing: EncodeContext) -> JSON:
    limit = crossing.target.stop_limit
    if limit is not None and len(stop) > limit and not (crossing.home and limit == _STOP_LIMIT):
        raise WireError("$.stop", f"the server takes at most {limit} stop strings")
    return stop[0] if "stop" in form and len(stop) == 1 else list(stop)


def _output(output: OutputFormat, crossing: EncodeContext) -> JSONObject:
    form, own = form_of(output.extra, NAME), own_fields(output.extra, "$.output", crossing.losses)
    if output.kind == "text":
        return {"type": "text", **own}
    if output.kind == "json":
        return {"type": "json_object", **own}
    if form.get("json_object"):
        return {"type": "json_object", "schema": output.schema, **own}
    spec: JSONObject = {"name": output.name, "description": output.description, "schema": output.schema}
    spec["strict"] = output.strict
    if not crossing.home:
        spec["name"] = output.name or SCHEMA_NAME
        if output.strict is None:
            spec["strict"] = is_strict(output.schema)
            if not spec["strict"]:
                crossing.losses.approximated("$.output", "schema", "servers hold strictly to closed schemas alone")
    spec = {key: value for key, value in spec.items() if value is not None}
    return {"type": "json_schema", "json_schema": {**spec, **left(own, form, "json_schema")}, **own}


def _write_options(request: Request, body: JSONObject, form: JSONObject, crossing: EncodeContext) -> None:
    for name, key in _OPTIONS.items():
        value = getattr(request, name)
        if value is not None:
            body[key] = value
    if request.user is not None:
        body[form.get("user", "user")] = _user(request.user, crossing)
    if request.previous is not None:
        raise stateless(request)
    if request.stream or "unstreamed" in form:
        body["stream"] = request.stream


def _stream_options(request: Request, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Ask for usage at the end of a stream (pitfall-101).

    A request of this dialect goes home as it came: whoever wants to be told all the same says `stream_usage`.
    """
    options: JSONObject = {}
    if not crossing.target.stream_usage:
        if crossing.home and request.stream_usage is not None:
            crossing.losses.dropped("$", "stream_usage", "the server does not take it")
        return {}
    if crossing.home and request.stream_usage is not None:
        options["include_usage"] = request.stream_usage
    elif request.stream and not crossing.home:
        options["include_usage"] = True
    if "stream_options" in form:
        options |= left(own, form, "stream_options")
    return {"stream_options": options} if options or "stream_options" in form else {}


def _cache(cache: CacheMark, crossing: EncodeContext) -> JSONObject:
    form = form_of(cache.extra, NAME)
    own = own_fields(cache.extra, "$.cache", crossing.losses)
    if "options" not in form:
        crossing.losses.dropped("$", "cache", "the server decides what it caches")
        return {}
    ttl = {} if cache.ttl is None else {"ttl": cache.ttl}
    return {"prompt_cache_options": {"mode": "implicit", **ttl, **own}}


def _user(user: str, crossing: EncodeContext) -> str:
    if crossing.home or len(user) <= USER_LIMIT:
        return user
    crossing.losses.approximated("$", "user", f"longer than {USER_LIMIT} characters: its SHA-256 is written")
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
