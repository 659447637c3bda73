"""Lines of batch files: request lines in one of three styles, and the output lines that answer them.

A line is OpenAI's (`custom_id`, `url`, `body`), Anthropic's (`custom_id`, `params`), or plain: the body of a request as
it would be posted. A plain line is answered in OpenAI's form. Sources:
https://developers.openai.com/api/docs/guides/batch, https://platform.claude.com/docs/en/api/messages/batches/results.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.codec.features.operation import EMBED, AnyForm
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.requests.path_template import has_model
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject

Style: TypeAlias = Literal["addressed", "params", "plain"]
Unanswered: TypeAlias = Literal["cancelled", "expired", "timeout"]
"""Why a line has no answer, not even an error of the model's server."""

PREFIX: Final = b'{"id":"batch_req_'
"""How every line of an output begins."""

LONGEST_ID: Final = 512
"""Characters of a `custom_id`."""

_BREAKS = re.compile("\u0085|\u2028|\u2029".encode())
"""What else ends a line for some readers (Python's `str.splitlines`); in JSON it can only stand in a text."""

_BOM = b"\xef\xbb\xbf"
_OK = 200
_UNANSWERED: dict[Unanswered, tuple[str, str]] = {
    "cancelled": ("batch_cancelled", "the batch was cancelled before this line was asked"),
    "expired": ("batch_expired", "the batch came to its end before this line was asked"),
    "timeout": ("request_timeout", "the model did not answer in time"),
}
"""OpenAI's codes for it (`BatchRequestOutputError`)."""

_MESSAGES_ALONE = ("system", "thinking", "stop_sequences", "anthropic_version", "anthropic_beta")
"""Fields next to `messages` that only Anthropic's requests have."""

_EMBEDDINGS_ALONE = ("encoding_format", "dimensions")


class BadLineError(WireError):
    """A line is no request. `code` is OpenAI's code for the mistake, `number` that of the line."""

    def __init__(self, number: int, code: str, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.number = number
        self.code = code


class LineEndpoint(Struct, frozen=True, kw_only=True):
    """Endpoint of a path: answers in a dialect, or the operation with this name in the form at this `path`."""

    path: str
    dialect: str
    operation: str = ""

    @property
    def embeddings(self) -> bool:
        """Whether it is for embeddings."""
        return self.operation == EMBED.name

    @property
    def form(self) -> AnyForm | None:
        """The form of the operation; `None` for answers."""
        forms = dialects.get(self.dialect).forms(self.operation)
        return next((form for form in forms if self.path in form.paths), None)


class BatchLine(Struct, frozen=True, kw_only=True):
    """What one line of a batch asks. `number` counts all the lines of the file, from 1."""

    number: int
    custom_id: str
    style: Style
    endpoint: LineEndpoint
    body: JSONObject


class LineOutcome(Struct, frozen=True, kw_only=True):
    """What became of a line: the HTTP `status` and body it would have had, or why it has none (`unanswered`).

    `body` is in the dialect of the line, be it an answer or an error. `losses` are features that the model does not
    support.
    """

    status: int = _OK
    body: JSON = None
    unanswered: Unanswered | None = None
    request_id: str | None = None
    losses: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it is an answer."""
        return self.unanswered is None and _is_answer(self.status)


def _is_answer(status: int) -> bool:
    return status < 400  # noqa: PLR2004  RFC 9110 section 15


class LineMark(Struct, frozen=True):
    """Which line of which input an answer belongs to: its number, and a digest of what stood there."""

    number: int
    digest: int

    def __str__(self) -> str:
        """Return the id that stands in the answer."""
        return f"batch_req_{self.number}_{self.digest:016x}"


class OutputLine(Struct, frozen=True):
    """Facts of an output line: the number of its input line, and whether it is an answer or an error."""

    mark: LineMark
    ok: bool


class _Response(Struct):
    status_code: int


class _Result(Struct):
    type: str


class _Said(Struct):
    id: str
    response: _Response | None = None
    result: _Result | None = None


_MARK = re.compile(r"batch_req_([1-9][0-9]{0,17})_([0-9a-f]{16})")
_decode_answer = msgspec.json.Decoder(_Said).decode


def text_of(data: bytes, number: int) -> bytes:
    """Return the text of a line of a file without its line end, and without a byte order mark in the first."""
    if number == 1:
        data = data.removeprefix(_BOM)
    return data.strip()


def mark_of(text: bytes, number: int) -> LineMark:
    """Return the mark of the line with this `text`."""
    return LineMark(number, int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))


def read_answer(data: bytes) -> OutputLine | None:
    """Return the facts of an output line; `None` if it is no answer of ours."""
    try:
        said = _decode_answer(data)
    except (UnicodeError, msgspec.MsgspecError, RecursionError):
        return None
    found = _MARK.fullmatch(said.id)
    if found is None:
        return None
    answered = said.response is not None and _is_answer(said.response.status_code)
    succeeded = said.result is not None and said.result.type == "succeeded"
    return OutputLine(LineMark(int(found[1]), int(found[2], 16)), answered or succeeded)


def decode_line(text: bytes, number: int, *, dialect: str | None = None, model: str | None = None) -> BatchLine:
    """Return the request in the line `number` with this `text`.

    `dialect` is that of plain lines; without it, it is detected by their fields. `model` is used if a body names none.

    Raises:
        BadLineError: it is no request, for the reason in the error. Whether its body is a valid request is not checked.
        ConfigurationError: there is no such dialect.
    """
    try:
        value = decode_json(text)
    except WireError as error:
        raise BadLineError(number, "invalid_json_line", "$", error.problem) from None
    if not isinstance(value, dict):
        raise BadLineError(number, "invalid_json_line", "$", "expected an object")
    if "body" in value or "url" in value:
        line = _of_openai(value, number)
    elif "params" in value:
        params = _object(value, "params", number)
        line = BatchLine(
            number=number, custom_id=_id(value, number), style="params", endpoint=_endpoint("messages"), body=params
        )
    else:
        line = _plain(value, number, dialect)
    if model is not None and "model" not in line.body:
        line = msgspec.structs.replace(line, body=line.body | {"model": model})
    return line


def encode_line(line: BatchLine, mark: LineMark, outcome: LineOutcome) -> bytes:
    """Return the line, its end included, that answers `line`."""
    told: JSONObject = {"id": str(mark), "custom_id": line.custom_id}
    if line.style == "params":
        told["result"] = encode_result(outcome)
    else:
        told |= encode_output(outcome)
    if outcome.losses:
        told["losses"] = list(outcome.losses)
    return one_line(told)


def encode_invalid(custom_id: str, mark: LineMark, code: str, problem: str) -> bytes:
    """Return the line, its end included, for a line that cannot be sent, as OpenAI has it (`BatchRequestOutput`)."""
    error = {"code": code, "message": problem}
    return one_line({"id": str(mark), "custom_id": custom_id, "response": None, "error": error})


def id_of(text: bytes, number: int) -> str:
    """Return the `custom_id` of a line that may be invalid; one that has none gets its number."""
    try:
        value = decode_json(text)
        return _id(value, number) if isinstance(value, dict) else f"line-{number}"
    except WireError:
        return f"line-{number}"


def one_line(told: JSONObject) -> bytes:
    """Return `told` as a line, its end included, that is one to every reader."""
    return _BREAKS.sub(_escaped, encode_json(told)) + b"\n"


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def encode_output(outcome: LineOutcome) -> JSONObject:
    """Return `response` and `error` of a line as OpenAI has it (`BatchRequestOutput`)."""
    if outcome.unanswered is not None:
        code, message = _UNANSWERED[outcome.unanswered]
        return {"response": None, "error": {"code": code, "message": message}}
    response = {"status_code": outcome.status, "request_id": outcome.request_id or "", "body": outcome.body}
    return {"response": response, "error": None}


def encode_result(outcome: LineOutcome) -> JSONObject:
    """Return the `result` of a line as Anthropic has it (`MessageBatchResult`)."""
    match outcome.unanswered:
        case "cancelled":
            return {"type": "canceled"}
        case "expired":
            return {"type": "expired"}
        case "timeout":
            told = {"type": "timeout_error", "message": _UNANSWERED["timeout"][1]}
            return {"type": "errored", "error": {"type": "error", "error": told, "request_id": None}}
        case _ if outcome.ok:
            return {"type": "succeeded", "message": outcome.body}
        case _:
            return {"type": "errored", "error": outcome.body}


@cache
def endpoints() -> dict[str, LineEndpoint]:
    """Return the endpoints by path, except paths with the model's name, which a line cannot have."""
    found: dict[str, LineEndpoint] = {}
    for name in dialects.names():
        spoken = dialects.get(name)
        for path in (spoken.path, *spoken.aliases):
            found.setdefault(path, LineEndpoint(path=path, dialect=name))
        for form in (form for form in spoken.operations if form.operation.limited):
            for path in form.paths:
                found.setdefault(path, LineEndpoint(path=path, dialect=name, operation=form.operation.name))
    return {path: endpoint for path, endpoint in found.items() if not has_model(path)}


def endpoint_at(url: str) -> LineEndpoint | None:
    """Return the endpoint at `url`, a path with or without its version."""
    known = endpoints()
    path = url.rstrip("/")
    return known.get(path) or known.get(f"/v1{path}")


def _of_openai(value: JSONObject, number: int) -> BatchLine:
    method, url = value.get("method", "POST"), value.get("url")
    if method != "POST":
        raise BadLineError(number, "invalid_method", "$.method", "expected `POST`")
    if not isinstance(url, str):
        raise BadLineError(number, "missing_required_parameter", "$.url", "required, expected str")
    endpoint = endpoint_at(url)
    if endpoint is None:
        known = ", ".join(sorted(path for path in endpoints() if path.startswith("/v1/")))
        raise BadLineError(number, "invalid_url", "$.url", f"no endpoint for batches; expected one of {known}")
    body = _object(value, "body", number)
    return BatchLine(number=number, custom_id=_id(value, number), style="addressed", endpoint=endpoint, body=body)


def _plain(value: JSONObject, number: int, dialect: str | None) -> BatchLine:
    body = dict(value)
    custom_id = _id(value, number) if "custom_id" in value else f"line-{number}"
    body.pop("custom_id", None)
    endpoint = _recognised(body, number) if dialect is None else _endpoint(dialect)
    return BatchLine(number=number, custom_id=custom_id, style="plain", endpoint=endpoint, body=body)


def _recognised(body: JSONObject, number: int) -> LineEndpoint:
    """Return where a body belongs, by the fields that only one of those that are much alike has."""
    if "messages" in body:
        return _endpoint("messages" if any(name in body for name in _MESSAGES_ALONE) else "chat")
    if "input" in body:
        listed = body["input"]
        many = isinstance(listed, list) and bool(listed) and not isinstance(listed[0], dict)
        vectors = many or any(name in body for name in _EMBEDDINGS_ALONE)
        return endpoints()["/v1/embeddings"] if vectors else _endpoint("responses")
    if "prompt" in body:
        return _endpoint("completions")
    if "contents" in body:
        return _endpoint("gemini")
    problem = "no request that is known by its fields: name its dialect, or give it `custom_id`, `url` and `body`"
    raise BadLineError(number, "invalid_request", "$", problem)


def _endpoint(dialect: str) -> LineEndpoint:
    return LineEndpoint(path=dialects.get(dialect).path, dialect=dialect)


def _id(value: JSONObject, number: int) -> str:
    found = value.get("custom_id")
    if not isinstance(found, str) or not found:
        raise BadLineError(number, "missing_required_parameter", "$.custom_id", "required, expected a text")
    if len(found) > LONGEST_ID:
        raise BadLineError(number, "invalid_custom_id", "$.custom_id", f"is longer than {LONGEST_ID} characters")
    return found


def _object(value: JSONObject, key: str, number: int) -> JSONObject:
    found = value.get(key)
    if not isinstance(found, dict):
        raise BadLineError(number, "missing_required_parameter", f"$.{key}", "required, expected an object")
    return found
