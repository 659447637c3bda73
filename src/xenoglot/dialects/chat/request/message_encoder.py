"""Encodes the messages of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.call_ids import Pairing, paired
from xenoglot.codec.requests.names import fit
from xenoglot.dialects.chat.assistant_decoder import encode_audio
from xenoglot.dialects.chat.assistant_encoder import (
    AssistantFields,
    call_item,
    complete,
    images_field,
    note_order,
    refusal_field,
)
from xenoglot.dialects.chat.extras import NAME, own_fields
from xenoglot.dialects.chat.fast.frequent_shapes import write_plain
from xenoglot.dialects.chat.parts import encode_part
from xenoglot.dialects.chat.reasoning import history_fields
from xenoglot.dialects.chat.request.fields import ID_LIMIT, TOOL_ERROR
from xenoglot.dialects.chat.signatures import is_seal_alone, message_signature, unsigned, with_signature
from xenoglot.dialects.chat.tool_calls import encode_function_call
from xenoglot.dialects.chat.tools import tool_name
from xenoglot.model.content import Audio, File, Image, Opaque, Text, ToolResult, Video
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

MOST_CALLS = 64
"""Calls of a turn whose results are looked for one by one."""

MISSING_RESULT = TOOL_ERROR + "there is no result of this call"
"""The answer written for a call that the history leaves without one: servers refuse such a history (pitfall-44)."""

_JOINTS = {"system": "\n\n", "developer": "\n\n", "user": "\n\n", "tool": "\n", "assistant": ""}
"""What stands between the texts of a turn that is written as one string; many servers take no list there."""

_MEDIA = (Image, Audio, Video, File)

_FRAME = {"role", "name", "content"}
"""Fields of a message that have no meaning without content."""


class MessageEncoder:
    """The encoder of one request's messages; media of tool results move to the next user turn."""

    def __init__(self, crossing: EncodeContext) -> None:
        self._crossing = crossing
        self._losses = crossing.losses
        self._messages: list[JSONObject] = []
        self._media: list[JSONObject] = []

    def encode(self, messages: Sequence[Message]) -> list[JSONObject]:
        """Return the wire's messages."""
        for index, message in enumerate(messages):
            plain = None if self._media else write_plain(message, self._crossing)
            if plain is None:
                self._message(message, f"$.messages[{index}]")
            else:
                self._messages += plain
        if self._media:
            self._user([], "$.messages", Message(role="user"))
        if self._crossing.home or _is_paired(self._messages):
            return self._messages
        pairing = Pairing(calls=_called, answers=_answers, missing=self._missing, told=self._told, late=self._late)
        return list(paired(self._messages, pairing))

    def _message(self, message: Message, where: str) -> None:
        results = any(isinstance(part, ToolResult) for part in message.content)
        if not results and self._media and message.role != "user":
            self._user([], where, Message(role="user"))
        if message.id is not None:
            self._losses.dropped(where, "id", "a message has none")
        if message.role == "assistant":
            self._assistant(message, where)
        elif results:
            self._results(message, where)
        else:
            self._words(message, where)

    def _words(self, message: Message, where: str) -> None:
        parts = [(f"{where}.content[{index}]", part) for index, part in enumerate(message.content)]
        if message.role in ("user", "tool"):
            self._user(parts, where, message)
            return
        role = message.role
        if role == "developer" and not self._crossing.takes(self._crossing.target.developer_role):
            self._losses.approximated(where, "role", "`developer` is written as `system`")
            role = "system"
        written = {"role": role, **self._named(message), **self._content(parts, message, where)}
        self._add(written, parts, message, where)

    def _user(self, parts: list[tuple[str, Part]], where: str, message: Message) -> None:
        content = self._content(parts, message, where)
        if self._media:
            said = content.get("content")
            texts = [{"type": "text", "text": said}] if isinstance(said, str) and said else said or []
            content["content"] = [*self._media, *texts]
            self._media = []
        self._add({"role": "user", **self._named(message), **content}, parts, message, where)

    def _add(self, written: JSONObject, parts: Sequence[tuple[str, Part]], message: Message, where: str) -> None:
        """Add a message, unless none of its content can be sent: servers refuse an empty one."""
        said = written.keys() - _FRAME or written.get("content") or any(isinstance(part, Text) for _, part in parts)
        if said or not parts or self._crossing.home:
            self._messages.append(written)
        elif message.content and not any(isinstance(part, ToolResult) for part in message.content):
            self._losses.dropped(where, "message", "no content is left")

    def _named(self, message: Message) -> JSONObject:
        return {} if message.name is None else {"name": message.name}

    def _content(self, parts: list[tuple[str, Part]], message: Message, where: str) -> JSONObject:
        """Return `content` and the fields of a message that are not read otherwise."""
        spelled = form_of(message.extra, NAME).get("content")
        own = own_fields(message.extra, where, self._losses)
        if not parts and spelled in ("absent", "null"):
            return ({} if spelled == "absent" else {"content": None}) | own
        return {"content": self._spell(parts, message.role, where, listed=spelled == "parts")} | own

    def _spell(self, parts: list[tuple[str, Part]], role: str, where: str, *, listed: bool) -> JSON:
        encoded = [item for at, part in parts if (item := encode_part(part, at, self._crossing)) is not None]
        plain = all(item.keys() == {"type", "text"} and item["type"] == "text" for item in encoded)
        several = len(encoded) > 1
        if not plain or (self._crossing.target.text_parts and (listed or (role == "user" and several))):
            return encoded
        if several:
            self._losses.approximated(where, "content", "its texts are joined")
        return _JOINTS[role].join(item["text"] for item in encoded)

    def _results(self, message: Message, where: str) -> None:
        """Write each result as a message of its own, then the other content of the turn (pitfall-4)."""
        rest: list[tuple[str, Part]] = []
        for index, part in enumerate(message.content):
            at = f"{where}.content[{index}]"
            if not isinstance(part, ToolResult):
                rest.append((at, part))
                continue
            if rest:
                self._losses.approximated(at, "order", "the results of tools come first")
            self._messages.append(self._result(part, at, message, where))
        if rest:
            self._user(rest, where, message if message.role == "user" else Message(role="user"))

    def _result(self, result: ToolResult, at: str, message: Message, where: str) -> JSONObject:
        own = own_fields(message.extra, where, self._losses) if message.role == "tool" else {}
        own |= own_fields(result.extra, at, self._losses)
        if result.cache is not None:
            self._losses.dropped(at, "cache", "a result takes no cache mark")
        form = form_of(message.extra, NAME)
        content = self._result_content(result, at, form)
        if "legacy" in form:
            return {"role": "function", "name": result.name, **content, **own}
        name = {} if result.name is None or not self._crossing.home else {"name": result.name}
        return {"role": "tool", "tool_call_id": self._id(result.call_id, at), **name, **content, **own}

    def _result_content(self, result: ToolResult, at: str, form: JSONObject) -> JSONObject:
        spelled = form.get("content")
        parts = [(f"{at}.content[{index}]", part) for index, part in enumerate(result.content)]
        if not self._crossing.takes(self._crossing.target.tool_result_media):
            parts = self._hoist(parts, result.call_id)
        if not parts and spelled in ("absent", "null") and not result.is_error:
            return {} if spelled == "absent" else {"content": None}
        if result.is_error:
            if not self._crossing.home:
                self._losses.emulated(at, "is_error", f"the text begins with `{TOOL_ERROR.strip()}`")
            parts = _mark_error(parts, at)
        return {"content": self._spell(parts, "tool", at, listed=spelled == "parts")}

    def _hoist(self, parts: list[tuple[str, Part]], call_id: str) -> list[tuple[str, Part]]:
        """Return the parts of a result with a note in place of each image and file, which move after the results."""
        kept: list[tuple[str, Part]] = []
        for at, part in parts:
            encoded = encode_part(part, at, self._crossing) if isinstance(part, _MEDIA) else None
            if encoded is None or encoded["type"] == "text":
                kept.append((at, part))
                continue
            kind = name_of(part)
            self._losses.emulated(at, kind, "moved to the user turn after the results of tools")
            self._media += [{"type": "text", "text": f"[{kind} from the result of {self._id(call_id, at)}]"}, encoded]
            kept.append((at, Text(text=f"[{kind}: in the next user message]")))
        return kept

    def _assistant(self, message: Message, where: str) -> None:
        parts = AssistantFields(message.content, where)
        form = form_of(message.extra, NAME)
        if not self._crossing.home:
            note_order(message.content, where, self._losses)
        fields: JSONObject = {"role": "assistant", **self._named(message)}
        signature = self._take_signature(parts)
        fields |= history_fields(parts.thoughts, self._crossing)
        fields |= self._content(parts.words, message, where) | signature
        fields |= refusal_field(parts)
        for at, refusal in parts.refusals:
            if not refusal.text:
                self._losses.dropped(at, "refusal", "it is empty")
        fields |= images_field(parts, self._losses)
        for at, audio in parts.audio:
            fields["audio"] = encode_audio(audio, at, self._losses)
        fields |= self._calls(parts)
        blanks = {key: value for key, value in form.get("blanks", {}).items() if key not in fields}
        said = [(where, part) for part in message.content]
        self._add(blanks | fields, said, message, where)

    def _take_signature(self, parts: AssistantFields) -> JSONObject:
        """Return the field for the signature of a message, which is taken out of `parts`."""
        if not self._crossing.target.thought_signatures:
            return {}
        signature = message_signature([*parts.thoughts, *parts.words], self._losses)
        if signature:
            parts.words = [(at, unsigned(part)) for at, part in parts.words]
            parts.thoughts = [(at, part) for at, part in parts.thoughts if not is_seal_alone(part)]
        return signature

    def _calls(self, parts: AssistantFields) -> JSONObject:
        calls: list[JSONObject] = []
        for at, part in parts.calls:
            if isinstance(part, Opaque):
                calls.append(call_item(part, "", "", at, self._losses))
                continue
            name = tool_name(part.name, part.namespace, at, self._crossing)
            if "legacy" in form_of(part.extra, NAME):
                return {"function_call": encode_function_call(part, name, at, self._losses)}
            if part.cache is not None:
                self._losses.dropped(at, "cache", "a call takes no cache mark")
            call = part if self._crossing.home else complete(part)
            if self._crossing.target.thought_signatures:
                call = with_signature(call, at, self._losses)
            calls.append(call_item(call, self._id(part.id, at), name, at, self._losses))
        return {"tool_calls": calls} if calls else {}

    def _id(self, call_id: str, where: str) -> str:
        fitted = call_id if self._crossing.home else fit(call_id, ID_LIMIT)
        if fitted != call_id:
            self._losses.emulated(where, "id", "fitted to what servers take, alike on call and result")
        return fitted

    def _told(self, answer: JSONObject) -> JSONObject:
        self._losses.approximated("$.messages", "tool result", "no call before it has its id; written as text")
        head, content = f"Result of the tool call {answer['tool_call_id']}:", answer["content"]
        if isinstance(content, str):
            return {"role": "user", "content": f"{head}\n{content}"}
        return {"role": "user", "content": [{"type": "text", "text": head}, *content]}

    def _late(self) -> None:
        self._losses.approximated("$.messages", "order", "the results of tools come first")

    def _missing(self, call_id: str) -> JSONObject:
        self._losses.emulated("$.messages", "tool result", "an error stands for a result that is missing")
        return {"role": "tool", "tool_call_id": call_id, "content": MISSING_RESULT}


def _is_paired(messages: Sequence[JSONObject]) -> bool:
    """Whether the results of all calls follow them at once, one for each: then `paired` changes nothing."""
    waiting: list[JSON] = []
    for message in messages:
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if call_id not in waiting:
                return False
            waiting.remove(call_id)
        elif waiting:
            return False
        elif message.get("tool_calls"):
            waiting = [call.get("id") for call in message["tool_calls"]]
            if len(waiting) > MOST_CALLS:
                return False
    return not waiting


def _called(message: JSONObject) -> Iterable[str]:
    if "tool_calls" not in message:
        return ()
    ids = (call.get("id") for call in message["tool_calls"] or ())
    return [call_id for call_id in ids if isinstance(call_id, str)]  # one of a kind to come may have none


def _answers(message: JSONObject) -> str | None:
    return message["tool_call_id"] if message["role"] == "tool" else None


def _mark_error(parts: list[tuple[str, Part]], at: str) -> list[tuple[str, Part]]:
    where, first = parts[0] if parts else (at, None)
    if isinstance(first, Text):
        return [(where, replace(first, text=TOOL_ERROR + first.text)), *parts[1:]]
    return [(at, Text(text=TOOL_ERROR)), *parts]
