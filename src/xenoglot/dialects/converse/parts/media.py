"""Encodes and decodes images, documents, videos and sound: a format, and bytes in base64 or a place in S3.

Source: `ImageBlock`, `DocumentBlock`, `VideoBlock` and `AudioBlock` in the published model of the API.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse.extras import NAME, member, take_member, with_rest, with_said
from xenoglot.model.content import Audio, File, Image, Inline, Nested, Plain, Remote, Stored, Text, Video

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Source
    from xenoglot.model.json import JSON, JSONObject

IMAGES: Final = {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")}
DOCUMENTS: Final = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}
VIDEOS: Final = {
    "mkv": "video/x-matroska",
    "mov": "video/quicktime",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "flv": "video/x-flv",
    "mpeg": "video/mpeg",
    "mpg": "video/mpg",
    "wmv": "video/x-ms-wmv",
    "three_gp": "video/3gpp",
}
AUDIO: Final = (
    *("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga", "pcm", "webm"),
)
_SOUNDS: Final = {"audio/mpeg": "mp3", "audio/wave": "wav", "audio/x-wav": "wav", "audio/x-m4a": "m4a", "pcm16": "pcm"}
"""Other names of formats of sound."""

_MAGIC: Final = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp", "JVBERi": "pdf"}
"""How base64 of a format begins: servers refuse bytes under the name of another format."""

_S3: Final = "s3://"
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9\s()\[\]-]+")
_SPACES: Final = re.compile(r"\s{2,}")
_LONGEST_NAME: Final = 200
DOCUMENT_NAME: Final = "document"
"""The name of a document without one: the dialect requires it, and recommends a neutral one (`DocumentBlock.name`)."""


def decode_media(block: JSON, kind: str, path: str) -> Image | File | Video | Audio | None:
    """Return an image, a document, a video or sound; `None` if its source is of a kind that is not known."""
    reader = take_member(block, kind, path)
    form: JSONObject = {}
    format_ = reader.take("format", str)
    if format_ is not None:
        form["format"] = format_
    source = _take_source(reader, kind, format_, form)
    if source is None:
        return None
    if kind == "document":
        return _document(reader, source, form)
    if isinstance(source, (Plain, Nested)):
        return None
    if kind == "image":
        return Image(source=source, extra=reader.extra(NAME, **form))
    if kind == "video":
        return Video(source=source, extra=reader.extra(NAME, **form))
    return Audio(source=source, format=format_, extra=reader.extra(NAME, **form))


def _take_source(block: Reader, kind: str, format_: str | None, form: JSONObject) -> Source | None:
    value = block.peek("source")
    if not isinstance(value, dict):
        return None
    reader = Reader(block.take("source", dict), block.at("source"))
    source: Source | None = None
    if type(reader.peek("bytes")) is str:
        source = Inline(data=reader.need("bytes", str), media_type=_media_type(kind, format_))
    elif isinstance(reader.peek("s3Location"), dict):
        place = Reader(reader.need("s3Location", dict), reader.at("s3Location"))
        source = Remote(url=place.need("uri", str))
        nested: JSONObject = {}
        keep_rest(reader, "s3Location", place, nested)
    elif kind == "document" and type(reader.peek("text")) is str:
        source = Plain(text=reader.need("text", str), media_type=_media_type(kind, format_))
    elif kind == "document" and (texts := _texts(reader.peek("content"))) is not None:
        reader.take("content", list)
        source = Nested(parts=tuple(Text(text=text) for text in texts))
    if source is not None:
        keep_rest(block, "source", reader, form)
    return source


def _texts(content: JSON) -> list[str] | None:
    """Return the texts of a list that has nothing else."""
    if not isinstance(content, list):
        return None
    pieces = [item["text"] for item in content if isinstance(item, dict) and [*item] == ["text"]]
    texts = [text for text in pieces if isinstance(text, str)]
    return texts if len(texts) == len(content) else None


def _media_type(kind: str, format_: str | None) -> str | None:
    if format_ is None:
        return None
    if kind == "audio":  # the part has a field of its own for the format
        return None
    known = {"image": IMAGES, "document": DOCUMENTS, "video": VIDEOS}.get(kind, {})
    return known.get(format_) or (f"{kind}/{format_}" if kind != "document" else None)


def _document(reader: Reader, source: Source, form: JSONObject) -> File:
    citable = None
    citations = reader.object("citations")
    if citations is not None:
        citable = citations.take("enabled", bool)
        keep_rest(reader, "citations", citations, form, said=citable is not None)
    return File(
        source=source,
        name=reader.take("name", str),
        context=reader.take("context", str),
        citable=citable,
        extra=reader.extra(NAME, **form),
    )


class MediaEncoder:
    """Encodes media into one request or answer. `home` is whether all of it came from this dialect."""

    __slots__ = ("_home", "_losses", "_names")

    def __init__(self, losses: Losses, *, home: bool) -> None:
        self._losses = losses
        self._home = home
        self._names: dict[str, int] = {}

    def image(self, part: Image, where: str) -> JSONObject | None:
        """Return the block of an image."""
        if part.detail is not None:
            self._losses.dropped(where, "detail", "the dialect has no such field")
        return self._block("image", part, part.source, self._format(part, IMAGES, where), where)

    def video(self, part: Video, where: str) -> JSONObject | None:
        """Return the block of a video."""
        for name in ("start", "end", "fps"):
            if getattr(part, name) is not None:
                self._losses.dropped(where, name, "the dialect has no such field")
        return self._block("video", part, part.source, self._format(part, VIDEOS, where), where)

    def audio(self, part: Audio, where: str) -> JSONObject | None:
        """Return the block of sound."""
        word = form_of(part.extra, NAME).get("format")
        if word is None:
            media_type = part.source.media_type if isinstance(part.source, Inline) else None
            word = part.format or (media_type or "").removeprefix("audio/")
            word = _SOUNDS.get(word) or _SOUNDS.get(media_type or "") or word
            word = word if word in AUDIO else None
        return self._block("audio", part, part.source, word, where)

    def document(self, part: File, where: str) -> JSONObject | None:
        """Return the block of a document."""
        word = self._format(part, DOCUMENTS, where)
        source = self._source(part.source, where)
        if source is None or (word is None and not self._home and "text" not in source and "content" not in source):
            self._losses.dropped(where, "file", "the dialect takes documents inline or in S3, of the formats it lists")
            return None
        own = with_said({"source": source}, format=word, context=part.context)
        if self._home:
            with_said(own, name=part.name)
        else:
            own["name"] = self._name(part.name, where)
        if part.citable is not None:
            own["citations"] = {"enabled": part.citable}
        return member("document", with_rest(own, part.extra, where, self._losses))

    def _name(self, name: str | None, where: str) -> str:
        """Return a name that servers accept, and that no other document of the request has."""
        fitted = _SPACES.sub(" ", _FOREIGN.sub("-", name or DOCUMENT_NAME)).strip()[:_LONGEST_NAME] or DOCUMENT_NAME
        count = self._names[fitted] = self._names.get(fitted, 0) + 1
        unique = fitted if count == 1 else f"{fitted[: _LONGEST_NAME - 9]} ({count})"
        if name is not None and unique != name:
            self._losses.approximated(where, "name", "the name of a document has letters, digits and few marks")
        return unique

    def _format(self, part: Image | Video | File, known: dict[str, str], where: str) -> str | None:
        """Return the name of the format; where it is not that of the media type, the bytes or the dialect decided."""
        said = form_of(part.extra, NAME).get("format")
        if said is not None or self._home:
            return said if isinstance(said, str) else None
        source = part.source
        if isinstance(source, Remote):
            ending = source.url.rpartition(".")[2].lower()
            return ending if ending in known else None
        if not isinstance(source, Inline | Plain):
            return None
        declared = "image/jpeg" if source.media_type == "image/jpg" else source.media_type
        word = next((name for name in known if known[name] == declared), None)
        if isinstance(source, Inline):
            begun = next((name for head, name in _MAGIC.items() if source.data.startswith(head)), None)
            word = begun if begun in known else word
        if word is None and known is DOCUMENTS and (declared or "").startswith("text/"):
            word = "txt"
        if word is not None and known[word] != source.media_type:
            self._losses.approximated(where, "media_type", f"written as the format `{word}`")
        return word

    def _block(
        self, kind: str, part: Image | Video | Audio, source: Source | None, word: str | None, where: str
    ) -> JSONObject | None:
        place = None if source is None else self._source(source, where)
        if place is None or (word is None and not self._home):
            self._losses.dropped(where, kind, "the dialect takes it inline or in S3, in the formats that it lists")
            return None
        return member(kind, with_rest(with_said({"source": place}, format=word), part.extra, where, self._losses))

    def _source(self, source: Source, where: str) -> JSONObject | None:
        match source:
            case Inline(data=data):
                return {"bytes": data}
            case Remote(url=url):
                return {"s3Location": {"uri": url}} if self._home or url.startswith(_S3) else None
            case Plain(text=text):
                return {"text": text}
            case Nested(parts=parts, form=form):
                if form is not None and not self._home:
                    self._losses.approximated(where, "source", "written as a list of texts")
                return self._nested(parts, where)
            case Stored():
                return None

    def _nested(self, parts: tuple[object, ...], where: str) -> JSONObject | None:
        for index, part in enumerate(parts):
            if isinstance(part, Text):
                self._note_text(part, f"{where}.source.parts[{index}]")
        texts = [part.text for part in parts if isinstance(part, Text)]
        if len(texts) < len(parts):
            self._losses.dropped(f"{where}.source", "parts", "a document of the dialect has texts alone")
        return {"content": [{"text": text} for text in texts]} if texts or self._home else None

    def _note_text(self, part: Text, where: str) -> None:
        """Record what a text in a document loses."""
        if part.cache is not None:
            self._losses.dropped(where, "cache", "a text in a document has no mark")
        if part.citations:
            self._losses.dropped(where, "citations", "a text in a document has none")
        self._losses.carry(part.extra, where, NAME)
