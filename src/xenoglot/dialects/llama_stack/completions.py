"""Encodes and decodes requests and non-streaming responses of text completion.

Source: `completion` and `CompletionResponse` in `llama_stack/apis/inference/inference.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.fields import NO_FIELD
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, take_blanks
from xenoglot.codec.requests.encode_context import EncodeContext, came_from
from xenoglot.codec.requests.transcript import transcribe
from xenoglot.dialects.llama_stack.extras import COMPLETION, own_fields
from xenoglot.dialects.llama_stack.logprobs import take_logprobs
from xenoglot.dialects.llama_stack.parts import decode_content
from xenoglot.dialects.llama_stack.request.decoder import spelled, take_stream
from xenoglot.dialects.llama_stack.request.encoder import drop_unknown, refuse_unsayable, stream_field
from xenoglot.dialects.llama_stack.request.sampling import encode_output, encode_sampling, take_output, take_sampling
from xenoglot.dialects.llama_stack.response import finish_field, refuse_error, take_finish
from xenoglot.dialects.llama_stack.response_text import WHERE, all_logprobs, answer_text, note_unsaid
from xenoglot.dialects.llama_stack.usage import encode_usage, take_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Part, Text
from xenoglot.model.request import Prompt, Request, Sampling
from xenoglot.model.response import Candidate, Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject


def decode_request(body: JSON) -> Request:
    """Return the request in `body`; content that is more than text is kept whole, next to its text.

    Raises:
        WireError: a field is missing, or of the wrong type.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model_id", str)
    content = reader.take_any("content")
    if content is None:
        raise WireError(reader.at("content"), "required, expected str, object or list")
    parts, listed = decode_content(content, reader.at("content"))
    if not all(isinstance(part, Text) and part.extra is None for part in parts):
        reader.rest()["content"] = content
    elif listed is not None:
        form["content"] = content
    return Request(
        model=model,
        prompt=Prompt(texts=(_joined(parts),)),
        sampling=take_sampling(reader, form),
        output=take_output(reader),
        stream=take_stream(reader, form),
        extra=Extra(dialect=COMPLETION, fields=reader.rest(), form=spelled(form)),
    )


def _joined(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server; one that came in this dialect goes out as it came.

    Raises:
        WireError: it has turns, for which there is no place, or the server cannot do something that it wants.
    """
    home = came_from(request, COMPLETION)
    crossing = EncodeContext(losses, target, home)
    refuse_unsayable(request)
    form, own = form_of(request.extra, COMPLETION), own_fields(request.extra, "$", losses, COMPLETION)
    text, sampling = _asked(request, losses)
    listed = form.get("content")
    came = listed is not None and _joined(decode_content(listed, "$.content")[0]) == text
    body: JSONObject = {"model_id": request.model, "content": listed if came else text}
    for field in ("tools", "tool_choice"):
        if getattr(request, field):
            losses.dropped("$", field, NO_FIELD)
    body |= encode_sampling(sampling, form, own, crossing)
    body |= encode_output(request.output, crossing)
    drop_unknown(request, losses)
    return body | stream_field(request, form) | own


def _asked(request: Request, losses: Losses) -> tuple[str, Sampling]:
    """Return the text to be continued, turns as a transcript, and where the answer ends."""
    sampling = request.sampling
    if request.prompt is not None:
        return _text(request, request.prompt, losses), sampling
    transcript = transcribe(request.messages, COMPLETION, losses)
    if transcript.stop is not None:
        losses.emulated("$.sampling", "stop", "the model stops where the user would speak next")
        sampling = replace(sampling, stop=(*(sampling.stop or ()), transcript.stop))
    return transcript.text, sampling


def _text(request: Request, prompt: Prompt, losses: Losses) -> str:
    """Return the text to be continued; the system turn's text stands before it."""
    if any(message.role not in ("system", "developer") for message in request.messages):
        raise WireError("$.messages", "the target model takes messages or a prompt, not both")
    if prompt.suffix:
        raise WireError("$.suffix", "the target model cannot complete text before a suffix; leave it out")
    if len(prompt.texts) != 1:
        raise WireError("$.prompt", f"the target model continues one text at a time, found {len(prompt.texts)}")
    (text,) = prompt.texts
    if not isinstance(text, str):
        raise WireError("$.prompt", "the target model does not accept token ids; send the text")
    _note_asked(request, prompt, losses)
    if not request.messages:
        return text
    losses.emulated("$", "messages", "the system turns are put before the text")
    losses.emulated("$.prompt", "texts", "the system turns are put before it")
    return "\n\n".join([*(_joined(message.content) for message in request.messages), text])


def _note_asked(request: Request, prompt: Prompt, losses: Losses) -> None:
    """Refuse, or record, options about the text itself and about the number of answers."""
    if prompt.echo and request.sampling.logprobs:
        raise WireError("$.echo", "the target model returns no log probabilities of the prompt")
    if prompt.best_of is not None and prompt.best_of > 1:
        raise WireError("$.best_of", "the target model generates one answer; ask for 1")
    if prompt.echo:
        losses.emulated("$.prompt", "echo", "the client's own dialect puts the text before the answer")
    if prompt.best_of is not None:
        losses.emulated("$.prompt", "best_of", "one answer is made in any case")


def decode_response(body: JSON) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
    """
    reader = Reader(body)
    refuse_error(reader, "content")
    text = reader.take("content", str)
    if text is None:
        raise WireError(reader.at("content"), "required, expected str")
    form: JSONObject = {}
    parts = (Text(text=text, logprobs=take_logprobs(reader, text)),) if text else ()
    candidate = Candidate(content=parts, finish=take_finish(reader, form, calls=False, name=COMPLETION))
    usage = take_usage(reader, COMPLETION)
    blanks = take_blanks(reader, "metrics", "logprobs")
    return Response(candidates=(candidate,), usage=usage, extra=reader.extra(COMPLETION, blanks=blanks or None, **form))


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:  # noqa: ARG001  a record's shape
    """Return the answer for a client; of several candidates the first."""
    note_unsaid(response, losses)
    candidate = response.candidates[0] if response.candidates else Candidate()
    form, own = form_of(response.extra, COMPLETION), own_fields(response.extra, "$", losses, COMPLETION)
    own_fields(candidate.extra, WHERE, losses, COMPLETION)
    texts = [answer_text(part, f"{WHERE}.content[{index}]", losses) for index, part in enumerate(candidate.content)]
    return {
        "content": "".join(filter(None, texts)),
        **finish_field(candidate, form, losses, COMPLETION),
        **form.get("blanks", {}),
        **all_logprobs(candidate.content, losses),
        **encode_usage(response.usage, losses, COMPLETION),
        **own,
    }
