"""Encodes and decodes non-streaming responses.

Source: `openai/types/responses/response.py`, and `ResponseResource` of Open Responses (pitfall-83).

Request fields that an answer repeats, with the defaults of fields that the request did not set.

The fields and their defaults are those of `ResponseResource` of Open Responses
(https://www.openresponses.org/reference) and of `openai/types/responses/response.py` (pitfall-83).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import Losses, form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.responses.reasoning import reported_changes
from xenoglot.codec.target import Target
from xenoglot.dialects.responses.client_calls import as_client_call, client_names
from xenoglot.dialects.responses.errors import read_failure
from xenoglot.dialects.responses.extras import NAME, own_fields
from xenoglot.dialects.responses.finish import completed_as, encode_finish, explained, is_cut, take_finish
from xenoglot.dialects.responses.item_decoder import decode_output
from xenoglot.dialects.responses.item_encoder import encode_output
from xenoglot.dialects.responses.request.encoder import encode_request
from xenoglot.dialects.responses.usage import TOOLS, decode_usage, encode_tool_usage, encode_usage, take_tool_usage
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Extra
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from xenoglot.model.events import Started
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message, Request
    from xenoglot.model.response import Usage


DEFAULTS: JSONObject = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Fields that every answer has, with their values if the request does not set them."""

OPTIONAL = frozenset({"conversation", "prompt", "prompt_cache_options", "prompt_cache_retention", "user"})
"""Fields that an answer has if the request sets them."""

ECHOED = frozenset(DEFAULTS) | OPTIONAL

_TOOL: JSONObject = {"description": None, "parameters": None, "strict": True}
"""Required fields of a function in an answer; `strict` is true if the request does not set it (pitfall-65)."""

_SCHEMA: JSONObject = {"description": None}
"""Required fields of a `text.format` of `json_schema` in an answer; OpenAI writes null there, too."""


def echo_of(request: Request) -> JSONObject:
    """Return the fields of an answer that repeat its request, as this dialect writes it."""
    asked = _asked(request)
    said = {key: value for key, value in asked.items() if key in ECHOED and value is not None}
    echo = DEFAULTS | said
    for key in ("text", "reasoning"):
        if isinstance(echo[key], dict):
            echo[key] = DEFAULTS[key] | echo[key]
    if isinstance(said.get("conversation"), str):
        echo["conversation"] = {"id": said["conversation"]}
    echo["text"] = _whole_text(echo["text"])
    if isinstance(echo["tools"], list):
        echo["tools"] = [_whole(tool) for tool in echo["tools"]]
    return echo


def _asked(request: Request) -> JSONObject:
    """Return the request without its turns: an answer repeats the instructions alone."""
    bare = replace(request, messages=_leading(request.messages), prompt=None)
    try:
        return encode_request(bare, Losses(), Target(developer_role=True))
    except WireError:  # it cannot be asked in this dialect: nothing of it to repeat
        return {}


def _leading(messages: Sequence[Message]) -> tuple[Message, ...]:
    count = 0
    while count < len(messages) and messages[count].role in ("system", "developer"):
        count += 1
    return tuple(messages[:count])


def _whole(tool: JSON) -> JSON:
    return _TOOL | tool if isinstance(tool, dict) and tool.get("type") == "function" else tool


def _whole_text(text: JSON) -> JSON:
    form = text.get("format") if isinstance(text, dict) else None
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return text
    return {**text, "format": _SCHEMA | form}


WHERE = "$.candidates[0]"

ALWAYS = ("id", "object", "created_at", "completed_at", "status", "incomplete_details", "error", "model", "usage")
"""Fields that every answer has in addition to its output; one that the server leaves out stays out."""

BESIDE = "event."
"""Prefix of the names of fields of a stream's last event that are outside the answer."""

LATE = frozenset(
    {"access_programs", "end_turn", "input_transformations", "moderation", "prompt_cache_diagnostics", "tool_usage"}
)
"""Fields that are known when the answer is over: they belong to the candidate."""


def decode_response(body: JSON) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
        FailureError: it is an answer that failed.
    """
    reader = Reader(body)
    if "error" in reader and "output" not in reader:
        raise WireError("$.error", "the answer is an error")
    if reader.peek("status") == "failed":
        raise FailureError(read_failure(body))
    head = take_head(reader)
    parts = decode_output(reader.need("output", list), "$.output", head["id"] or "")
    usage = take_usage(reader)
    finish = take_finish(reader, parts)
    late = take_late(reader)
    if finish is None and reader.peek("status") is None:
        finish = Finish(reason=completed_as(parts), dialect=NAME)  # a whole answer is over, whoever does not say so
    elif finish is None:
        head["form"]["status"] = reader.take_any("status")
    extra = take_extra(reader, head.pop("form"))
    return Response(**head, usage=usage, extra=extra, candidates=(Candidate(content=parts, finish=finish, extra=late),))


def take_head(reader: Reader) -> JSONObject:
    """Decode the fields of an answer's head; `form` keeps their spelling."""
    form: JSONObject = {"absent": [key for key in ALWAYS if key not in reader.rest()]}
    reader.take_word("object", ("response",))
    moment = reader.peek("created_at")
    created = reader.count("created_at")
    if created is not None and type(moment) is not int:
        form["created_at"] = moment
    return {
        "id": reader.take_if("id", str),
        "model": reader.take_if("model", str),
        "created": created or None,
        "service_tier": reader.take_if("service_tier", str),
        "form": form,
    }


def take_usage(reader: Reader) -> Usage | None:
    """Take the token counts, where there are any."""
    usage = decode_usage(reader.peek("usage"), reader.at("usage"))
    if usage is None:
        return None
    reader.take("usage", dict)
    return take_tool_usage(reader, usage) if TOOLS in reader else usage


def take_late(reader: Reader) -> Extra | None:
    """Take what is only known at the end."""
    fields = {key: reader.take_any(key) for key in LATE if key in reader}
    form: JSONObject = {} if "completed_at" not in reader else {"completed_at": reader.take_any("completed_at")}
    entries = fields.get("input_transformations")
    if entries and isinstance(entries, list):  # `InputTransformation` in the SDK: reasoning that was removed
        form |= reported_changes([entry.get("reason") for entry in entries if isinstance(entry, dict)])
    return Extra(dialect=NAME, fields=fields, form=form) if fields or form else None


def take_extra(reader: Reader, form: JSONObject) -> Extra:
    """Decode the fields that repeat the request, which are form, and all others."""
    rest = reader.rest()
    for key in ALWAYS:
        if key in rest and rest[key] is None and key not in ("id", "model", "created_at"):
            del rest[key]
    echo = {key: rest.pop(key) for key in ECHOED if key in rest}
    return Extra(dialect=NAME, fields=rest, form={"echo": echo, **{key: value for key, value in form.items() if value}})


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:
    """Return the answer for the client that sent `request`, with the fields that repeat it.

    Id and times come from outside; the wire requires them, so where they did not they are empty, 0 and null.
    """
    for index in range(1, len(response.candidates)):
        losses.dropped(f"$.candidates[{index}]", "candidate", "an answer of the dialect is one")
    candidate = response.candidates[0] if response.candidates else Candidate()
    if names := client_names(request.tools):
        candidate = replace(candidate, content=tuple(as_client_call(part, names) for part in candidate.content))
    snapshot = Snapshot(response, request, losses)
    cut = is_cut(candidate.finish, candidate.content)
    parts = (*candidate.content, *explained(candidate.finish, candidate.content))
    items = encode_output(parts, response.id or "", losses, cut=cut)
    return snapshot.finished(items, candidate, response.usage)


class Snapshot:
    """The response object for `request`, as it is sent at the start and end of an answer."""

    __slots__ = ("_absent", "_body", "_losses", "_own", "_status")

    def __init__(self, head: Response | Started, request: Request, losses: Losses) -> None:
        form, self._own = form_of(head.extra, NAME), own_fields(head.extra, "$", losses)
        self._losses = losses
        self._status = form.get("status", "in_progress")
        self._absent = frozenset(form.get("absent", ()))
        tier = "default" if head.service_tier is None and "echo" not in form else head.service_tier
        self._body: JSONObject = {
            "id": head.id or "",
            "object": "response",
            "created_at": form.get("created_at", head.created or 0),
            "completed_at": None,
            "status": self._status,
            "incomplete_details": None,
            "error": None,
            "model": request.model if head.model is None else head.model,
            "usage": None,
            **({} if tier is None else {"service_tier": tier}),
            **(form["echo"] if "echo" in form else echo_of(request)),
        }

    @property
    def answer_id(self) -> str:
        """The id of the answer, or an empty text."""
        said: str = self._body["id"]
        return said

    def begun(self, items: Sequence[JSONObject] = ()) -> JSONObject:
        """Return the unfinished answer with the `items` sent so far."""
        return self._told({"output": [*items]}, self._absent)

    def finished(self, items: list[JSONObject], candidate: Candidate, usage: Usage | None) -> JSONObject:
        """Return the whole answer, whose output is `items`."""
        form = form_of(candidate.extra, NAME)
        own = own_fields(candidate.extra, WHERE, self._losses)
        late = {key: value for key, value in own.items() if not key.startswith(BESIDE)}
        finish = encode_finish(candidate.finish, candidate.content, self._losses)
        if candidate.finish is None:
            finish["status"] = self._status
        counts = None if usage is None else encode_usage(usage, self._losses)
        completed = {key: form[key] for key in ("completed_at",) if key in form}
        if finish["incomplete_details"] is None:
            del finish["incomplete_details"]  # a server that says something of a whole answer is believed
        late |= encode_tool_usage(usage, late.get(TOOLS))
        news = {**finish, "output": items, "usage": counts, **completed, **form.get("changed", {}), **late}
        return self._told(news, form.get("absent", self._absent))

    def failed(self, items: list[JSONObject], error: JSONObject, usage: Usage | None) -> JSONObject:
        """Return the answer as far as it came, and why it went no further."""
        counts = None if usage is None else encode_usage(usage, self._losses)
        return self._body | self._own | {"status": "failed", "output": items, "usage": counts, "error": error}

    def _told(self, news: JSONObject, absent: Collection[str]) -> JSONObject:
        return {key: value for key, value in (self._body | self._own | news).items() if key not in absent}
