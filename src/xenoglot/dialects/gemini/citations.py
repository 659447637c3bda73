"""Encodes and decodes the citations of an answer: `groundingMetadata` and `citationMetadata` of a candidate.

Source: https://ai.google.dev/gemini-api/docs/google-search. Supports join segments of the text to chunks of the web;
the offsets of a segment count the bytes of the text in UTF-8.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.opaque import name_of
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.dialects.google.shared import with_said
from xenoglot.errors import WireError
from xenoglot.model.content import Citation, CitedRange, Extra, HostedCall, SearchResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import HostedContent, HostedResult
    from xenoglot.model.json import JSON, JSONObject

GROUNDING = "groundingMetadata"
RECITED = "citationMetadata"
PAGES = "urlContextMetadata"
KIND = "url_citation"
_FILE = "file_citation"

_STRETCH = 64
"""Bytes between two places of a text whose characters are counted once."""

_CONTINUES = (0x80, 0xC0)
"""Bytes that continue a character in UTF-8: from the first of these to before the second."""

_LATER = bytes(range(*_CONTINUES))

_OWN = Extra(dialect=NAME, form={"derived": True})
"""Marks a citation that was read off metadata: it is written back with that."""


def citations_of(fields: Mapping[str, JSON], text: str) -> tuple[Citation, ...]:
    """Return the citations of `text` that the `fields` of a candidate hold; they remain there as they are."""
    if GROUNDING not in fields and RECITED not in fields:
        return ()
    return (*_grounded(fields.get(GROUNDING), text), *_recited(fields.get(RECITED), text))


def _recited(metadata: JSON, text: str) -> Iterator[Citation]:
    """Yield a citation for each source that the model recited (`CitationMetadata`; Vertex AI has `citations`)."""
    if not isinstance(metadata, dict):
        return
    data = _Bytes(text)
    for source in _list(metadata.get("citationSources") or metadata.get("citations")):
        uri, title = source.get("uri"), source.get("title")
        if isinstance(uri, str) and uri:
            start, end = _place(source, data) or (None, None)
            yield Citation(kind=KIND, url=uri, title=_word(title), start=start, end=end, extra=_OWN)


def _grounded(metadata: JSON, text: str) -> Iterator[Citation]:
    """Yield a citation for each segment and chunk, then one for each of the other chunks.

    Nothing that is malformed is an error: the metadata itself is carried along whole.
    """
    if not isinstance(metadata, dict):
        return
    chunks = [_cited(chunk) for chunk in _list(metadata.get("groundingChunks"))]
    data = _Bytes(text)
    used: set[int] = set()
    for support in _list(metadata.get("groundingSupports")):
        place = _place(support.get("segment"), data)
        for index in _list(support.get("groundingChunkIndices"), int):
            chunk = chunks[index] if 0 <= index < len(chunks) else None
            if chunk is not None:
                used.add(index)
                yield chunk if place is None else replace(chunk, start=place[0], end=place[1])
    for index, chunk in enumerate(chunks):
        if chunk is not None and index not in used:
            yield chunk


def _list(value: JSON, kind: type = dict) -> list[JSON]:
    return [item for item in value if type(item) is kind] if isinstance(value, list) else []


def _cited(chunk: JSONObject) -> Citation | None:
    """Return what a chunk cites: a page of the web, or a document (`GroundingChunkRetrievedContext` in the SDK)."""
    match chunk:
        case {"web": {"uri": str() as uri, **rest}}:
            return Citation(kind=KIND, url=uri, title=_word(rest.get("title")), extra=_OWN)
        case {"retrievedContext": dict() as found}:
            page = found.get("pageNumber")
            place = _word(found.get("uri"))
            is_url = (place or "").startswith(("https://", "http://"))
            return Citation(
                kind=KIND if is_url else _FILE,
                url=place if is_url else None,
                file_id=None if is_url else place,
                title=_word(found.get("title")),
                cited_text=_word(found.get("text")),
                range=CitedRange(unit="page", start=page, end=page + 1) if type(page) is int else None,
                extra=_OWN,
            )
        case _:
            return None


def _word(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


class _Bytes:
    """A text in UTF-8 with a lookup from byte to character offset, in constant time."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "surrogatepass")
        self._ascii = text.isascii()
        self._before: list[int] = []  # characters before each stretch; made for the first look

    def characters(self, at: int) -> int | None:
        """Return how many characters stand before byte `at`; `None` if that is inside of one."""
        if self._ascii:
            return at
        if at < len(self.data) and _CONTINUES[0] <= self.data[at] < _CONTINUES[1]:
            return None
        if not self._before:
            counts = (_count(self.data[begin : begin + _STRETCH]) for begin in range(0, len(self.data), _STRETCH))
            self._before = [0, *accumulate(counts)]
        stretch = at // _STRETCH
        return self._before[stretch] + _count(self.data[stretch * _STRETCH : at])


def _count(data: bytes) -> int:
    """Return how many characters begin in some UTF-8."""
    return len(data.translate(None, _LATER))


def _place(segment: JSON, text: _Bytes) -> tuple[int, int] | None:
    """Return the characters that a segment covers, if these are the words it names."""
    if not isinstance(segment, dict):
        return None
    start, end = segment.get("startIndex", 0), segment.get("endIndex")
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(text.data):
        return None
    before, behind = text.characters(start), text.characters(end)
    if before is None or behind is None:
        return None
    said = segment.get("text")
    if said is not None and not (isinstance(said, str) and _covers(text.data, start, end, said)):
        return None
    return before, behind


def _covers(data: bytes, start: int, end: int, said: str) -> bool:
    """Whether the bytes from `start` to `end` are these words; what is longer or shorter is not compared."""
    words = said.encode("utf-8", "surrogatepass")
    return len(words) == end - start and data.startswith(words, start)


class Grounding:
    """Builds the grounding metadata of one candidate from its citations."""

    __slots__ = ("_chunks", "_losses", "_numbers", "_pages", "_queries", "_supports", "_where")

    def __init__(self, where: str, losses: Losses) -> None:
        self._where = where
        self._losses = losses
        self._chunks: list[JSONObject] = []
        self._numbers: dict[bytes, int] = {}  # of chunks, by what they cite
        self._supports: list[JSONObject] = []
        self._queries: list[str] = []
        self._pages: list[JSONObject] = []

    def ran(self, part: HostedCall | HostedResult, where: str) -> bool:
        """Take what a search or a page fetch did; return whether it was one: these have metadata in place of parts."""
        if part.kind not in ("web_search", "web_fetch"):
            return False
        self._losses.carry(part.extra, where, NAME)
        self._losses.emulated(where, name_of(part), "written in the metadata of the candidate")
        if isinstance(part, HostedCall):
            self._queries += _queries(part.arguments) if part.kind == "web_search" else []
            return True
        if part.error is not None:
            self._losses.dropped(where, "error", "the metadata has no failures")
        for index, one in enumerate(part.content):
            self._found(one, part.kind, f"{where}.content[{index}]")
        return True

    def _found(self, one: HostedContent, kind: str, where: str) -> None:
        if not isinstance(one, SearchResult) or one.url is None:
            self._losses.dropped(where, "result", "the metadata holds URLs and titles")
            return
        for field in ("text", "age", "file_id", "score"):
            if getattr(one, field) is not None:
                self._losses.dropped(where, field, "the metadata holds URLs and titles")
        self._losses.carry(one.extra, where, NAME)
        if kind == "web_search":
            self._number(_page(one.url, one.title))
        else:
            self._pages.append({"retrievedUrl": one.url, "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"})

    def cite(self, citation: Citation, text: str, part: int, before: int) -> None:
        """Add a citation of `text`, which stands `before` bytes into the wire's part number `part`."""
        if citation.extra is not None and citation.extra.dialect == NAME:
            return  # it is written back with the metadata it was read off
        self._losses.carry(citation.extra, self._where, NAME)
        exact = citation.end is not None and citation.end <= len(text)
        if citation.url is None:
            self._losses.approximated(self._where, "citation", "written as a chunk of a document")
            index = self._number(_document(citation))
        else:
            if citation.kind != KIND or citation.cited_text is not None or before or not exact:
                self._losses.approximated(self._where, "citation", "written as a chunk of the web")
            index = self._number(_page(citation.url, citation.title))
        if not text:  # an empty part may be left out, and has no place
            return
        start = min(citation.start or 0, len(text))
        end = len(text) if citation.end is None else max(start, min(citation.end, len(text)))
        head, inside = (start, end - start) if text.isascii() else (bytes_of(text[:start]), bytes_of(text[start:end]))
        segment: JSONObject = {"partIndex": part, "startIndex": before + head, "endIndex": before + head + inside}
        if citation.end is not None:  # the words of all that was said need not be said again
            segment["text"] = text[start:end]
        self._supports.append({"segment": segment, "groundingChunkIndices": [index]})

    def _number(self, chunk: JSONObject) -> int:
        """Return the number of a chunk in the list; two that cite the same are one."""
        index = self._numbers.setdefault(encode_json(chunk), len(self._chunks))
        if index == len(self._chunks):
            self._chunks.append(chunk)
        return index

    def metadata(self, parts: int) -> JSONObject:
        """Return the fields of a candidate of as many `parts`; none where nothing was cited, searched or fetched."""
        pages = {PAGES: {"urlMetadata": self._pages}} if self._pages else {}
        if not (self._supports or self._chunks or self._queries):
            return pages
        if any(support["segment"]["partIndex"] != parts - 1 for support in self._supports):
            self._losses.approximated(self._where, "citation", "only the last text keeps its citations")
        told = {"webSearchQueries": self._queries, "groundingChunks": self._chunks, "groundingSupports": self._supports}
        return {GROUNDING: {key: value for key, value in told.items() if value}, **pages}


def _page(url: str, title: str | None) -> JSONObject:
    return {"web": with_said({"uri": url}, title=title)}


def _document(citation: Citation) -> JSONObject:
    """Return the chunk of a document: its name, the words that are cited, and the first page of these."""
    cited = citation.range
    page = cited.start if cited is not None and cited.unit == "page" else None
    fields = with_said({}, uri=citation.file_id or citation.source, title=citation.title, text=citation.cited_text)
    return {"retrievedContext": with_said(fields, pageNumber=page)}


def _queries(arguments: str) -> list[str]:
    """Return what a search was for."""
    try:
        value = decode_json(arguments or "{}")
    except WireError:
        return []
    said = (value.get("queries") or [value.get("query")]) if isinstance(value, dict) else []
    return [query for query in said if isinstance(query, str)] if isinstance(said, list) else []


def bytes_of(text: str) -> int:
    """Return how long a text is on the wire."""
    return len(text.encode("utf-8", "surrogatepass"))
