"""Encodes the content parts of one request or one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.hosted_text import AS_IMAGES, generated_images, hosted_words
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.requests.names import fit, qualified
from xenoglot.dialects.gemini.extras import NAME, SIGNATURE, with_rest
from xenoglot.dialects.gemini.parts.history_pieces import first_piece
from xenoglot.dialects.gemini.parts.hosted import encode_code
from xenoglot.dialects.gemini.parts.media import encode_medium
from xenoglot.dialects.gemini.signatures import APART, is_base64, is_own, signature_of, split, take_borrowed
from xenoglot.dialects.gemini.tool_calls import args_of, response_of
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    File,
    HostedCall,
    HostedResult,
    Image,
    Nested,
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
    from collections.abc import Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject

NAME_LIMIT = 64
"""The longest name of a function: 64 in the older description of `FunctionDeclaration`, 128 in the newer."""

SUMMARY_BREAK = "\n\n"
"""Stands between two summaries of thinking, which the dialect shows as one text."""

UNKNOWN_FUNCTION = "unknown_function"
"""The name of a function whose call is nowhere to be found: the dialect requires one."""

_PLACES: dict[type[Part], str] = {Reasoning: "model", ToolCall: "model", ToolResult: "user"}
"""The only role whose turns can hold such a part; the others can stand anywhere but in a system turn."""

_NOTHING = Text(text="")
_NO_CACHE = "the server decides what it caches"


class PartEncoder:
    """Encodes parts into one request (`target` given) or one answer, and records losses.

    `home`: all of it came from this dialect, so nothing is changed.
    """

    __slots__ = ("_home", "_losses", "_names", "_target")

    def __init__(self, losses: Losses, *, home: bool, target: Target | None = None) -> None:
        self._losses = losses
        self._home = home
        self._target = target
        self._names: dict[str, str] = {}  # id of a call -> the function it calls

    def parts(self, parts: Sequence[Part], where: str, role: str) -> list[JSONObject]:
        """Return all parts that a turn of `role` can hold."""
        return [encoded for index, part in enumerate(parts) for encoded in self.part(part, f"{where}[{index}]", role)]

    def part(self, part: Part, where: str, role: str) -> Sequence[JSONObject]:
        """Return what one part makes on the wire: one part for most, nothing for what can not stand here."""
        if not self._home and not self._fits(part, role):
            self._losses.dropped(where, name_of(part), f"it has no place in a turn of role `{role}`")
            return ()
        match part:
            case Text() if self._target is not None and not self._home and part == _NOTHING:
                return ()  # servers refuse it
            case ToolResult():
                return list(self._result(part, where))
            case File(source=Nested(parts=inner), name=name):
                self._losses.approximated(where, "file", "written as the parts it is made of")
                if name is not None:
                    self._losses.dropped(where, "name", "parts have no name")
                return self.parts(inner, f"{where}.source.parts", role)
            case Text() if APART in form_of(part.extra, NAME):
                return split(self.text(part, where))
            case _:
                return self._written(part, where)

    def _written(self, part: Part, where: str) -> Sequence[JSONObject]:
        if isinstance(part, HostedResult) and self._target is None and (images := generated_images(part)):
            self._losses.approximated(where, name_of(part), AS_IMAGES)
            return [one for image in images if (one := self._medium(image, where)) is not None]
        encoded = self._single(part, where)
        return () if encoded is None else (encoded,)

    def _fits(self, part: Part, role: str) -> bool:
        if role == "system":
            return isinstance(part, Text | Refusal | Opaque)
        return _PLACES.get(type(part), role) == role

    def _single(self, part: Part, where: str) -> JSONObject | None:
        match part:
            case Text() | Refusal():
                return self._say(part, where)
            case Reasoning():
                return self._reasoning(part, where)
            case ToolCall():
                return self._call(part, where)
            case Opaque() | HostedCall() | HostedResult():
                return self._opaque(part, where)
            case Image() | File() | Audio() | Video():
                return self._medium(part, where)
            case ToolResult() | CompactedHistory():  # a result is written by itself: it may make several
                if isinstance(part, CompactedHistory):
                    self._losses.dropped(where, "compaction", "a turn of the dialect holds none")
                return None

    def _hosted(self, part: HostedCall | HostedResult, where: str) -> JSONObject | None:
        if self._target is None or self._home:
            return encode_code(part, where, self._losses)
        words = hosted_words(part, where, self._losses)
        return None if words is None else self.text(words, where)

    def _say(self, part: Text | Refusal, where: str) -> JSONObject:
        if isinstance(part, Text):
            return self.text(part, where)
        self._losses.approximated(where, "refusal", "written as text")
        return self.text(Text(text=part.text, logprobs=part.logprobs, extra=part.extra), where)

    def text(self, part: Text, where: str) -> JSONObject:
        """Return the part of a text without its citations and probabilities: in an answer these stand elsewhere."""
        if part.cache is not None:
            self._losses.dropped(where, "cache", _NO_CACHE)
        if self._target is not None and not self._home:
            for field in ("citations", "logprobs"):
                if getattr(part, field):
                    self._losses.dropped(where, field, "a turn of the dialect holds none")
        own: JSONObject = {"text": part.text}
        if "thought" in form_of(part.extra, NAME):
            own["thought"] = False
        return with_rest(own, part.extra, where, self._losses)

    def _opaque(self, part: Opaque | HostedCall | HostedResult, where: str) -> JSONObject | None:
        if not isinstance(part, Opaque):
            return self._hosted(part, where)
        if part.dialect == NAME and isinstance(part.data, dict):
            return part.data
        if part.text is None:
            self._losses.dropped(where, kind_of(part), f"only {part.dialect} understands it")
            return None
        self._losses.approximated(where, kind_of(part), f"only {part.dialect} understands it; its words are written")
        return {"text": part.text}

    def _medium(self, part: Image | File | Audio | Video, where: str) -> JSONObject | None:
        if not isinstance(part, Audio):
            return encode_medium(part, where, self._losses, home=self._home)
        for field in ("id", "expires_at"):
            if getattr(part, field) is not None:
                self._losses.dropped(where, field, "a sound of the dialect has none")
        if part.source is None and part.transcript is not None:
            self._losses.approximated(where, "audio", "only its transcript is written")
            return self.text(Text(text=part.transcript, cache=part.cache, extra=part.extra), where)
        if part.transcript is not None:
            self._losses.dropped(where, "transcript", "a sound of the dialect has none")
        return encode_medium(part, where, self._losses, home=self._home)

    def _reasoning(self, part: Reasoning, where: str) -> JSONObject | None:
        signature = signature_of(part)
        if self._target is not None and not self._home:
            if not self._may_return(part, self._target):
                self._losses.dropped(where, "reasoning", "the server accepts only its own reasoning")
                return None
            signature = self._returned(part, where)
        if part.id is not None:
            self._losses.dropped(where, "id", "reasoning of the dialect has none")
        if part.summary is not None:
            self._losses.approximated(where, "summary", "written as the reasoning itself")
        if self._target is None and signature is not None and not is_own(part):
            self._losses.emulated(where, "signature", "only its maker can open it; wrapped to come back")
        return with_rest(thought(part, signature), part.extra, where, self._losses)

    def _may_return(self, part: Reasoning, target: Target) -> bool:
        """Whether the server of this request signed the reasoning."""
        origin, seal = part.origin, part.signature or part.encrypted
        if origin is None or origin.dialect != NAME or not seal or not is_base64(seal):
            return False
        return None in (origin.provider, target.provider) or origin.provider == target.provider

    def _returned(self, part: Reasoning, where: str) -> str | None:
        if part.encrypted is not None:
            self._losses.approximated(where, "encrypted", f"written as `{SIGNATURE}`")
        return part.signature or part.encrypted

    def _call(self, part: ToolCall, where: str) -> JSONObject:
        form = form_of(part.extra, NAME)
        name = self.tool_name(part.name, part.namespace, where)
        self._names[part.id] = name
        if self._home and (piece := first_piece(part)) is not None:
            return piece
        call: JSONObject = self._id(part.id, form) | {"name": name}
        args, exact = args_of(part)
        if part.kind == "custom":
            self._losses.emulated(where, "kind", "the free text of a custom tool is written as `args`")
        if not exact and not self._home:
            self._losses.approximated(where, "arguments", "no JSON object; written as `_raw`")
        if part.arguments or "args" not in form:
            call["args"] = args
        if part.cache is not None:
            self._losses.dropped(where, "cache", _NO_CACHE)
        if part.namespace is not None and self._target is None:
            self._losses.dropped(where, "namespace", "the dialect has none")
        own: JSONObject = {"functionCall": call}
        extra, signature = take_borrowed(part.extra, where, self._losses)
        return with_rest(with_said(own, thoughtSignature=signature), extra, where, self._losses)

    def _id(self, call_id: str, form: JSONObject) -> JSONObject:
        spelled = form.get("id")
        if spelled is None or not (self._home or self._target is None):  # its result, of elsewhere, names it
            return {"id": call_id}
        return {"id": ""} if spelled == "empty" else {}

    def tool_name(self, name: str, namespace: str | None, where: str) -> str:
        """Return the name of a tool as the server of this request takes it; in an answer, as the client knows it."""
        if self._target is None or self._home:
            return name
        fitted = fit(qualified(name, namespace), self._target.tool_name_limit or NAME_LIMIT)
        if fitted != name:
            self._losses.emulated(where, "name", "shortened to what the server allows; the answer has it back")
        return fitted

    def _result(self, part: ToolResult, where: str) -> Iterator[JSONObject]:
        """Yield the `functionResponse`, and after it the images and files that can not stand in it."""
        form = form_of(part.extra, NAME)
        inside = [(f"{where}.content[{index}]", inner) for index, inner in enumerate(part.content)]
        texts = [(at, inner) for at, inner in inside if isinstance(inner, Text | Refusal)]
        if self._home and "parts" in form:
            texts = texts[: len(inside) - int(form["parts"])]
        written = {at for at, _ in texts}
        media = [pair for pair in inside if pair[0] not in written]
        if not self._home and inside != [*texts, *media]:
            self._losses.approximated(where, "order", "words come first in a result")
        words = [str(self._say(inner, at)["text"]) for at, inner in texts]
        if len(words) > 1:
            self._losses.approximated(where, "content", "its texts are joined")
        own = self._id(part.call_id, form) | {"name": self._answered(part, where)}
        with_said(own, response=response_of("\n".join(words), is_error=part.is_error, form=form))
        encoded = [item for at, inner in media for item in self.part(inner, at, "user")]
        moved = [item for item in encoded if not self._may_stay(item)]
        if moved:
            self._losses.emulated(where, "content", "images and files are moved after the result")
        kept = [item for item in encoded if self._may_stay(item)]
        if kept or "parts" in form:
            own["parts"] = kept
        if part.cache is not None:
            self._losses.dropped(where, "cache", _NO_CACHE)
        if part.kind == "custom":
            self._losses.emulated(where, "kind", "the result of a custom tool is written as that of a function")
        yield with_rest({"functionResponse": own}, part.extra, where, self._losses)
        yield from moved

    def _may_stay(self, item: JSONObject) -> bool:
        if self._home or self._target is None:
            return True
        return bool(self._target.tool_result_media) and bool(item.keys() & {"inlineData", "fileData"})

    def _answered(self, part: ToolResult, where: str) -> str:
        """Return the name of the function that a result belongs to."""
        if self._home and part.name is not None:
            return part.name
        name = self._names.get(part.call_id)
        if name is None:
            name = UNKNOWN_FUNCTION if part.name is None else self.tool_name(part.name, None, where)
        return name


def thought(part: Reasoning, signature: str | None) -> JSONObject:
    """Return the part of reasoning; a signature alone is an empty text, as servers send it after an answer."""
    form = form_of(part.extra, NAME)
    text = SUMMARY_BREAK.join(part.summary or ()) if part.text is None else part.text
    if form.get("part") == "bare" and not text:
        return {SIGNATURE: signature}
    own: JSONObject = {"text": text}
    seal_alone = not text and signature is not None and is_own(part) and not part.redacted
    if form.get("part", "text" if seal_alone else "thought") != "text":
        own["thought"] = True
    elif "thought" in form:
        own["thought"] = False
    return with_said(own, thoughtSignature=signature)
