"""Encodes parts as blocks of content."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Final

from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.requests.names import fit, qualified, spell_id
from xenoglot.codec.responses.reasoning import pack
from xenoglot.dialects.converse.citations import BLOCK, encode_citations
from xenoglot.dialects.converse.extras import NAME, member, with_rest, with_said, write_cache_point
from xenoglot.dialects.converse.parts.media import MediaEncoder
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    File,
    HostedCall,
    HostedResult,
    Image,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Video,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject

NAME_LIMIT: Final = 64
"""`ToolName` in the published model of the API."""

_ID_LIMIT: Final = 64
"""`ToolUseId` there."""

SUMMARY_BREAK: Final = "\n\n"

_PLACES: dict[type[Part], tuple[str, ...]] = {
    Reasoning: ("assistant",),
    ToolCall: ("assistant",),
    ToolResult: ("user",),
    Image: ("user", "assistant", "result"),
    File: ("user", "result"),
    Video: ("user", "result"),
    Audio: ("user", "assistant"),
}
"""The only roles whose turns can hold such a part (`result`: inside a tool result); the others can stand anywhere."""


class PartEncoder:
    """Encodes parts into one request (`target` given) or one answer, and records losses.

    `home` is whether all of it came from this dialect: then nothing is changed.
    """

    __slots__ = ("_home", "_losses", "_media", "_target")

    def __init__(self, losses: Losses, *, home: bool, target: Target | None = None) -> None:
        self._losses = losses
        self._home = home
        self._target = target
        self._media = MediaEncoder(losses, home=home)

    def blocks(self, parts: Sequence[Part], where: str, role: str) -> list[JSONObject]:
        """Return the blocks of all parts that a turn of `role` can hold, each with its cache point."""
        blocks: list[JSONObject] = []
        for index, part in enumerate(parts):
            place = f"{where}[{index}]"
            block = self.block(part, place, role)
            if block is not None:
                blocks.append(block)
            mark = getattr(part, "cache", None)
            if mark is None:
                continue
            if block is not None and role != "result" and self._marks:
                blocks.append(write_cache_point(mark, place, self._losses, home=self._home))
            else:
                self._losses.dropped(place, "cache", "the server takes no mark here, or is not known to take any")
        return blocks

    @property
    def _marks(self) -> bool:
        return self._home or (self._target is not None and self._target.cache_marks)

    def block(self, part: Part, where: str, role: str) -> JSONObject | None:
        """Return the block of one part, or `None` if nothing of it can stand here."""
        places = _PLACES.get(type(part))
        if places is not None and role not in places and not self._home:
            self._losses.dropped(where, name_of(part), f"it has no place in a turn of role `{role}`")
            return None
        match part:
            case Text() | Refusal() | Opaque() | HostedCall() | HostedResult():
                return self._words(part, where)
            case Reasoning():
                return self._reasoning(part, where)
            case ToolCall():
                return self._call(part, where)
            case ToolResult():
                return self._result(part, where)
            case _:
                return self._medium(part, where)

    def _words(self, part: Text | Refusal | Opaque | HostedCall | HostedResult, where: str) -> JSONObject | None:
        match part:
            case Text():
                return self._text(part, where)
            case Refusal():
                self._losses.approximated(where, "refusal", "written as text")
                return self._text(Text(text=part.text, logprobs=part.logprobs, extra=part.extra), where)
            case Opaque():
                return self._opaque(part, where)
            case _ if self._target is None:
                self._losses.carry(part.extra, where, NAME)
                self._losses.dropped(where, name_of(part), "an answer of the dialect has no such tool")
                return None
            case _:
                words = hosted_words(part, where, self._losses)
                return None if words is None else {"text": words.text}

    def _text(self, part: Text, where: str) -> JSONObject | None:
        fields = self._losses.carry(part.extra, where, NAME)
        if not self._home and self._target is not None and not part.text.strip():
            if part.text:
                self._losses.dropped(where, "text", "a block of text must hold more than white space")
            return None
        if part.logprobs:
            self._losses.dropped(where, "logprobs", "the dialect has none")
        form = form_of(part.extra, NAME)
        if form.get("block") == "json" and (value := _json(part.text)) is not None:
            return {"json": value[0], **fields}
        if self._target is not None and not self._home and part.citations:
            self._losses.dropped(where, "citations", "only the server's own citations can be sent to it")
            return {"text": part.text}
        if part.citations or form.get("block") in (BLOCK, "empty") or "texts" in form:
            return encode_citations(part, fields, where, self._losses)
        return {"text": part.text, **fields}

    def _opaque(self, part: Opaque, where: str) -> JSONObject | None:
        if part.dialect == NAME and isinstance(part.data, dict):
            return part.data
        if part.text is None or not part.text.strip():
            self._losses.dropped(where, kind_of(part), f"only {part.dialect} understands it")
            return None
        self._losses.approximated(where, kind_of(part), f"only {part.dialect} understands it; its words are written")
        return {"text": part.text}

    def _medium(self, part: Image | Video | Audio | File | CompactedHistory, where: str) -> JSONObject | None:
        match part:
            case CompactedHistory():
                self._losses.dropped(where, "compaction", "a turn of the dialect holds none")
                return None
            case Image():
                return self._media.image(part, where)
            case Video():
                return self._media.video(part, where)
            case File():
                return self._media.document(part, where)
            case Audio():
                if part.transcript is not None and (self._target is None or part.source is None):
                    self._losses.approximated(where, "audio", "only its transcript is written")
                    return {"text": part.transcript} if part.transcript or self._home else None
                return self._media.audio(part, where)

    def _reasoning(self, part: Reasoning, where: str) -> JSONObject | None:
        if self._target is not None and not self._may_return(part, self._target):
            self._losses.dropped(where, "reasoning", "the server takes back only what it signed itself")
            return None
        own_seal = part.origin is not None and part.origin.dialect == NAME
        if part.redacted and own_seal and (self._home or _is_blob(part.encrypted)):
            return self._reasoned({"redactedContent": part.encrypted}, part, where)
        text = part.text or ""
        if part.summary:
            self._losses.approximated(where, "summary", "written as the reasoning itself")
            text = SUMMARY_BREAK.join(said for said in (text, *part.summary) if said)
        own: JSONObject = {} if form_of(part.extra, NAME).get("text") == "absent" and not text else {"text": text}
        with_said(own, signature=self.signature(part, where))
        return self._reasoned({"reasoningText": own}, part, where)

    def _reasoned(self, own: JSONObject, part: Reasoning, where: str) -> JSONObject:
        return member("reasoningContent", with_rest(own, part.extra, where, self._losses))

    def signature(self, part: Reasoning, where: str) -> str | None:
        """Return the signature of reasoning; `None` if it has none."""
        form = form_of(part.extra, NAME)
        if "signature" in form:
            return str(form["signature"])
        if part.origin is not None and part.origin.dialect != NAME and (part.signature or part.encrypted):
            self._losses.emulated(where, "signature", f"only {part.origin.dialect} can open it; wrapped to come back")
            return pack(part)
        if part.encrypted is not None and not part.redacted:
            self._losses.dropped(where, "encrypted", "a block of reasoning holds text and a signature only")
        return part.signature

    def _may_return(self, part: Reasoning, target: Target) -> bool:
        """Return whether the server can take this reasoning: it signed it, or the client sent it in this dialect."""
        origin = part.origin
        if origin is None or origin.dialect != NAME:
            return self._home and target.provider is None
        fits = None in (origin.provider, target.provider) or origin.provider == target.provider
        return fits and (self._home or part.signature is not None or part.encrypted is not None)

    def _call(self, part: ToolCall, where: str) -> JSONObject:
        if part.kind == "custom":
            self._losses.emulated(where, "kind", "the free text of a custom tool is written as `input`")
            value: JSONObject = {"input": part.arguments}
        else:
            value = self._input(part, where)
        if part.namespace is not None and self._target is None:
            self._losses.dropped(where, "namespace", "the client's tools have none")
        own: JSONObject = {
            "toolUseId": self.call_id(part.id),
            "name": self.tool_name(part.name, part.namespace, where),
            "input": value,
        }
        return member("toolUse", with_rest(own, part.extra, where, self._losses))

    def _input(self, part: ToolCall, where: str) -> JSONObject:
        value = input_of(part.arguments)
        if value is not None:
            return value
        if not self._home:
            self._losses.approximated(where, "arguments", f"no JSON object; written as `{RAW_ARGUMENTS}`")
        return {RAW_ARGUMENTS: part.arguments}

    def call_id(self, call_id: str) -> str:
        """Return the id of a call as the server of this request takes it; in an answer, so that it comes back."""
        if self._target is None:
            return spell_id(call_id)
        return call_id if self._home else fit(call_id, _ID_LIMIT)

    def tool_name(self, name: str, namespace: str | None, where: str) -> str:
        """Return the name of a tool as the server of this request takes it; in an answer, as the client knows it."""
        if self._target is None:
            return name
        fitted = fit(qualified(name, namespace), self._target.tool_name_limit or NAME_LIMIT)
        if fitted != name:
            self._losses.emulated(where, "name", "shortened to what the server allows; the answer has it back")
        return fitted

    def _result(self, part: ToolResult, where: str) -> JSONObject:
        own: JSONObject = {"toolUseId": self.call_id(part.call_id)}
        content = self.blocks(part.content, f"{where}.content", "result")
        if content or form_of(part.extra, NAME).get("content") != "absent":
            own["content"] = content
        if part.is_error is not None:
            own["status"] = "error" if part.is_error else "success"
        return member("toolResult", with_rest(own, part.extra, where, self._losses))


def _is_blob(text: str | None) -> bool:
    """Return whether a text is base64, as clients expect of `redactedContent`."""
    try:
        return b64decode(text or "", validate=True) is not None
    except ValueError:
        return False


def _json(text: str) -> tuple[object] | None:
    """Return the value of a text that was a value on the wire."""
    try:
        return (decode_json(text),)
    except WireError:
        return None
