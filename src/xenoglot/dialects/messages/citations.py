"""Encodes and decodes citations of a text.

Source: `anthropic/types/text_citation.py` and `text_citation_param.py` of the official SDK, and the classes named
there. A citation is of a document, a search result of the prompt, or a result of the web search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.extras import NAME, with_rest, with_said
from xenoglot.model.content import Citation, CitedRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import CitedUnit
    from xenoglot.model.json import JSON, JSONObject

WEB: Final = "web_search_result_location"
_FOUND: Final = "search_result_location"

_RANGES: Final[Mapping[str, tuple[CitedUnit, tuple[str, str, str]]]] = {
    "char_location": ("char", ("document_index", "start_char_index", "end_char_index")),
    "page_location": ("page", ("document_index", "start_page_number", "end_page_number")),
    "content_block_location": ("block", ("document_index", "start_block_index", "end_block_index")),
    _FOUND: ("search_result", ("search_result_index", "start_block_index", "end_block_index")),
}
"""Kinds of citation with a range: what it counts, and its fields."""

_KINDS: Final = {unit: kind for kind, (unit, _) in _RANGES.items()}

_OWN: Final = "_location"
"""Ends every kind of citation of the dialect."""


def _title(kind: str) -> str:
    """Return the field of a title: a result has one, of a document it is the document's."""
    return "title" if kind in (_FOUND, WEB) else "document_title"


def decode_citation(value: JSON, path: str) -> Citation:
    """Return one citation of a text."""
    reader = Reader(value, path)
    kind = reader.need("type", str)
    return Citation(
        kind=kind,
        url=reader.take("url", str),
        title=reader.take(_title(kind), str),
        file_id=reader.take("file_id", str),
        cited_text=reader.take("cited_text", str),
        source=reader.take_if("source", str) if kind == _FOUND else None,
        range=_take_range(reader, kind),
        extra=reader.extra(NAME),
    )


def _take_range(reader: Reader, kind: str) -> CitedRange | None:
    """Take the part of the document that is cited, if all of its fields are numbers."""
    if kind not in _RANGES:
        return None
    unit, keys = _RANGES[kind]
    if any(type(reader.peek(key)) is not int for key in keys):
        return None
    index, start, end = (reader.need(key, int) for key in keys)
    return CitedRange(unit=unit, index=index, start=start, end=end)


def encode_citation(
    citation: Citation, where: str, losses: Losses, target: Target | None, *, home: bool
) -> JSONObject | None:
    """Return one citation, or `None` if the dialect has none like it; with a `target` it is part of a request."""
    kind = _kind_of(citation)
    foreign = kind != citation.kind
    sealed = target is not None and target.sealed_results
    known = not foreign and (home or kind.endswith(_OWN))
    if target is not None and (not known or (sealed and _is_without_index(citation))):
        # as input it would need an `encrypted_index` that only a search gives, or documents at the same places
        losses.dropped(where, "citation", "only the server's own citations can be sent to it")
        return None
    own = with_said({"type": kind}, url=citation.url, file_id=citation.file_id, cited_text=citation.cited_text)
    with_said(own, source=citation.source, **{_title(kind): citation.title}, **_range_fields(citation.range, kind))
    if foreign:
        own |= _required(citation, kind, own, where, losses)
    if kind != WEB:
        for name in ("start", "end"):
            if getattr(citation, name) is not None:
                losses.dropped(where, name, "a citation of the dialect belongs to a whole block of text")
    return with_rest(own, citation.extra, where, losses)


def _kind_of(citation: Citation) -> str:
    """Return the kind of a citation here; that of another dialect if there is none like it."""
    if citation.kind.endswith(_OWN):
        return citation.kind
    if citation.url is not None:
        return WEB
    return citation.kind if citation.range is None else _KINDS[citation.range.unit]


def _range_fields(cited: CitedRange | None, kind: str) -> JSONObject:
    if cited is None or kind not in _RANGES:
        return {}
    return dict(zip(_RANGES[kind][1], (cited.index, cited.start, cited.end), strict=True))


def _required(citation: Citation, kind: str, own: JSONObject, where: str, losses: Losses) -> JSONObject:
    """Return the fields that the dialect requires of a citation, and that the one of another dialect lacks."""
    if kind == WEB:
        losses.approximated(where, "citation", f"written as a `{WEB}`")
        return {"title": citation.title, "cited_text": "", "encrypted_index": ""} | own
    required: JSONObject = {"cited_text": "", _title(kind): None, **dict.fromkeys(_RANGES[kind][1], 0)}
    if kind == _FOUND:
        required["source"] = ""
    lacking = [key for key, value in required.items() if key not in own and value is not None]
    if lacking:
        losses.approximated(where, "citation", f"not reported, and the dialect requires it: {', '.join(lacking)}")
    return {key: value for key, value in required.items() if key not in own}


def _is_without_index(citation: Citation) -> bool:
    """Return whether `encode_citation` made this citation of one without an `encrypted_index`."""
    own = citation.extra.fields if citation.extra is not None else {}
    return citation.kind == WEB and own.get("encrypted_index") == ""
