"""Encodes and decodes annotations of a text: its citations.

Source: `URLCitation`, `FileCitation` and `PlaceCitation` in `google/genai/_gaos/types/interactions` of the official
SDK. Their offsets count the bytes of the text in UTF-8. Annotations of other types (`word_info`) are no citations: they
are carried as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.interactions.extras import NAME, extra_of, own_fields
from xenoglot.model.content import Citation, CitedRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

KEY: Final = "annotations"

_URL: Final = "url_citation"
_FILE: Final = "file_citation"
_KEYS: Final[dict[str, dict[str, str]]] = {
    _URL: {"url": "url", "title": "title"},
    _FILE: {"document_uri": "file_id", "file_name": "title", "source": "cited_text"},
    "place_citation": {"url": "url", "name": "title"},
}
"""Type of an annotation -> its fields, and ours."""

_OFFSETS: Final = {"start_index": "start", "end_index": "end"}

_LATER: Final = bytes(range(0x80, 0xC0))
"""Bytes that continue a character in UTF-8."""


def take_annotations(reader: Reader, text: str, form: JSONObject) -> tuple[Citation, ...]:
    """Take the citations of `text`; annotations of other types stay in the rest."""
    found = reader.take_if(KEY, list)
    if found is None:
        return ()
    if not found:
        form[KEY] = "empty"
    citations = [item for item in found if is_citation(item)]
    others = [item for item in found if not is_citation(item)]
    if others:
        reader.rest()[KEY] = others
    return decode_citations(citations, text)


def is_citation(item: JSON) -> bool:
    """Whether an annotation is of a type that cites something, with all its fields of the right types."""
    keys = _KEYS.get(str(item.get("type"))) if isinstance(item, dict) else None
    return keys is not None and all(isinstance(item.get(key), str | None) for key in keys)


def decode_citations(items: Sequence[JSONObject], text: str) -> tuple[Citation, ...]:
    """Return the citations of `text`."""
    chars = _chars(text, [item[key] for item in items for key in _OFFSETS if type(item.get(key)) is int])
    return tuple(_decode(Reader(item), text, chars) for item in items)


def _decode(reader: Reader, text: str, chars: dict[int, int]) -> Citation:
    kind = reader.need("type", str)
    form: JSONObject = {}
    fields: JSONObject = {name: reader.take(key, str) for key, name in _KEYS[kind].items()}
    for key, name in _OFFSETS.items():
        given = reader.take_if(key, int)
        if given is not None:
            fields[name] = chars[given]
            if not text.isascii() or given > len(text):
                form[key] = [given]
    page = reader.take_if("page_number", int) if kind == _FILE else None
    pages = None if page is None else CitedRange(unit="page", start=page, end=page + 1)
    return Citation(kind=kind, **fields, range=pages, extra=extra_of(reader, form))


def encode_citations(citations: Iterable[Citation], text: str, where: str, losses: Losses) -> list[JSONObject]:
    """Return the annotations for the citations of `text`."""
    listed = tuple(citations)
    places = [place for one in listed for place in (one.start, one.end) if place is not None]
    offsets = _bytes(text, places)
    found = (_encode(one, f"{where}.citations[{index}]", offsets, losses) for index, one in enumerate(listed))
    return [one for one in found if one is not None]


def _encode(citation: Citation, where: str, offsets: dict[int, int], losses: Losses) -> JSONObject | None:
    form, own = form_of(citation.extra, NAME), own_fields(citation.extra, where, losses)
    ours = citation.extra is None or citation.extra.dialect == NAME
    kind = citation.kind if ours and citation.kind in _KEYS else _FILE if citation.url is None else _URL
    nameless = citation.title is None and citation.file_id is None and citation.cited_text is None
    if kind == _FILE and nameless and not (ours and citation.kind == _FILE):
        losses.dropped(where, "citation", "the dialect cites addresses and files")
        return None
    for name in ("file_id", "cited_text", "url"):
        if getattr(citation, name) is not None and name not in _KEYS[kind].values():
            losses.dropped(where, name, f"a `{kind}` has none")
    if kind != citation.kind:
        losses.approximated(where, "kind", f"written as `{kind}`")
    written: JSONObject = {"type": kind, **_page(citation, kind, where, losses)}
    with_said(written, **{key: getattr(citation, name) for key, name in _KEYS[kind].items()})
    for key, name in _OFFSETS.items():
        place = getattr(citation, name)
        if place is not None:
            written[key] = form[key][0] if key in form else offsets[place]
    return written | own


def _page(citation: Citation, kind: str, where: str, losses: Losses) -> JSONObject:
    """Return the page that is cited: a `file_citation` has one, and no other places in a document."""
    cited = citation.range
    if citation.source is not None:
        losses.dropped(where, "source", f"a `{kind}` has none")
    if cited is None:
        return {}
    if kind != _FILE or cited.unit != "page" or cited.start is None:
        losses.dropped(where, "range", f"a `{kind}` has no such place in a document")
        return {}
    if cited.index is not None or cited.end != cited.start + 1:
        losses.approximated(where, "range", "written as the number of its first page")
    return {"page_number": cited.start}


def _chars(text: str, wanted: Iterable[int]) -> dict[int, int]:
    """Return byte offsets into `text` with the offsets of their characters, in one pass over the text."""
    places = sorted({*wanted})
    if text.isascii():
        return {place: place for place in places}
    data, found, at, count = text.encode("utf-8", "surrogatepass"), {}, 0, 0
    for place in places:
        end = max(at, min(place, len(data)))
        count += len(data[at:end].translate(None, _LATER))
        found[place], at = count + max(0, place - len(data)), end
    return found


def _bytes(text: str, wanted: Iterable[int]) -> dict[int, int]:
    """Return offsets of characters of `text` with their byte offsets, in one pass."""
    places = sorted({*wanted})
    if text.isascii():
        return {place: place for place in places}
    found, at, count = {}, 0, 0
    for place in places:
        end = max(at, min(place, len(text)))
        count += len(text[at:end].encode("utf-8", "surrogatepass"))
        found[place], at = count + max(0, place - len(text)), end
    return found
