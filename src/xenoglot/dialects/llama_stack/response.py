"""Encodes and decodes responses (`ChatCompletionResponse` in `llama_stack/apis/inference/inference.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, need_object, take_blanks
from xenoglot.dialects.llama_stack.extras import NAME, own_fields
from xenoglot.dialects.llama_stack.finish import decode_finish, encode_finish
from xenoglot.dialects.llama_stack.logprobs import take_logprobs
from xenoglot.dialects.llama_stack.parts import decode_content, encode_content
from xenoglot.dialects.llama_stack.response_text import WHERE, all_logprobs, answer_items, note_order, note_unsaid
from xenoglot.dialects.llama_stack.tool_calls import decode_call, encode_call
from xenoglot.dialects.llama_stack.usage import encode_usage, take_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.response import Candidate, Response

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Finish


def decode_response(body: JSON) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
    """
    reader = Reader(body)
    refuse_error(reader, "completion_message")
    candidate = _decode_message(need_object(reader, "completion_message"))
    candidate = replace(candidate, content=with_logprobs(reader, candidate.content))
    usage = take_usage(reader, NAME)
    blanks = take_blanks(reader, "metrics", "logprobs")
    return Response(candidates=(candidate,), usage=usage, extra=reader.extra(NAME, blanks=blanks or None))


def refuse_error(reader: Reader, wanted: str) -> None:
    """Raise where an error came in place of what is `wanted`.

    Raises:
        WireError: there is an error and no answer.
    """
    for key in ("error", "detail"):
        if key in reader and wanted not in reader:
            raise WireError("$.error", "the answer is an error")


def with_logprobs(reader: Reader, content: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts, the one text with the answer's probabilities; with several texts the owner is unknown."""
    texts = [part for part in content if isinstance(part, Text)]
    if len(texts) != 1:
        return content
    logprobs = take_logprobs(reader, texts[0].text)
    return tuple(replace(part, logprobs=logprobs) if part is texts[0] else part for part in content)


def _decode_message(reader: Reader) -> Candidate:
    form: JSONObject = {"role": None if reader.take_word("role", ("assistant",)) else "other"}
    value = reader.take_any("content")
    parts, form["content"] = ([], "absent") if value is None else decode_content(value, reader.at("content"))
    path = reader.at("tool_calls")
    listed = reader.take("tool_calls", list)
    form["calls"] = "absent" if listed is None else None
    calls = [decode_call(item, f"{path}[{index}]", index) for index, item in enumerate(listed or ())]
    finish = take_finish(reader, form, calls=bool(calls))
    return Candidate(content=(*parts, *calls), finish=finish, extra=reader.extra(NAME, **form))


def take_finish(reader: Reader, form: JSONObject, *, calls: bool, name: str = NAME) -> Finish | None:
    """Take `stop_reason`; an answer without one has not ended."""
    raw = reader.take("stop_reason", str)
    form["stop_reason"] = "absent" if raw is None else None
    return None if raw is None else decode_finish(raw, calls=calls, name=name)


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:  # noqa: ARG001  a record's shape
    """Return the answer for a client; of several candidates the first."""
    note_unsaid(response, losses)
    candidate = response.candidates[0] if response.candidates else Candidate()
    own = own_fields(response.extra, "$", losses)
    blanks = form_of(response.extra, NAME).get("blanks", {})
    return {
        "completion_message": _encode_message(candidate, losses),
        **blanks,
        **all_logprobs(candidate.content, losses),
        **encode_usage(response.usage, losses, NAME),
        **own,
    }


def _encode_message(candidate: Candidate, losses: Losses) -> JSONObject:
    form, own = form_of(candidate.extra, NAME), own_fields(candidate.extra, WHERE, losses)
    note_order(candidate.content, losses)
    items = answer_items(candidate.content, losses)
    content = _content(items, form.get("content"))
    message: JSONObject = {} if form.get("role") == "other" else {"role": "assistant"}
    if content or form.get("content") != "absent":
        message["content"] = content
    message |= finish_field(candidate, form, losses)
    calls = [
        encode_call(part, part.name, f"{WHERE}.content[{index}]", losses)
        for index, part in enumerate(candidate.content)
        if isinstance(part, ToolCall)
    ]
    if calls or form.get("calls") != "absent":
        message["tool_calls"] = calls
    return message | own


def _content(items: list[JSONObject], spelled: str | None) -> JSON:
    """Return the content: words alone are one text."""
    if spelled is None and all(item.keys() == {"type", "text"} and item["type"] == "text" for item in items):
        return "".join(item["text"] for item in items)
    return encode_content(items, spelled)


def finish_field(candidate: Candidate, form: JSONObject, losses: Losses, name: str = NAME) -> JSONObject:
    """Return why the answer ended; without a reason, the field stays as it was, or `null`."""
    if candidate.finish is None:
        return {} if form.get("stop_reason") == "absent" else {"stop_reason": None}
    return {"stop_reason": encode_finish(candidate.finish, f"{WHERE}.finish", losses, name=name)}
