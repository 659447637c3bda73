"""Stored completions: answers to requests with `store: true` can be listed, read, updated and deleted.

Source: `openai/resources/chat/completions/`. Nothing continues a kept answer here: a request holds its whole history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.stored_responses import NO_STORE_OPTIONS, StoredResponseCodec, StoreOptions
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import Reader
from xenoglot.dialects.chat.request.decoder import decode_request
from xenoglot.dialects.chat.response import encode_response
from xenoglot.dialects.chat.stream.decoder import DONE, StreamDecoder
from xenoglot.dialects.openai.shared import encode_page, refusal
from xenoglot.errors import WireError
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.features.stored_responses import StoredAnswer
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

_ASKING = frozenset({"metadata", "store"})
"""Fields that only the one who keeps things understands: a server refuses `metadata` of what it is not to keep."""


def decode_wish(body: JSON) -> StoreOptions:
    """Return the storage options of a request (`store`)."""
    if isinstance(body, dict) and "store" not in body:
        return NO_STORE_OPTIONS
    return StoreOptions(keep=Reader(body).take("store", bool) is True)


def decode_items(body: JSONObject) -> list[JSON]:
    """Return the messages of a request."""
    found = body.get("messages")
    return list(found) if isinstance(found, list) else []


def prepare(body: JSONObject, _items: Sequence[JSON]) -> JSONObject:
    """Return the request for a server that keeps nothing; one for a stream asks for the usage, which is kept too."""
    rest = {key: value for key, value in body.items() if key not in _ASKING}
    if body.get("stream") is not True or _wants_usage(body):
        return rest
    options = body.get("stream_options")
    return rest | {"stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}


def show(answer: JSONObject, kept: StoredAnswer) -> JSONObject:
    """Return an answer under our id, with its labels."""
    metadata = kept.request.get("metadata")
    return answer | {"id": kept.id} | ({} if metadata is None else {"metadata": metadata})


class StoredChatStream:
    """A stage that sets our id in a stream, and collects the complete answer to store it."""

    __slots__ = ("_answer", "_decoder", "_folder", "_kept")

    def __init__(self, kept: StoredAnswer) -> None:
        self._kept = kept
        self._decoder = StreamDecoder()
        self._folder = Folder()
        self._answer: JSONObject | None = None

    def feed(self, event: ServerSentEvent, /) -> Sequence[ServerSentEvent]:
        """Return the chunk as the client gets it."""
        for made in self._decoder.feed(event):
            self._folder.feed(made)
        if event.data == DONE:
            self.close()
            return (event,)
        try:
            chunk = decode_answer(event.data)
        except WireError:
            return (event,)
        if not isinstance(chunk, dict) or "id" not in chunk:
            return (event,)
        if not _wants_usage(self._kept.request) and chunk.pop("usage", None) and not chunk.get("choices"):
            return ()
        return (ServerSentEvent(encode_json(chunk | {"id": self._kept.id}), event.event),)

    def close(self) -> Sequence[ServerSentEvent]:
        """End the stream, and build the complete answer."""
        if self._answer is None:
            for made in self._decoder.close():
                self._folder.feed(made)
            if self._folder.failure is None:
                request = decode_request(self._kept.request)
                self._answer = show(encode_response(self._folder.response(), request, Losses()), self._kept)
        return ()

    @property
    def answer(self) -> JSONObject | None:
        """The whole answer; `None` while it is not over, or if it failed."""
        return self._answer


def update(answer: JSONObject, body: JSON) -> JSONObject:
    """Return the answer with other labels (`metadata`)."""
    return answer | {"metadata": Reader(body).need("metadata", dict)}


def _unchanged(body: JSONObject) -> JSONObject:
    return body


def _refers(_message: JSON) -> bool:
    return False


def _wants_usage(body: JSONObject) -> bool:
    """Whether the client requested usage at the end of its stream."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _no_output(_answer: JSONObject) -> list[JSON]:
    return []


def _mark(answer: JSONObject, _status: str, _failure: Failure | None) -> JSONObject:
    return answer


def _status(_answer: JSONObject) -> str:
    return "completed"


def _listed(messages: Sequence[JSON], seed: str) -> list[JSONObject]:
    """Return messages as they are listed (`ChatCompletionStoreMessage`): parts stand apart from a lone text."""
    return [
        _stored_message(message, f"{seed}-{index}")
        for index, message in enumerate(messages)
        if isinstance(message, dict)
    ]


def _stored_message(message: JSONObject, name: str) -> JSONObject:
    content = message.get("content")
    parts = content if isinstance(content, list) else None
    text = content if isinstance(content, str) else None
    return {"id": name, "name": None, **message, "content": text, "content_parts": parts}


def _deleted(name: str) -> JSONObject:
    return {"id": name, "object": "chat.completion.deleted", "deleted": True}


def _unknown(name: str) -> Failure:
    return refusal("not_found", f"Chat completion with id '{name}' not found.")


def _nothing_of_the_kind(*_: str) -> Failure:
    return refusal("invalid_request", "A chat completion is told whole.")


STATE: Final = StoredResponseCodec(
    path="/v1/chat/completions",
    id_prefix="chatcmpl-",
    items_path="messages",
    wish=decode_wish,
    items=decode_items,
    refers=_refers,
    prepare=prepare,
    ask_seals=_unchanged,
    output=_no_output,
    show=show,
    showing=StoredChatStream,
    mark=_mark,
    status=_status,
    listed=_listed,
    page=encode_page,
    deleted=_deleted,
    unknown=_unknown,
    unknown_previous=_unknown,
    unfinished_previous=_unknown,
    unknown_item=_unknown,
    not_followed=_nothing_of_the_kind,
    not_in_background=_nothing_of_the_kind,
    oldest_first=True,
    update=update,
)
