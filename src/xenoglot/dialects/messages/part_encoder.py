"""Encodes parts as content blocks."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Final

from xenoglot.codec.frequent_shapes import bare_text
from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.requests.names import fit, qualified, spell_id
from xenoglot.codec.responses.reasoning import pack
from xenoglot.dialects.messages.citations import encode_citation
from xenoglot.dialects.messages.context_management import write_block
from xenoglot.dialects.messages.extras import NAME, encode_cache, with_rest, with_said
from xenoglot.dialects.messages.fast.frequent_shapes import ID_LIMIT, NAME_LIMIT, PlainWriter
from xenoglot.dialects.messages.hosted.encoder import HostedEncoder
from xenoglot.dialects.messages.part_decoder import CONTAINER, UNSIGNED
from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Source,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    Video,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import CacheMark, Citation, Extra
    from xenoglot.model.json import JSONObject

SUMMARY_BREAK = "\n\n"
"""Stands between two summaries of thinking, which the dialect shows as one text."""

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_MAGIC = dict(zip(("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR"), _PICTURES, strict=True)) | {"JVBERi": "application/pdf"}
"""How the base64 of each type that the dialect takes begins: the server looks, and refuses another name for it."""


_PLACES: dict[type[Part], str] = {
    Reasoning: "assistant",
    ToolCall: "assistant",
    ToolResult: "user",
    CompactedHistory: "assistant",
    Image: "user",
    File: "user",
}
"""The only role whose turns can hold such a part; the others can stand anywhere."""

SERVER_IDS: Final = ("srvtoolu_", "mcptoolu_")
"""Beginnings of the ids that servers of this dialect give to calls of their own tools."""


class PartEncoder:
    """Encodes parts into one request (`target` given) or one answer, and records losses.

    `home` is set if all of it came from this dialect: then nothing is changed. `plain` writes parts that need no more
    than that; `marks` is set if what was written may include a cache mark.
    """

    __slots__ = ("_home", "_losses", "_target", "marks", "plain")

    def __init__(self, losses: Losses, *, home: bool, target: Target | None = None) -> None:
        self._losses = losses
        self._home = home
        self._target = target
        self.marks = False
        self.plain = PlainWriter(home, None if target is None else target.tool_name_limit or NAME_LIMIT)

    def blocks(self, parts: Sequence[Part], where: str, role: str) -> list[JSONObject]:
        """Return the blocks of all parts that a turn of `role` can hold."""
        write, blocks = self.plain.block, []
        for index, part in enumerate(parts):
            block = write(part, role) or self.block(part, f"{where}[{index}]", role)
            if block is not None:
                blocks.append(block)
        return blocks

    def block(self, part: Part, where: str, role: str) -> JSONObject | None:
        """Return the block of one part, or `None` if nothing of it can stand here."""
        self.marks = True
        place = _PLACES.get(type(part), role)
        if place != role and not self._home:
            self._losses.dropped(where, name_of(part), f"it has no place in a turn of role `{role}`")
            return None
        match part:
            case Text() | Refusal() | Opaque() | Audio() | HostedCall() | HostedResult():
                return self._words(part, where)
            case Reasoning():
                return self._reasoning(part, where)
            case ToolCall():
                return self._call(part, where)
            case ToolResult():
                return self._result(part, where)
            case _:
                return self._other(part, where)

    def _hosted(self, part: HostedCall | HostedResult, where: str) -> JSONObject | None:
        encoder = HostedEncoder(self._losses, self.blocks, home=self._home)
        if self._target is not None and (not self._home or self._ran_elsewhere(part, self._target)):
            words = encoder.words(part, where)
            return None if words is None else self._text(words, where)
        return encoder.block(part, self.call_id(part.id if isinstance(part, HostedCall) else part.call_id), where)

    def _ran_elsewhere(self, part: HostedCall | HostedResult, target: Target) -> bool:
        """Return whether a tool of this dialect's history ran elsewhere than at the server, which knows its own ids.

        It refuses other ids, and an `encrypted_content` that it did not write.
        """
        call_id = part.id if isinstance(part, HostedCall) else part.call_id
        return target.sealed_results and not call_id.startswith(SERVER_IDS)

    def _words(
        self, part: Text | Refusal | Opaque | Audio | HostedCall | HostedResult, where: str
    ) -> JSONObject | None:
        match part:
            case Text():
                return self._text(part, where)
            case Opaque():
                return self._opaque(part, where)
            case HostedCall() | HostedResult():
                return self._hosted(part, where)
            case Audio():
                return self._audio(part, where)
            case Refusal(text=text):
                self._losses.approximated(where, "refusal", "written as text")
                return self._text(Text(text=text, logprobs=part.logprobs, extra=part.extra), where)

    def _audio(self, part: Audio, where: str) -> JSONObject | None:
        if part.transcript is None:
            self._losses.dropped(where, "audio", "the dialect takes and gives no sound")
            return None
        self._losses.approximated(where, "audio", "only its transcript is written")
        return self._text(Text(text=part.transcript, cache=part.cache, extra=part.extra), where)

    def _other(self, part: Image | Video | File | CompactedHistory, where: str) -> JSONObject | None:
        if isinstance(part, CompactedHistory):
            return write_block(part, where, self._losses, home=self._home)
        if isinstance(part, Video):
            self._losses.dropped(where, "video", "the dialect takes no video")
            return None
        return self._image(part, where) if isinstance(part, Image) else self._file(part, where)

    def citation(self, citation: Citation, where: str) -> JSONObject | None:
        """Return one citation, or `None` if the dialect has none like it."""
        return encode_citation(citation, where, self._losses, self._target, home=self._home)

    def signature(self, part: Reasoning, where: str) -> str | None:
        """Return the `signature` of a thinking block; `None` if the wire had none."""
        form = form_of(part.extra, NAME)
        if "signature" in form:
            return form["signature"]  # type: ignore[no-any-return]
        if part.origin is not None and part.origin.dialect != NAME and (part.signature or part.encrypted):
            self._losses.emulated(where, "signature", f"only {part.origin.dialect} can open it; wrapped to come back")
            return pack(part)
        if part.encrypted is not None:
            self._losses.dropped(where, "encrypted", "a `thinking` block holds text and a signature only")
        return part.signature or UNSIGNED

    def _cached(self, own: JSONObject, cache: CacheMark | None, extra: Extra | None, where: str) -> JSONObject:
        if cache is not None:
            own["cache_control"] = encode_cache(cache, where, self._losses, home=self._home)
        return with_rest(own, extra, where, self._losses)

    def _text(self, part: Text, where: str) -> JSONObject | None:
        if not self._home and self._target is not None and not part.text.strip():
            if part.text:  # an empty text has no content, so nothing is lost
                self._losses.dropped(where, "text", "a text block must contain more than whitespace")
            if part.cache is not None:
                self._losses.dropped(where, "cache", "there is no block to mark")
            self._losses.carry(part.extra, where, NAME)
            return None
        own: JSONObject = {"type": "text", "text": part.text}
        numbered = (
            self.citation(citation, f"{where}.citations[{index}]") for index, citation in enumerate(part.citations)
        )
        if citations := [citation for citation in numbered if citation is not None]:
            own["citations"] = citations
        elif form_of(part.extra, NAME).get("citations") == "empty":
            own["citations"] = []
        if part.logprobs:
            self._losses.dropped(where, "logprobs", "the dialect has none")
        return self._cached(own, part.cache, part.extra, where)

    def _opaque(self, part: Opaque, where: str) -> JSONObject | None:
        if part.dialect == NAME and isinstance(part.data, dict):
            return part.data
        if part.text is None:
            self._losses.dropped(where, kind_of(part), f"only {part.dialect} understands it")
            return None
        self._losses.approximated(where, kind_of(part), f"only {part.dialect} understands it; its words are written")
        return self._text(Text(text=part.text), where)

    def _reasoning(self, part: Reasoning, where: str) -> JSONObject | None:
        if self._target is not None and not self._may_return(part, self._target):
            self._losses.dropped(where, "reasoning", "the server accepts only its own reasoning")
            return None
        own_seal = part.origin is not None and part.origin.dialect == NAME
        if part.redacted and own_seal:
            return with_rest({"type": "redacted_thinking", "data": part.encrypted}, part.extra, where, self._losses)
        text = part.text or ""
        if part.summary:
            self._losses.approximated(where, "summary", "written as the thinking itself")
            text = SUMMARY_BREAK.join(said for said in (text, *part.summary) if said)
        own = with_said({"type": "thinking", "thinking": text}, signature=self.signature(part, where))
        return with_rest(own, part.extra, where, self._losses)

    def _may_return(self, part: Reasoning, target: Target) -> bool:
        """Whether the server can accept this reasoning: it signed it, or only the client can know."""
        origin = part.origin
        if origin is None or origin.dialect != NAME:
            return self._home and target.provider is None
        provider_fits = None in (origin.provider, target.provider) or origin.provider == target.provider
        return provider_fits and (self._home or part.signature is not None or part.encrypted is not None)

    def _call(self, part: ToolCall, where: str) -> JSONObject:
        own: JSONObject = {
            "type": "tool_use",
            "id": self.call_id(part.id),
            "name": self.tool_name(part.name, part.namespace, where),
        }
        if part.namespace is not None and (self._home or self._target is None):
            own["toolset_name"] = part.namespace
        if part.kind == "custom":
            self._losses.emulated(where, "kind", "the free text of a custom tool is written as `input`")
            own["input"] = {"input": part.arguments}
        else:
            own["input"] = self._input(part, where)
        return self._cached(own, part.cache, part.extra, where)

    def _input(self, part: ToolCall, where: str) -> JSONObject:
        value = input_of(part.arguments)
        if value is not None:
            return value
        if not self._home:
            self._losses.approximated(where, "arguments", f"no JSON object; written as `{RAW_ARGUMENTS}`")
        return {RAW_ARGUMENTS: part.arguments}

    def call_id(self, call_id: str) -> str:
        """Return the id of a call as the server of this request takes it; in an answer, so that it comes back."""
        return spell_id(call_id) if self._home or self._target is None else fit(call_id, ID_LIMIT)

    def tool_name(self, name: str, namespace: str | None, where: str) -> str:
        """Return the name of a tool as the server of this request takes it; in an answer, as the client knows it."""
        if self._target is None:
            return name
        namespace = None if self._home else namespace  # a toolset has a field of its own
        fitted = fit(qualified(name, namespace), self._target.tool_name_limit or NAME_LIMIT)
        if fitted != name:
            self._losses.emulated(where, "name", "shortened to what the server allows; the answer has it back")
        return fitted

    def _result(self, part: ToolResult, where: str) -> JSONObject:
        own: JSONObject = {"type": "tool_result", "tool_use_id": self.call_id(part.call_id)}
        spelled = form_of(part.extra, NAME).get("content")
        content = self.blocks(part.content, f"{where}.content", "user")
        if text := lone_text(content, spelled=spelled == "string" or not self._home):
            own["content"] = text[0]
        elif content or spelled == "empty":
            own["content"] = content
        if part.is_error is not None:
            own["is_error"] = part.is_error
        return self._cached(own, part.cache, part.extra, where)

    def _image(self, part: Image, where: str) -> JSONObject | None:
        source = self._source(part.source, where)
        if source is None or not (self._home or _is_picture(source)):
            self._losses.dropped(where, "image", "the dialect takes PNG, JPEG, GIF and WebP, inline or by URL")
            return None
        if part.detail is not None:
            self._losses.dropped(where, "detail", "the dialect has no such wish")
        return self._cached({"type": "image", "source": source}, part.cache, part.extra, where)

    def _file(self, part: File, where: str) -> JSONObject | None:
        if self._home and isinstance(part.source, Stored) and form_of(part.extra, NAME).get("block") == CONTAINER:
            upload: JSONObject = {"type": CONTAINER, "file_id": part.source.id}
            return self._cached(upload, part.cache, part.extra, where)
        source = self._source(part.source, where)
        if source is None or not (self._home or _is_document(source)):
            self._losses.dropped(where, "file", "the dialect takes documents as PDF or text, inline or by URL")
            return None
        own: JSONObject = {"type": "document", "source": source}
        if part.citable is not None:
            own["citations"] = {"enabled": part.citable}
        with_said(own, title=part.name, context=part.context)
        return self._cached(own, part.cache, part.extra, where)

    def _source(self, source: Source, where: str) -> JSONObject | None:
        match source:
            case Inline(data=data, media_type=media_type) if self._home:
                return with_said({"type": "base64", "data": data}, media_type=media_type)
            case Inline():
                return self._inline(source, where)
            case Remote(url=url):
                return {"type": "url", "url": url}
            case Stored(id=file_id):  # the id of a file means something to its own provider only
                return {"type": "file", "file_id": file_id} if self._home else None
            case Plain(text=text, media_type=media_type):
                return with_said({"type": "text", "data": text}, media_type=media_type if self._home else "text/plain")
            case Nested(parts=parts, form=form):
                content = self.blocks(parts, f"{where}.source.parts", "user")
                text_alone = lone_text(content, spelled=form == "string")
                return {"type": "content", "content": text_alone[0] if text_alone else content}

    def _inline(self, source: Inline, where: str) -> JSONObject | None:
        media_type = next((kind for head, kind in _MAGIC.items() if source.data.startswith(head)), source.media_type)
        if media_type != source.media_type:
            self._losses.approximated(where, "media_type", f"by its bytes it is `{media_type}`")
        if media_type is None:
            return None
        if media_type.startswith("text/"):
            try:
                text = b64decode(source.data, validate=True).decode()
            except ValueError:
                return None
            self._losses.emulated(where, "source", "the text of the file is written as text")
            return {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "base64", "media_type": media_type, "data": source.data}


def _is_picture(source: JSONObject) -> bool:
    return source["type"] == "url" or (source["type"] == "base64" and source["media_type"] in _PICTURES)


def _is_document(source: JSONObject) -> bool:
    return source["type"] != "base64" or bool(source["media_type"] == "application/pdf")


def lone_text(content: list[JSONObject], *, spelled: bool) -> tuple[str] | None:
    """Return the text of a list that is but one plain block of text, if it is `spelled` as a string."""
    text = bare_text(content[0]) if spelled and len(content) == 1 else None
    return None if text is None else (text,)
