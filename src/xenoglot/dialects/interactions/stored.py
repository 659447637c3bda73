"""Stored interactions: retrieved, continued, and followed while they are generated in the background.

Source: `google/genai/_gaos/interactions.py` of the official SDK and https://ai.google.dev/gemini-api/docs/interactions.
A request is stored unless `store` is false; an interaction continues another by `previous_interaction_id`, which brings
its steps, but neither its instruction nor its tools. Every event of a stored stream has an `event_id`: a client that
lost the connection continues after it (`last_event_id`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.stored_responses import Background, StoredResponseCodec, StoreOptions
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import Reader
from xenoglot.dialects.interactions.errors import error_of
from xenoglot.dialects.interactions.request.decoder import decode_request
from xenoglot.dialects.interactions.request.input_decoder import CONTENTS, USER
from xenoglot.dialects.interactions.response import encode_response, time_of
from xenoglot.dialects.interactions.stream.decoder import DONE, StreamDecoder
from xenoglot.errors import WireError
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.features.stored_responses import StoredAnswer
    from xenoglot.model.json import JSON, JSONObject

_STATE: Final = frozenset({"background", "previous_interaction_id"})
"""Fields that only a server with a store understands."""

_EVENT_ID: Final = "event_id"
_DIGITS: Final = 8

_KEYS: Final = frozenset({"headers"})
"""Fields of a tool on another server that let one in (`MCPServer`)."""


def decode_options(body: JSON) -> StoreOptions:
    """Return what a request asks of the store.

    Raises:
        WireError: a field is of the wrong type, or two contradict each other.
    """
    reader = Reader(body)
    background = bool(reader.take("background", bool))
    keep = reader.take("store", bool) is not False
    if background and not keep:
        raise WireError("$.background", "an interaction in the background is stored: `store` must not be false")
    return StoreOptions(keep=keep, previous=reader.take("previous_interaction_id", str) or None, background=background)


def decode_items(body: JSONObject) -> list[JSON]:
    """Return the steps of a request; a text and contents are a step of the user."""
    found = body.get("input")
    if found is None or found == []:
        return []
    if isinstance(found, str):
        return [{"type": USER, "content": [{"type": "text", "text": found}]}]
    if isinstance(found, dict):
        return [{"type": USER, "content": [found]}]
    if not isinstance(found, list):
        raise WireError("$.input", "expected str, object or list")
    if all(isinstance(item, dict) and item.get("type") in CONTENTS for item in found):
        return [{"type": USER, "content": found}]
    return list(found)


def prepare(body: JSONObject, items: Sequence[JSON]) -> JSONObject:
    """Return the request for a server that stores nothing, with all the steps that it continues."""
    rest = {key: value for key, value in body.items() if key not in _STATE} | {"store": False}
    return rest if list(items) == decode_items(body) else rest | {"input": list(items)}


def show(answer: JSONObject, kept: StoredAnswer) -> JSONObject:
    """Return an interaction as that of a stored request: under our id, with the one that it continues."""
    shown = answer | {"id": kept.id}
    if kept.wish.previous is not None:
        shown["previous_interaction_id"] = kept.wish.previous
    if kept.created is not None and (moment := time_of(kept.created)) is not None:
        shown |= {"created": moment} | ({} if "updated" in shown else {"updated": moment})
    tools = answer.get("tools")
    return shown | ({"tools": [_unlocked(tool) for tool in tools]} if isinstance(tools, list) else {})


def _unlocked(tool: JSON) -> JSON:
    """Return a tool without what opens its server."""
    return {key: value for key, value in tool.items() if key not in _KEYS} if isinstance(tool, dict) else tool


def mark(answer: JSONObject, status: str, failure: Failure | None) -> JSONObject:
    """Return the interaction with another status."""
    return answer | {"status": status} | ({} if failure is None else {"errors": [error_of(failure)]})


class StoredInteractionsStream:
    """Rewrites a stream to that of a stored interaction, with our id and ids of events, and collects its steps.

    The stream of one in the background has begun before the model's own: it continues where `opening` ended.
    """

    __slots__ = ("_answer", "_begun", "_decoder", "_folder", "_kept", "_number")

    def __init__(self, kept: StoredAnswer) -> None:
        self._kept = kept
        self._begun = kept.wish.background
        self._number = len(opening({})) if self._begun else 0
        self._decoder = StreamDecoder()
        self._folder = Folder()
        self._answer: JSONObject | None = None

    def feed(self, event: ServerSentEvent, /) -> Sequence[ServerSentEvent]:
        """Return the event as the client gets it."""
        for made in self._decoder.feed(event):
            self._folder.feed(made)
        if event.data == DONE:
            return (event,)
        try:
            frame = decode_answer(event.data)
        except WireError:
            frame = None
        if not isinstance(frame, dict):
            return () if self._begun else (event,)
        kind = frame.get("event_type")
        if self._begun and kind == "interaction.created":
            return ()
        if isinstance(frame.get("interaction"), dict):
            frame["interaction"] = show(frame["interaction"], self._kept)
            if kind == "interaction.completed" and self._folder.failure is None:
                self._answer = self._whole(frame["interaction"])
        if "interaction_id" in frame:
            frame["interaction_id"] = self._kept.id
        frame[_EVENT_ID] = event_id(self._number)
        self._number += 1
        return (ServerSentEvent(encode_json(frame), event.event),)

    def _whole(self, told: JSONObject) -> JSONObject:
        """Return the interaction with its steps, which the last event does not have."""
        request = decode_request({**self._kept.request, "input": [], "system_instruction": None})
        answer = encode_response(self._folder.response(), request, Losses())
        return show({**answer, **told, "steps": answer.get("steps", [])}, self._kept)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return nothing: nothing is buffered."""
        return ()

    @property
    def answer(self) -> JSONObject | None:
        """The whole interaction; `None` while it is not over."""
        return self._answer


def event_id(number: int) -> str:
    """Return the id of an event of a stored stream."""
    return f"event_{number:0{_DIGITS}d}"


def event_number(text: str) -> int:
    """Return the number of the event with this id.

    Raises:
        WireError: it is no id of ours.
    """
    digits = text.removeprefix("event_")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(2**53))):
        raise WireError("$.last_event_id", "expected the `event_id` of an event of this interaction")
    return int(digits)


def opening(answer: JSONObject) -> Sequence[ServerSentEvent]:
    """Return how the stream of an interaction in the background begins."""
    status = {"interaction_id": answer.get("id", ""), "status": answer.get("status", "queued")}
    told = {key: value for key, value in answer.items() if key != "steps"}
    return [_event("interaction.created", 0, {"interaction": told}), _event("interaction.status_update", 1, status)]


def ending(answer: JSONObject, number: int) -> Sequence[ServerSentEvent]:
    """Return how a stream ends whose interaction was broken off."""
    status = answer.get("status")
    told = _event("interaction.status_update", number, {"interaction_id": answer.get("id", ""), "status": status})
    errors = answer.get("errors")
    if status != "failed" or not isinstance(errors, list) or not errors:
        return [told]
    return [told, _event("error", number + 1, {"error": errors[0]})]


def _event(kind: str, number: int, fields: JSONObject) -> ServerSentEvent:
    return ServerSentEvent(encode_json({"event_type": kind, _EVENT_ID: event_id(number), **fields}), kind)


def with_input(answer: JSONObject, items: Sequence[JSON]) -> JSONObject:
    """Return an interaction with its input (`include_input`)."""
    return answer | {"input": list(items)}


def _steps(answer: JSONObject) -> list[JSON]:
    found = answer.get("steps")
    return found if isinstance(found, list) else []


def _status(answer: JSONObject) -> str:
    said = answer.get("status")
    return said if isinstance(said, str) else "completed"


def _failure(kind: str, message: str) -> Failure:
    return Failure(kind="not_found" if kind == "not_found" else "invalid_request", message=message)


def _unknown(name: str) -> Failure:
    return _failure("not_found", f"interaction `{name}` not found")


def _unknown_previous(name: str) -> Failure:
    return _failure("not_found", f"interaction `{name}` of `previous_interaction_id` not found")


def _unfinished_previous(name: str) -> Failure:
    return _failure("invalid", f"interaction `{name}` is still in progress; continue it when it is completed")


def _not_followed(name: str) -> Failure:
    told = "it was not created with `background` and `stream`"
    return _failure("invalid", f"interaction `{name}` cannot be streamed: {told}; retrieve it without `stream`")


def _not_in_background() -> Failure:
    return _failure("invalid", "only an interaction in the background can be cancelled")


PATH: Final = "/v1beta/interactions"
ALIASES: Final = tuple(f"/{version}/interactions" for version in ("v1", "v1alpha", "v1beta1"))
"""Paths of other versions of the API; the official SDK asks at the first of them."""

STATE: Final = StoredResponseCodec(
    path=PATH,
    aliases=ALIASES,
    id_prefix="v1_",
    items_path="",
    wish=decode_options,
    items=decode_items,
    refers=lambda _item: False,
    prepare=prepare,
    ask_seals=lambda body: body,
    output=_steps,
    show=show,
    showing=StoredInteractionsStream,
    mark=mark,
    status=_status,
    listed=lambda items, _name: [item for item in items if isinstance(item, dict)],
    page=lambda items, _more: {"steps": list(items)},
    deleted=lambda _name: {},
    unknown=_unknown,
    unknown_previous=_unknown_previous,
    unfinished_previous=_unfinished_previous,
    unknown_item=_unknown,
    not_followed=_not_followed,
    not_in_background=_not_in_background,
    background=Background(opening=opening, ending=ending),
    with_input=with_input,
    resumed_after="last_event_id",
    event_number=event_number,
)
