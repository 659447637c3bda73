"""Encodes requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import left
from xenoglot.codec.requests.adapt_request import JSON_ONLY
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless, write_max_tokens
from xenoglot.codec.requests.transcript import transcribe
from xenoglot.dialects.completions.extras import NAME, own_fields
from xenoglot.dialects.completions.request.fields import PROMPT, REQUEST, SAMPLING, UNLIMITED
from xenoglot.errors import WireError
from xenoglot.model.content import Text
from xenoglot.model.request import Message, Request, Sampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Prompt


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server; turns are written as one text.

    Raises:
        WireError: the server cannot do something that the request wants.
    """
    home = came_from(request, NAME)
    crossing = EncodeContext(losses, target, home)
    form, own = form_of(request.extra, NAME), own_fields(request.extra, "$", losses)
    _note_foreign(request, crossing)
    body: JSONObject = {"model": request.model}
    stops = request.sampling.stop
    if request.prompt is None:
        transcript = transcribe(_asking_for_json(request, losses), NAME, losses)
        body["prompt"] = transcript.text
        stops = _with_stop(stops, transcript.stop, crossing)
    else:
        body |= _prompt(request.prompt, _heading(request, losses), form, crossing)
    if request.sampling.max_tokens is None:
        body |= _unlimited(form, crossing)
    SAMPLING.write(replace(request.sampling, stop=stops), body, form, crossing)
    body |= _logprobs(request.sampling, form, crossing)
    REQUEST.write(request, body, form, crossing)
    if request.stream or "unstreamed" in form:
        body["stream"] = request.stream
    return body | _stream_options(request, form, own, crossing) | own


def _is_json_mode(request: Request) -> bool:
    """Whether JSON of any form is wanted, of a model whose turn it is."""
    wanted = request.output is not None and request.output.kind == "json" and request.prompt is None
    return wanted and bool(request.messages) and request.messages[-1].role != "assistant"


def _asking_for_json(request: Request, losses: Losses) -> Sequence[Message]:
    """Return the messages; after the last a line that asks for JSON where it is wanted."""
    if not _is_json_mode(request):
        return request.messages
    losses.approximated("$.output", "kind", "described at the end of the prompt, and not enforced")
    return (*request.messages, Message(role="system", content=(Text(text=JSON_ONLY),)))


def _prompt(prompt: Prompt, heading: str, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    texts = [_text(text, heading) for text in prompt.texts]
    fields: JSONObject = {}
    PROMPT.write(prompt, fields, form, crossing)
    if texts:
        fields["prompt"] = texts if len(texts) > 1 or "prompt" in form else texts[0]
    return fields


def _text(text: str | tuple[int, ...], heading: str) -> JSON:
    if isinstance(text, str):
        return heading + text
    if heading:
        raise WireError("$.prompt", "tokens cannot follow the words of a system turn; send the text")
    return list(text)


def _heading(request: Request, losses: Losses) -> str:
    """Return what stands before a prompt that has system turns."""
    if not request.messages:
        return ""
    losses.emulated("$.prompt", "texts", "each begins with the text of the system turn")
    said = transcribe(request.messages, NAME, losses).words
    return f"{said}\n\n" if said else ""


def _note_foreign(request: Request, crossing: EncodeContext) -> None:
    choice = request.tool_choice
    if choice is not None and choice.mode == "required":
        raise WireError("$.tool_choice", "the dialect of the server has no tools, so none can be demanded")
    if request.previous is not None:
        raise stateless(request)
    for index in range(len(request.tools)):
        crossing.losses.dropped(f"$.tools[{index}]", "tool", "the dialect has none")
    if choice is not None:
        crossing.losses.dropped("$", "tool_choice", "the dialect has no tools")
    if request.output is not None and request.output.kind != "text" and not _is_json_mode(request):
        crossing.losses.dropped("$", "output", "the dialect has no form of answers")


def _unlimited(form: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return the limit where none is set: without any a server stops after 16 tokens, which is no answer to a turn."""
    if crossing.home:
        return {"max_tokens": UNLIMITED} if "unlimited" in form else {}
    limit = crossing.target.default_max_tokens
    crossing.losses.approximated("$.sampling", "max_tokens", f"the dialect's own is 16; {limit} is written")
    return {"max_tokens": write_max_tokens(limit, form, crossing)}


def _logprobs(sampling: Sampling, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    if "logprobs" in form:
        return {"logprobs": sampling.logprobs}
    if sampling.logprobs:
        return {"logprobs": sampling.top_logprobs or 0}
    if sampling.top_logprobs:
        crossing.losses.dropped("$.sampling", "top_logprobs", "the request does not ask for `logprobs`")
    return {}


def _with_stop(stops: tuple[str, ...] | None, stop: str | None, crossing: EncodeContext) -> tuple[str, ...] | None:
    """Return the stop strings with the one that ends the model's turn, where the limit allows it."""
    given, limit = stops or (), crossing.target.stop_limit
    if stop is None or stop in given or (limit is not None and len(given) >= limit):
        return stops
    crossing.losses.emulated("$.sampling", "stop", "the model's turn ends where the user would speak next")
    return (*given, stop)


def _stream_options(request: Request, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Ask for usage at the end of a stream (pitfall-101); a request of this dialect is sent unchanged."""
    options: JSONObject = {}
    if crossing.home and request.stream_usage is not None:
        options["include_usage"] = request.stream_usage
    elif request.stream and not crossing.home:
        options["include_usage"] = True
    if "stream_options" in form:
        options |= left(own, form, "stream_options")
    return {"stream_options": options} if options or "stream_options" in form else {}
