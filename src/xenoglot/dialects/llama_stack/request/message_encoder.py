"""Encodes the messages of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.call_ids import Pairing, paired
from xenoglot.dialects.llama_stack.extras import NAME, own_fields
from xenoglot.dialects.llama_stack.parts import encode_content, encode_item
from xenoglot.dialects.llama_stack.request.decoder import TOOL_ERROR
from xenoglot.dialects.llama_stack.tool_calls import encode_call
from xenoglot.dialects.llama_stack.tools import tool_name
from xenoglot.model.content import Image, Text, ToolCall, ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

_JOINTS = {"system": "\n\n", "user": "\n\n", "tool": "\n", "assistant": ""}
"""What stands between the texts of a turn for a server that takes no list of them."""

MISSING_RESULT = TOOL_ERROR + "there is no result of this call"
"""The result written for a call that the history leaves without one: servers refuse such a history (pitfall-44)."""


class MessageEncoder:
    """The encoder of one request's messages; images of tool results move to the next user turn."""

    def __init__(self, crossing: EncodeContext) -> None:
        self._crossing = crossing
        self._losses = crossing.losses
        self._messages: list[JSONObject] = []
        self._media: list[JSONObject] = []

    def encode(self, messages: Sequence[Message]) -> list[JSONObject]:
        """Return the wire's messages."""
        for index, message in enumerate(messages):
            where = f"$.messages[{index}]"
            results = any(isinstance(part, ToolResult) for part in message.content)
            if self._media and not results and message.role != "user":
                self._plain("user", [], Message(role="user"), where)
            for field in ("name", "id"):
                if getattr(message, field) is not None:
                    self._losses.dropped(where, field, "a message has none")
            parts = [(f"{where}.content[{place}]", part) for place, part in enumerate(message.content)]
            if message.role == "assistant":
                self._assistant(parts, message, where)
            elif results:
                self._results(parts, message, where)
            else:
                self._plain(self._role(message, where), parts, message, where)
        if self._media:
            self._plain("user", [], Message(role="user"), "$.messages")
        if self._crossing.home:
            return self._messages
        pairing = Pairing(calls=_calls, answers=_answers, missing=self._missing, told=self._told, late=self._late)
        return list(paired(self._messages, pairing))

    def _role(self, message: Message, where: str) -> str:
        if message.role == "developer":
            self._losses.approximated(where, "role", "`developer` is written as `system`")
        return "system" if message.role in ("system", "developer") else "user"

    def _plain(self, role: str, parts: list[tuple[str, Part]], message: Message, where: str) -> None:
        form, own = form_of(message.extra, NAME), own_fields(message.extra, where, self._losses)
        context = form.get("context")
        behind = len(parts) - context["parts"] if isinstance(context, dict) else len(parts)
        fields: JSONObject = {"role": role, "content": self._content(parts[:behind], role, where, form.get("content"))}
        if role == "user" and self._media:
            said = fields["content"]
            texts = [{"type": "text", "text": said}] if isinstance(said, str) else said
            fields["content"] = [*self._media, *(texts if isinstance(texts, list) else [texts])]
            self._media = []
        if isinstance(context, dict):
            fields["context"] = self._content(parts[behind:], role, where, context["content"])
        self._messages.append(fields | own)

    def _content(self, parts: Sequence[tuple[str, Part]], role: str, where: str, spelled: str | None) -> JSON:
        for at, part in parts:
            if isinstance(part, Text) and part.logprobs:
                self._losses.dropped(at, "logprobs", "a request of the dialect has none")
        items = [item for at, part in parts if (item := encode_item(part, at, self._losses)) is not None]
        plain = all(item.keys() == {"type", "text"} and item["type"] == "text" for item in items)
        if len(items) > 1 and plain and not self._crossing.target.text_parts:
            self._losses.approximated(where, "content", "its texts are joined")
            return _JOINTS[role].join(item["text"] for item in items)
        return encode_content(items, spelled)

    def _assistant(self, parts: list[tuple[str, Part]], message: Message, where: str) -> None:
        """Write the model's turn; without a stop reason, calls ended a message, all else the turn (L7)."""
        form, own = form_of(message.extra, NAME), own_fields(message.extra, where, self._losses)
        words = [(at, part) for at, part in parts if not isinstance(part, ToolCall)]
        calls = [(at, part) for at, part in parts if isinstance(part, ToolCall)]
        if [*words, *calls] != parts:
            self._losses.approximated(where, "order", "calls come last")
        fields: JSONObject = {
            "role": "assistant",
            "content": self._content(words, "assistant", where, form.get("content")),
        }
        stop = form.get("stop_reason", "end_of_message" if calls else "end_of_turn")
        if stop != "absent":
            fields["stop_reason"] = stop
        if calls or form.get("calls") == "empty":
            fields["tool_calls"] = [
                encode_call(part, tool_name(part.name, part.namespace, at, self._crossing), at, self._losses)
                for at, part in calls
            ]
        self._messages.append(fields | own)

    def _results(self, parts: list[tuple[str, Part]], message: Message, where: str) -> None:
        """Write each result as a message of its own, then the rest of the turn (pitfall-4)."""
        rest: list[tuple[str, Part]] = []
        own = message
        for at, part in parts:
            if not isinstance(part, ToolResult):
                rest.append((at, part))
                continue
            if rest:
                self._losses.approximated(at, "order", "the results of tools come first")
            self._result(part, at, own, where)
            own = Message(role=message.role)  # its fields are written once
        if rest:
            self._plain("user", rest, own, where)

    def _result(self, result: ToolResult, at: str, message: Message, where: str) -> None:
        if result.cache is not None:
            self._losses.dropped(at, "cache", "the server decides what it caches")
        if result.kind == "custom":
            self._losses.emulated(at, "kind", "a custom tool is written as a function of one string")
        own = own_fields(message.extra, where, self._losses) | own_fields(result.extra, at, self._losses)
        parts = [(f"{at}.content[{place}]", part) for place, part in enumerate(result.content)]
        if not self._crossing.takes(self._crossing.target.tool_result_media):
            parts = self._hoist(parts, result.call_id)
        content = self._content(
            self._marked(parts, result, at), "tool", at, form_of(message.extra, NAME).get("content")
        )
        name = {} if result.name is None else {"tool_name": result.name}
        self._messages.append({"role": "tool", "call_id": result.call_id, **name, "content": content, **own})

    def _marked(self, parts: list[tuple[str, Part]], result: ToolResult, at: str) -> list[tuple[str, Part]]:
        """Return the parts of a result; a failed one is marked in front."""
        where, first = parts[0] if parts else (at, None)
        begins = isinstance(first, Text) and first.text.startswith(TOOL_ERROR)
        if not result.is_error:
            if begins:
                self._losses.approximated(at, "content", f"a text that begins with `{TOOL_ERROR.strip()}` is an error")
            return parts
        if not self._crossing.home:
            self._losses.emulated(at, "is_error", f"the text begins with `{TOOL_ERROR.strip()}`")
        if isinstance(first, Text):
            return [(where, replace(first, text=TOOL_ERROR + first.text)), *parts[1:]]
        return [(at, Text(text=TOOL_ERROR)), *parts]

    def _late(self) -> None:
        self._losses.approximated("$.messages", "order", "the results of tools come first")

    def _missing(self, call_id: str) -> JSONObject:
        self._losses.emulated("$.messages", "tool result", "an error stands for a result that is missing")
        return {"role": "tool", "call_id": call_id, "content": MISSING_RESULT}

    def _told(self, result: JSONObject) -> JSONObject:
        self._losses.approximated("$.messages", "tool result", "no call before it has its id; written as text")
        head, said = f"Result of the tool call {result['call_id']}:", result["content"]
        if isinstance(said, str):
            return {"role": "user", "content": f"{head}\n{said}"}
        items = said if isinstance(said, list) else [said]
        return {"role": "user", "content": [{"type": "text", "text": head}, *items]}

    def _hoist(self, parts: list[tuple[str, Part]], call_id: str) -> list[tuple[str, Part]]:
        """Return the parts of a result with a note in place of each image: servers take these of users alone (L-T)."""
        kept: list[tuple[str, Part]] = []
        for at, part in parts:
            item = encode_item(part, at, self._losses) if isinstance(part, Image) else None
            if item is None:
                kept.append((at, part))
                continue
            self._losses.emulated(at, "image", "moved to the user turn after the results of tools")
            self._media += [{"type": "text", "text": f"[image from the result of {call_id}]"}, item]
            kept.append((at, Text(text="[image: in the next user message]")))
        return kept


def _calls(message: JSONObject) -> list[str]:
    return [call["call_id"] for call in message.get("tool_calls", ())]


def _answers(message: JSONObject) -> str | None:
    return message["call_id"] if message["role"] == "tool" else None
