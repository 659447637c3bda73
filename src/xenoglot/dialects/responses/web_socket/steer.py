"""Steering over a WebSocket: input for an answer that is in progress, and the events that report what became of it.

Sources: https://developers.openai.com/api/docs/guides/steering; `response_steer_event.py`, `response_steer_input.py`,
`response_steer_required_input.py` and `response_steer_failed_event.py` in `openai/types/responses/`. OpenAI steers
some models only. Here an answer ends early after reasoning, or after a tool that the server ran; otherwise the input
waits for its end. The guide allows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.web_socket import SteerError, SteerForm
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.dialects.responses.stored.responses import decode_items
from xenoglot.dialects.responses.stream.frames import answer_of, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.features.web_socket import SteerEvent
    from xenoglot.model.json import JSON, JSONObject

STEERED: Final = "steered"
INVALID: Final = "invalid_input"
UNSUPPORTED: Final = "steering_not_supported"

_MESSAGE_KEYS: Final = frozenset({"type", "role", "content"})
_PARTS: Final = frozenset({"input_text", "input_image", "input_file"})

_SAFE: Final = frozenset(
    {"reasoning", "code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call", "mcp_list_tools"}
    | {"web_search_call"}
)
"""Items after which an answer can end: reasoning, and tools that have run."""

_RESULTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "function_call": ("function_call_output", ("call_id", "name")),
    "custom_tool_call": ("custom_tool_call_output", ("call_id",)),
    "computer_call": ("computer_call_output", ("call_id",)),
    "shell_call": ("shell_call_output", ("call_id",)),
    "local_shell_call": ("local_shell_call_output", ("call_id",)),
    "apply_patch_call": ("apply_patch_call_output", ("call_id",)),
}
"""A call that the client runs -> its result, and what both have."""


def problem(said: JSON) -> str | None:
    """Return what is wrong with steering input: it is a text, or messages of the user."""
    if isinstance(said, str):
        return None if said else "`input` must not be empty"
    if not isinstance(said, list) or not said:
        return "`input` must be a text or a non-empty list of messages"
    return next((wrong for item in said if (wrong := _message_problem(item)) is not None), None)


def _message_problem(item: JSON) -> str | None:
    if not isinstance(item, dict) or item.get("type", "message") != "message" or item.get("role") != "user":
        return "`input` may hold messages with the role `user` only"
    if strange := sorted(item.keys() - _MESSAGE_KEYS):
        return f"a message of `input` may hold `type`, `role` and `content`, not `{strange[0][:64]}`"
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    if not isinstance(content, str) and not parts:
        return "`content` of a message must be a text or a non-empty list of parts"
    if any(not isinstance(part, dict) or part.get("type") not in _PARTS for part in parts):
        return "`content` may hold `input_text`, `input_image` and `input_file`"
    return None


def refusal(body: JSONObject) -> str | None:
    """Return why an answer to this request cannot be steered."""
    if body.get("conversation") is not None:
        return "an answer that is part of a conversation cannot be steered"
    if body.get("context_management"):
        return "an answer with automatic compaction cannot be steered"
    return None


def required(answer: JSONObject) -> list[JSONObject]:
    """Return the results that a continuation has to bring, without what the client fills in."""
    output = answer.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    there = {item.get("call_id") for item in items if item.get("type") in {kind for kind, _ in _RESULTS.values()}}
    found: list[JSONObject] = []
    for item in items:
        kind = str(item.get("type"))
        if kind in _RESULTS and item.get("call_id") not in there:
            result, fields = _RESULTS[kind]
            found.append({"type": result, **{name: item.get(name) for name in fields}})
        elif kind == "tool_search_call" and item.get("execution") == "client":
            found.append({"type": "tool_search_output", "call_id": item.get("call_id"), "execution": "client"})
        elif kind == "mcp_approval_request":
            found.append({"type": "mcp_approval_response", "approval_request_id": item.get("id")})
    return found


def accepted(steer_id: str, answer_id: str, number: int) -> JSONObject:
    """Return the event for input that waits."""
    steer = {"id": steer_id, "previous_response_id": answer_id}
    return {"type": "response.steer.accepted", "sequence_number": number, "steer": steer}


def pending(steer_id: str, answer_id: str, wanted: Sequence[JSONObject], number: int) -> JSONObject:
    """Return the event for input that waits for results."""
    return accepted(steer_id, answer_id, number) | {
        "type": "response.steer.pending",
        "reason": "waiting_for_required_input",
        "required_input": list(wanted),
    }


def failed(steer_id: str | None, event: SteerEvent, error: SteerError, number: int) -> JSONObject:
    """Return the event for input that no answer gets, with the input."""
    steer: JSONObject = {"input": event.input, "previous_response_id": event.steered}
    return {
        "type": "response.steer.failed",
        "sequence_number": number,
        "error": {"type": "invalid_request_error", "code": error.code, "message": error.message},
        "steer": steer if steer_id is None else steer | {"id": steer_id},
    }


def items(said: JSON) -> list[JSON]:
    """Return steering input as items."""
    return decode_items({"input": said})


def continuation(body: JSONObject, answer_id: str, said: Sequence[JSON]) -> JSONObject:
    """Return the request that continues an answer with steering input, and has all else of the answer's own."""
    return body | {"previous_response_id": answer_id, "input": list(said)}


def merged(body: JSONObject, said: Sequence[JSON]) -> JSONObject:
    """Return a request with steering input in front of its own."""
    return body | {"input": [*said, *decode_items(body)]}


class AnswerBoundary:
    """Watches an answer, and knows where it can end before it is complete."""

    __slots__ = ("_created", "_open", "_output", "_safe")

    def __init__(self) -> None:
        self._created: JSONObject | None = None
        self._output: list[JSON] = []
        self._open = 0
        self._safe = False

    def feed(self, event: ServerSentEvent, /) -> None:
        """Take one event."""
        kind = event.event or kind_of(event)
        if kind == "response.created":
            self._created = answer_of(event)
        elif kind == "response.output_item.added":
            self._open += 1
            self._safe = False
        elif kind == "response.output_item.done":
            self._end_item(decode_answer(event.data))

    def _end_item(self, frame: JSON) -> None:
        item = frame.get("item") if isinstance(frame, dict) else None
        self._open -= 1
        self._output.append(item)
        kinds = [one.get("type") if isinstance(one, dict) else None for one in self._output]
        self._safe = self._open == 0 and kinds[-1] in _SAFE and _SAFE.issuperset({*kinds} - {"message"})

    def steered(self) -> ServerSentEvent | None:
        """Return the event that ends the answer here; `None` if it cannot end."""
        if not self._safe or self._created is None:
            return None
        details = {"reason": STEERED}
        answer = self._created | {"status": "incomplete", "incomplete_details": details, "output": self._output}
        kind = "response.incomplete"
        return ServerSentEvent(encode_json({"type": kind, "sequence_number": 0, "response": answer}), kind)


STEER: Final = SteerForm(
    problem=problem,
    refusal=refusal,
    required=required,
    accepted=accepted,
    pending=pending,
    failed=failed,
    continuation=continuation,
    merged=merged,
    items=items,
    boundary=AnswerBoundary,
    invalid=INVALID,
    unsupported=UNSUPPORTED,
    not_found=SteerError("response_not_found", "the response is not one of this connection"),
    too_many=SteerError("too_many_pending_steers", "too much steering input waits for this response"),
    completed=SteerError("response_already_completed", "the response is completed"),
    not_active=SteerError("response_not_active", "the response has ended without an answer that could be continued"),
    not_created=SteerError("successor_creation_failed", "the response that was to follow could not be created"),
)
"""How Responses is steered."""
