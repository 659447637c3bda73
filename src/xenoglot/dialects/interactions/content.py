"""Encodes and decodes contents: the user's input, the model's answer, the result of a tool.

Source: `Content` in `google/genai/_gaos/types/interactions/content.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.interactions.citations import KEY, encode_citations, take_annotations
from xenoglot.dialects.interactions.extras import NAME, NO_CACHE, extra_of, own_fields, step_free
from xenoglot.dialects.interactions.media import decode_medium, encode_medium, is_medium
from xenoglot.model.content import Audio, File, Image, Nested, Opaque, Plain, Refusal, Text, Video

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

CONTENTS = (Text, Refusal, Image, Audio, Video, File)
"""Parts that are contents on the wire."""


def decode_contents(items: Sequence[JSON], path: str) -> list[Part]:
    """Return the parts of a list of contents.

    Raises:
        WireError: one is no object, or lacks what its type needs.
    """
    return [decode_content(item, f"{path}[{index}]") for index, item in enumerate(items)]


def decode_content(item: JSON, path: str) -> Part:
    """Return one content; a type or a form that is not known is carried whole."""
    reader = Reader(item, path)
    kind = reader.need("type", str)
    if kind == "text":
        form: JSONObject = {}
        text = reader.need("text", str)
        return Text(text=text, citations=take_annotations(reader, text, form), extra=extra_of(reader, form))
    if is_medium(item):
        return decode_medium(Reader(item, path))
    text = item.get("text")
    return Opaque(dialect=NAME, data=item, text=text if isinstance(text, str) else None)


class ContentEncoder:
    """Encodes parts as contents. `home` is whether they came in this dialect; `answer` whether the model wrote them."""

    __slots__ = ("_answer", "_home", "_losses")

    def __init__(self, losses: Losses, *, home: bool, answer: bool = False) -> None:
        self._losses = losses
        self._home = home
        self._answer = answer

    def encode(self, part: Part, where: str) -> list[JSONObject]:
        """Return the contents of one part: one for most, none (and a loss) for what cannot be one."""
        match part:
            case Text():
                return [self.text(part, where)]
            case Refusal():
                self._losses.approximated(where, "refusal", "written as text")
                return [self.text(Text(text=part.text, logprobs=part.logprobs, extra=part.extra), where)]
            case File(source=Plain() | Nested()):
                return self._document(part, where)
            case Image() | Video() | File() | Audio():
                return self._medium(part, where)
            case Opaque():
                return self._opaque(part, where)
            case _:
                own_fields(getattr(part, "extra", None), where, self._losses)
                self._losses.dropped(where, name_of(part), "it has no place among the contents of the dialect")
                return []

    def text(self, part: Text, where: str) -> JSONObject:
        """Return the content of a text."""
        if part.cache is not None:
            self._losses.dropped(where, "cache", NO_CACHE)
        if part.logprobs:
            self._losses.dropped(where, "logprobs", "the dialect has none")
        own = step_free(own_fields(part.extra, where, self._losses))
        written: JSONObject = {"type": "text", "text": part.text}
        cited = encode_citations(part.citations, part.text, where, self._losses) if part.citations else []
        if others := own.pop(KEY, None):
            cited += others
        elif KEY in form_of(part.extra, NAME) and not cited:
            written[KEY] = []
        if cited:
            written[KEY] = cited
        return written | own

    def _medium(self, part: Image | Video | File | Audio, where: str) -> list[JSONObject]:
        if isinstance(part, Audio) and (spoken := self._transcript(part, where)) is not None:
            return [spoken]
        found = encode_medium(part, where, self._losses, home=self._home)
        return [] if found is None else [found]

    def _transcript(self, part: Audio, where: str) -> JSONObject | None:
        """Return a sound without its bytes as the text of its transcript; report what no sound of the dialect has."""
        for field in ("id", "expires_at"):
            if getattr(part, field) is not None:
                self._losses.dropped(where, field, "a sound of the dialect has none")
        if part.source is None and part.transcript is not None:
            self._losses.approximated(where, "audio", "only its transcript is written")
            return self.text(Text(text=part.transcript, cache=part.cache, extra=part.extra), where)
        if part.transcript is not None:
            self._losses.dropped(where, "transcript", "a sound of the dialect has none")
        return None

    def _document(self, part: File, where: str) -> list[JSONObject]:
        """Return a document given as text or parts, which no field of the dialect holds, as contents."""
        self._losses.approximated(where, "file", "written as the text that it is made of")
        own_fields(part.extra, where, self._losses)
        for field in ("context", "citable", "cache"):
            if getattr(part, field) is not None:
                self._losses.dropped(where, field, "a text of the dialect has no such field")
        named: list[JSONObject] = []
        if part.name is not None:
            self._losses.emulated(where, "name", "stands in a text before its own")
            named = [{"type": "text", "text": f"{part.name}\n"}]
        if isinstance(part.source, Plain):
            return [*named, {"type": "text", "text": part.source.text}]
        inner = part.source.parts if isinstance(part.source, Nested) else ()
        where = f"{where}.source.parts"
        return [*named, *(one for at, sub in enumerate(inner) for one in self.encode(sub, f"{where}[{at}]"))]

    def _opaque(self, part: Opaque, where: str) -> list[JSONObject]:
        if part.dialect == NAME and isinstance(part.data, dict):
            return [part.data]
        if part.text is None or self._answer:
            self._losses.dropped(where, kind_of(part), f"only {part.dialect} understands it")
            return []
        self._losses.approximated(where, kind_of(part), f"only {part.dialect} understands it; its words are written")
        return [{"type": "text", "text": part.text}]
