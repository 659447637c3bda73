"""Encodes and decodes citations, and the block of a text that has some.

Source: `CitationsContentBlock`, `Citation` and `CitationLocation` in the published model of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse.extras import NAME, member, take_member, with_rest, with_said
from xenoglot.model.content import Citation, CitedRange, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import CitedUnit
    from xenoglot.model.json import JSON, JSONObject

BLOCK: Final = "citationsContent"

_RANGES: Final[Mapping[str, tuple[CitedUnit, str]]] = {
    "documentChar": ("char", "documentIndex"),
    "documentPage": ("page", "documentIndex"),
    "documentChunk": ("block", "documentIndex"),
    "searchResultLocation": ("search_result", "searchResultIndex"),
}
"""Locations with a range: what it counts, and the field of the index."""

_LOCATIONS: Final = ("web", *_RANGES)
"""`CitationLocation` in the published model: the kinds of citation."""

_KINDS: Final = {unit: (kind, key) for kind, (unit, key) in _RANGES.items()}

_NO_LOCATION: Final = "citation"
"""The kind of a citation without a location."""


def decode_citations(block: JSON, path: str) -> Text:
    """Return the text of a block with citations."""
    reader = take_member(block, BLOCK, path)
    texts = [piece.get("text") for piece in _pieces(reader.peek("content"))]
    form: JSONObject = {}
    if None not in texts and "content" in reader:
        reader.take("content", list)
        if len(texts) != 1:
            form["texts"] = texts
    citations = reader.take("citations", list)
    if not citations:
        form["block"] = BLOCK if citations is None else "empty"
    return Text(
        text="".join(text for text in texts if text is not None),
        citations=tuple(
            decode_citation(one, f"{path}.{BLOCK}.citations[{index}]") for index, one in enumerate(citations or ())
        ),
        extra=reader.extra(NAME, **form),
    )


def _pieces(content: JSON) -> list[JSONObject]:
    """Return the texts of a list if each is a text and nothing else."""
    pieces: list[JSON] = content if isinstance(content, list) else []
    plain = all(isinstance(piece, dict) and [*piece] == ["text"] and type(piece["text"]) is str for piece in pieces)
    return pieces if plain else [{}]


def decode_citation(value: JSON, path: str) -> Citation:
    """Return one citation."""
    reader = Reader(value, path)
    form: JSONObject = {}
    kind, url, cited_range = _NO_LOCATION, None, None
    location = reader.peek("location")
    if isinstance(location, dict):
        kind = next((name for name in _LOCATIONS if isinstance(location.get(name), dict)), kind)
        if kind == "web":
            inner = Reader(reader.take("location", dict), reader.at("location"))
            web = Reader(inner.need("web", dict), inner.at("web"))
            url = web.take_if("url", str)
            nested: JSONObject = {}
            keep_rest(inner, "web", web, nested, said=url is not None)
            inner.rest().update(nested.get("rests", {}))
            keep_rest(reader, "location", inner, form, said=url is not None)
        elif kind in _RANGES and [*location] == [kind]:
            cited_range = _range_of(location[kind], kind)
            if cited_range is not None:
                reader.take("location", dict)
    source = _pieces(reader.peek("sourceContent"))
    cited = source[0].get("text") if len(source) == 1 else None
    if cited is not None:
        reader.take("sourceContent", list)
    title = reader.take("title", str)
    return Citation(
        kind=kind,
        url=url,
        title=title,
        cited_text=cited,
        source=reader.take_if("source", str),
        range=cited_range,
        extra=reader.extra(NAME, **form),
    )


def _range_of(location: JSONObject, kind: str) -> CitedRange | None:
    """Return the part of a document that is cited; `None` if it is not three numbers, which may be left out."""
    unit, key = _RANGES[kind]
    keys = (key, "start", "end")
    if not location.keys() <= {*keys} or not all(type(number) is int for number in location.values()):
        return None
    index, start, end = (location.get(one) for one in keys)
    return CitedRange(unit=unit, index=index, start=start, end=end)


def encode_citations(text: Text, fields: JSONObject, where: str, losses: Losses) -> JSONObject:
    """Return the block of a text with citations; `fields` are those that only this dialect has."""
    form = form_of(text.extra, NAME)
    texts: list[str] = form.get("texts", [])
    pieces = texts if "texts" in form and "".join(texts) == text.text else [text.text]
    own: JSONObject = {"content": [{"text": piece} for piece in pieces]} if "content" not in fields else {}
    if text.citations or form.get("block") == "empty":
        own["citations"] = [
            encode_citation(one, f"{where}.citations[{index}]", losses) for index, one in enumerate(text.citations)
        ]
    return member(BLOCK, own | fields)


def encode_citation(citation: Citation, where: str, losses: Losses) -> JSONObject:
    """Return one citation; the place of the citing text is not written: the dialect cites whole blocks."""
    own: JSONObject = {}
    if citation.url is not None:
        own["location"] = {"web": {"url": citation.url}}
        if citation.range is not None:
            losses.dropped(where, "range", "a citation of the dialect has one location: the URL")
    elif citation.range is not None:
        kind, key = _KINDS[citation.range.unit]
        numbers = {key: citation.range.index, "start": citation.range.start, "end": citation.range.end}
        own["location"] = {kind: with_said({}, **numbers)}
    if citation.cited_text is not None:
        own["sourceContent"] = [{"text": citation.cited_text}]
    for name in ("start", "end", "file_id"):
        if getattr(citation, name) is not None:
            losses.dropped(where, name, "a citation of the dialect belongs to a whole block of text")
    with_said(own, title=citation.title, source=citation.source)
    return with_rest(own, citation.extra, where, losses)
