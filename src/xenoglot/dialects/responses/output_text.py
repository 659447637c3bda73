"""Encodes and decodes model text as a content part, with its annotations and log probabilities.

Source: `openai/types/responses/response_output_text.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.model.content import Citation, Logprob, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject

_URL = "url_citation"
_FILE = "file_citation"
_NAMED = frozenset({_FILE, "container_file_citation"})
"""The kinds of annotation that name a file by its `filename`."""

ITEM = "message."
"""Begins the names under which the first part of a message carries the unknown fields of the message itself."""

_LISTS = ("annotations", "logprobs")


def decode_output_text(reader: Reader, form: JSONObject) -> Text:
    """Return the text of a part whose `type` is taken; `form` is what is to be kept of its spelling."""
    text = reader.need("text", str)
    absent = [key for key in _LISTS if key not in reader.rest()]
    citations = tuple(decode_annotation(item) for item in reader.objects("annotations"))
    return Text(
        text=text,
        citations=citations,
        logprobs=decode_logprobs(reader, "logprobs"),
        extra=extra_of(reader, {**form, "absent": absent}),
    )


def encode_output_text(part: Text, where: str, losses: Losses, *, whole: bool) -> JSONObject:
    """Return the part; one of a stranger has all its lists if it is to be `whole`, and no probabilities else."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    ours = part.extra is not None and part.extra.dialect == NAME
    if part.cache is not None:
        losses.dropped(where, "cache", "model output takes no cache mark")
    if part.logprobs and not (ours or whole):
        losses.dropped(where, "logprobs", "a request carries no log probabilities")
    absent = form.get("absent", ()) if ours else () if whole else ("logprobs",)
    encoded: JSONObject = {"type": "output_text", "text": part.text}
    if "annotations" not in absent and own.get("annotations", part) is not None:
        encoded["annotations"] = encode_annotations(part, where, losses)
    if "logprobs" not in absent and own.get("logprobs", part) is not None:
        encoded["logprobs"] = encode_logprobs(part.logprobs, where, losses)
    return encoded | {key: value for key, value in own.items() if not key.startswith(ITEM)}


def decode_annotation(reader: Reader) -> Citation:
    """Return one annotation as the citation it is."""
    kind = reader.need("type", str)
    citation = Citation(
        kind=kind,
        url=reader.take_if("url", str),
        title=reader.take_if(_title(kind), str),
        file_id=reader.take_if("file_id", str),
        start=reader.take_if("start_index", int),
        end=reader.take_if(_end(kind), int),
    )
    whole = kind == _URL and None not in (citation.url, citation.title, citation.start, citation.end)
    return replace(citation, extra=extra_of(reader, {"own": not whole}))


def encode_annotations(part: Text, where: str, losses: Losses) -> list[JSONObject]:
    """Return the citations of a text as annotations."""
    numbered = ((f"{where}.citations[{index}]", citation) for index, citation in enumerate(part.citations))
    encoded = (encode_annotation(citation, len(part.text), at, losses) for at, citation in numbered)
    return [item for item in encoded if item is not None]


def encode_annotation(citation: Citation, length: int, where: str, losses: Losses) -> JSONObject | None:
    """Return a citation as an annotation; `length` is the length of its text."""
    own = own_fields(citation.extra, where, losses)
    if "own" in form_of(citation.extra, NAME):
        said = {
            "url": citation.url,
            _title(citation.kind): citation.title,
            "file_id": citation.file_id,
            "start_index": citation.start,
            _end(citation.kind): citation.end,
        }
        return {"type": citation.kind, **{key: value for key, value in said.items() if value is not None}, **own}
    if citation.url is None:
        return _file_citation(citation, length, own, where, losses)
    if citation.kind != _URL:
        losses.approximated(where, citation.kind, f"written as `{_URL}`")
    for field in ("cited_text", "file_id", "source", "range"):
        if getattr(citation, field) is not None:
            losses.dropped(where, field, "an annotation has no such field")
    if citation.title is None:
        losses.approximated(where, "title", "the dialect requires one: it is empty")
    return {
        "type": _URL,
        "url": citation.url,
        "title": citation.title or "",
        "start_index": 0 if citation.start is None else citation.start,
        "end_index": length if citation.end is None else citation.end,
        **own,
    }


def _file_citation(citation: Citation, length: int, own: JSONObject, where: str, losses: Losses) -> JSONObject | None:
    """Return the citation of a whole document: the dialect has no places in one."""
    name = citation.title or citation.source
    if name is None and citation.file_id is None:
        losses.dropped(where, citation.kind, "the dialect cites URLs and files")
        return None
    losses.approximated(where, "citation", f"written as a `{_FILE}`, which has no place in a document")
    end = length if citation.end is None else citation.end
    return {"type": _FILE, "file_id": citation.file_id or "", "filename": name or "", "index": end, **own}


def decode_logprobs(reader: Reader, key: str) -> tuple[Logprob, ...]:
    """Take the list of token probabilities under `key`."""
    return tuple(_decode_logprob(item) for item in reader.objects(key))


def encode_logprobs(logprobs: Sequence[Logprob], where: str, losses: Losses) -> list[JSONObject]:
    """Return a list of token probabilities; required fields that another dialect does not send are filled in."""
    return [_encode_logprob(logprob, where, losses, nested=False) for logprob in logprobs]


def _decode_logprob(reader: Reader) -> Logprob:
    token, logprob = reader.need("token", str), reader.need("logprob", float)
    octets: list[int] | None = reader.take("bytes", list)
    listed = "top_logprobs" in reader
    return Logprob(
        token=token,
        logprob=logprob,
        bytes=None if octets is None else tuple(octets),
        top=decode_logprobs(reader, "top_logprobs") if listed else None,
        extra=extra_of(reader, {"bare": octets is None or not listed}),
    )


def _encode_logprob(logprob: Logprob, where: str, losses: Losses, *, nested: bool) -> JSONObject:
    own = own_fields(logprob.extra, where, losses)
    encoded: JSONObject = {"token": logprob.token, "logprob": logprob.logprob}
    octets: JSON = logprob.bytes
    top = logprob.top
    if "bare" not in form_of(logprob.extra, NAME):
        if octets is None or (top is None and not nested):
            losses.approximated(where, "logprobs", "missing bytes and alternatives are filled in")
        octets = logprob.token.encode() if octets is None else octets
        top = None if nested else top or ()
    if octets is not None:
        encoded["bytes"] = list(octets)
    if top is not None:
        encoded["top_logprobs"] = [_encode_logprob(other, where, losses, nested=True) for other in top]
    return encoded | own


def _end(kind: str) -> str:
    """Return the field of the end: a `file_citation` has a place in the text alone (`index`)."""
    return "index" if kind == _FILE else "end_index"


def _title(kind: str) -> str:
    return "filename" if kind in _NAMED else "title"
