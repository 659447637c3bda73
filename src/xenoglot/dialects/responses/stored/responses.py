"""Stored responses: retrieved, continued, and followed while they are generated in the background.

Source: `openai/resources/responses/`, `openai/types/responses/response_create_params.py`, and
https://developers.openai.com/api/docs/guides/background. A request without `store` is stored;
`instructions` of an earlier answer do not carry over (pitfall-60); an unknown `previous_response_id` is a 400 with a
code of its own (pitfall-59).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.stored_responses import Background, StoredResponseCodec, StoreOptions
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.openai.shared import encode_page, refusal
from xenoglot.dialects.responses.errors import encode_failure
from xenoglot.dialects.responses.request.context_management import TRIGGER
from xenoglot.dialects.responses.stored.conversations import CONVERSATIONS, anonymous, identify
from xenoglot.errors import FailureError, WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.features.stored_responses import StoredAnswer
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

_ASKING = frozenset({"background", "conversation", "previous_response_id"})
"""Fields that only the one who keeps things understands."""

_ASKING_FIELDS = ("input", "previous_response_id", "conversation", "prompt")
"""Fields of which a request to be answered has one."""

SEALED = "reasoning.encrypted_content"

_KEYS = frozenset({"authorization", "headers"})
"""Fields of a tool on another server that let one in (`Mcp` in `openai/types/responses/tool_param.py`)."""

_ENDS = frozenset({"response.completed", "response.failed", "response.incomplete"})
"""The events that carry a whole answer which is over."""


def decode_wish(body: JSON) -> StoreOptions:
    """Return what a request asks of the response store.

    Raises:
        WireError: a field is of the wrong type, or two contradict each other.
    """
    reader = Reader(body)
    background = bool(reader.take("background", bool))
    keep = reader.take("store", bool) is not False
    previous = reader.take("previous_response_id", str)
    conversation = _conversation(reader)
    if previous is not None and conversation is not None:
        raise WireError("$.previous_response_id", "cannot be given together with `conversation`")
    if background and not keep:
        raise WireError("$.background", "an answer made in the background is kept: `store` must not be false")
    found = reader.peek("input")
    references = tuple(_reference(item) for item in found if refers(item)) if isinstance(found, list) else ()
    return StoreOptions(
        keep=keep, previous=previous, conversation=conversation, references=references, background=background
    )


def decode_items(body: JSONObject) -> list[JSON]:
    """Return the items of a request; a text is a message of the user."""
    found = body.get("input")
    if isinstance(found, str):
        return [{"type": "message", "role": "user", "content": found}]
    if found is not None and not isinstance(found, list):
        raise expected("$.input", "str or list", found)
    return list(found or ())


def prepare(body: JSONObject, items: Sequence[JSON]) -> JSONObject:
    """Return the request for a server that keeps nothing: all items spelled out, in place of references the items."""
    rest = {key: value for key, value in body.items() if key not in _ASKING} | {"store": False}
    if list(items) == decode_items(body):
        return rest
    said = [item for at, item in enumerate(items) if at + 1 == len(items) or not _is_trigger(item)]
    return rest | {"input": [anonymous(item) for item in said if not _silent(item)]}


def ask_seals(body: JSONObject) -> JSONObject:
    """Return the request with encrypted reasoning in `include`: a server without a store needs it for later turns.

    Only if the client sets `reasoning`: models that do not reason reject such a request (pitfall-61).
    """
    asked = body.get("include")
    include = asked if isinstance(asked, list) else []
    if not isinstance(body.get("reasoning"), dict) or SEALED in include:
        return body
    return body | {"include": [*include, SEALED]}


def show(answer: JSONObject, kept: StoredAnswer) -> JSONObject:
    """Return an answer as that of a stored request: with our id, and with the request's own fields for storing."""
    wish = kept.wish
    ours: JSONObject = {} if wish.conversation is None else {"conversation": {"id": wish.conversation}}
    if kept.created is not None:
        ours["created_at"] = kept.created
    tools = answer.get("tools")
    return answer | {
        "id": kept.id,
        "background": wish.background,
        "previous_response_id": wish.previous,
        "store": wish.keep,
        **({"tools": [_unlocked(tool) for tool in tools]} if isinstance(tools, list) else {}),
        **ours,
    }


def _unlocked(tool: JSON) -> JSON:
    """Return a tool without the credentials of its server: neither stored nor shown, each request sends them."""
    if not isinstance(tool, dict) or _KEYS.isdisjoint(tool):
        return tool
    return {key: value for key, value in tool.items() if key not in _KEYS}


def mark(answer: JSONObject, status: str, failure: Failure | None) -> JSONObject:
    """Return the answer with another status."""
    return answer | {"status": status, "error": None if failure is None else encode_failure(failure)}


class StoredResponseStream:
    """Rewrites a stream to that of a stored answer: its id in every event that contains it, and our event numbers.

    The stream of an answer in the background has begun before the model's own: it continues where `opening` ended.
    """

    __slots__ = ("_answer", "_begun", "_kept", "_number")

    def __init__(self, kept: StoredAnswer) -> None:
        self._kept = kept
        self._begun = kept.wish.background
        self._number = len(opening({})) if self._begun else 0
        self._answer: JSONObject | None = None

    def feed(self, event: ServerSentEvent, /) -> Sequence[ServerSentEvent]:
        """Return the event as the client gets it."""
        try:
            frame = decode_answer(event.data)
        except WireError:  # `[DONE]`, which some servers send though the dialect has no such event
            frame = None
        if not isinstance(frame, dict):
            return () if self._begun else (event,)
        if self._begun and frame.get("type") == "response.created":
            return ()
        if isinstance(frame.get("response"), dict):
            frame["response"] = show(frame["response"], self._kept)
            if frame.get("type") in _ENDS:
                self._answer = frame["response"]
        if self._begun or "sequence_number" in frame:  # in the background every event can be followed from
            frame["sequence_number"] = self._number
            self._number += 1
        return (ServerSentEvent(encode_json(frame), event.event),)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return nothing: nothing is buffered."""
        return ()

    @property
    def answer(self) -> JSONObject | None:
        """The whole answer; `None` while it is not over."""
        return self._answer


def opening(answer: JSONObject) -> Sequence[ServerSentEvent]:
    """Return how the stream of an answer in the background begins."""
    return [_event(kind, number, answer) for number, kind in enumerate(("response.created", "response.queued"))]


def ending(answer: JSONObject, number: int) -> Sequence[ServerSentEvent]:
    """Return the last events of a stream whose answer was broken off; a cancelled answer has no such event."""
    return [_event("response.failed", number, answer)] if answer.get("status") == "failed" else ()


def _event(kind: str, number: int, answer: JSONObject) -> ServerSentEvent:
    return ServerSentEvent(encode_json({"type": kind, "sequence_number": number, "response": answer}), kind)


def _conversation(reader: Reader) -> str | None:
    """Take the conversation, given by its id or as an object that has one."""
    if isinstance(reader.peek("conversation"), dict):
        return Reader(reader.take("conversation", dict), reader.at("conversation")).need("id", str)
    return reader.take("conversation", str)


def _is_trigger(item: JSON) -> bool:
    """Whether an item requested a compaction, which is done unless it is the last of all."""
    return isinstance(item, dict) and item.get("type") == TRIGGER


def _silent(item: JSON) -> bool:
    """Whether an item is a mere reference to reasoning, which only the server that stored it could look up."""
    return (
        isinstance(item, dict)
        and item.get("type") == "reasoning"
        and not any(item.get(key) for key in ("encrypted_content", "content", "summary"))
    )


def refers(item: JSON) -> bool:
    """Whether an item stands for one that is kept (`ItemReference`: its `type` may be left out)."""
    return isinstance(item, dict) and (
        item.get("type") == "item_reference" or (item.keys() <= {"id", "type"} and item.get("type") is None)
    )


def _reference(item: JSONObject) -> str:
    return Reader(item, "$.input").need("id", str)


def _output(answer: JSONObject) -> list[JSON]:
    found = answer.get("output")
    return found if isinstance(found, list) else []


def _status(answer: JSONObject) -> str:
    said = answer.get("status")
    return said if isinstance(said, str) else "completed"


def _deleted(name: str) -> JSONObject:
    return {"id": name, "object": "response", "deleted": True}


def _unknown(name: str) -> Failure:
    return refusal("not_found", f"Response with id '{name}' not found.")


def _unknown_previous(name: str) -> Failure:
    message = f"Previous response with id '{name}' not found."
    return refusal("invalid_request", message, param="previous_response_id", code="previous_response_not_found")


def _unfinished_previous(name: str) -> Failure:
    message = f"Previous response with id '{name}' is still in progress; it can be continued once it is completed."
    return refusal("invalid_request", message, param="previous_response_id", code="previous_response_not_completed")


def _require(body: JSON) -> None:
    """Refuse a request that asks nothing (pitfall-120): it has no `input`, and nothing that could stand in for one.

    Raises:
        FailureError: it does.
    """
    if isinstance(body, dict) and all(body.get(name) is None for name in _ASKING_FIELDS):
        message = "Missing required parameter: 'input'."
        raise FailureError(refusal("invalid_request", message, param="input", code="missing_required_parameter"))


def _unknown_item(name: str) -> Failure:
    return refusal("not_found", f"Item with id '{name}' not found.", param="input")


def _not_followed(name: str) -> Failure:
    message = f"Response with id '{name}' cannot be streamed: it was not created with background=true and stream=true."
    return refusal("invalid_request", message, param="stream")


def _not_in_background() -> Failure:
    return refusal("invalid_request", "Cannot cancel a synchronous response.")


STATE: Final = StoredResponseCodec(
    path="/v1/responses",
    id_prefix="resp_",
    items_path="input_items",
    wish=decode_wish,
    items=decode_items,
    refers=refers,
    prepare=prepare,
    ask_seals=ask_seals,
    output=_output,
    show=show,
    showing=StoredResponseStream,
    mark=mark,
    status=_status,
    listed=identify,
    page=encode_page,
    deleted=_deleted,
    unknown=_unknown,
    unknown_previous=_unknown_previous,
    unfinished_previous=_unfinished_previous,
    unknown_item=_unknown_item,
    not_followed=_not_followed,
    not_in_background=_not_in_background,
    require=_require,
    background=Background(opening=opening, ending=ending),
    conversations=CONVERSATIONS,
)
