"""The captured bodies of a request next to each other: trees with their counterparts, losses at their places, streams.

A stream is shown as the answer that it amounts to, made by its own dialect; its events are listed apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.stage import through
from xenoglot.errors import XenoglotError
from xenoglot.gateway.console.inspection.alignment import align, nodes
from xenoglot.gateway.console.inspection.field_names import field_names
from xenoglot.gateway.console.inspection.json_tree import MOST_ROWS, TreeRow, parsed, tree_rows, visible
from xenoglot.gateway.console.inspection.loss_places import BodyDocument, LossPlace, listed, loss_places
from xenoglot.model.fold import Folder
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.framing.formats import Framing
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.gateway.admin.requests import CapturedBody
    from xenoglot.gateway.console.inspection.alignment import Path
    from xenoglot.model.json import JSON

TITLES: Final = {
    "client_request": "Client sent",
    "upstream_request": "Upstream received",
    "upstream_response": "Upstream answered",
    "client_response": "Client received",
}
PAIRS: Final = (("client_request", "upstream_request"), ("upstream_response", "client_response"))
"""Bodies that are translations of each other."""
SHOWN_CHARACTERS: Final = 20_000
"""The beginning that is shown of a body that is not JSON."""
EVENT_CHARACTERS: Final = 2000


class BodySide(Struct, frozen=True, kw_only=True):
    """One body: its rows, or its `text` where it is not JSON; `more` is how many values have no row."""

    part: str
    title: str
    dialect: str
    media: str
    truncated: bool
    size: int
    is_stream: bool
    rows: tuple[TreeRow, ...] = ()
    more: int = 0
    text: str = ""
    problem: str = ""


class Comparison(Struct, frozen=True, kw_only=True):
    """The bodies of a request in their order, and its losses."""

    sides: tuple[BodySide, ...]
    losses: tuple[LossPlace, ...]


def compare(bodies: Mapping[str, CapturedBody], spoken: tuple[str, str], losses: Sequence[Loss]) -> Comparison:
    """Return captured bodies next to each other; `spoken` are the dialects of the client and of the upstream."""
    read: dict[tuple[str, str], BodyDocument] = {}  # a body that passed unchanged is read once
    documents: dict[str, BodyDocument] = {}
    for part, body in bodies.items():
        key = (body.text, _dialect(part, spoken))
        if key not in read:
            read[key] = _read(body, key[1])
        documents[part] = read[key]
    groups: dict[str, dict[Path, str]] = {part: {} for part in documents}
    for letter, (left, right) in zip("qa", PAIRS, strict=True):
        if left in documents and right in documents:
            one, other = documents[left], documents[right]
            for number, (here, there) in enumerate(align(one.found, other.found, one.names, other.names)):
                groups[left][here] = groups[right][there] = f"{letter}{number}"
    places = loss_places(losses, documents)
    return Comparison(
        sides=tuple(
            _side(bodies[part], documents[part], groups[part], places.get(part, {}), _dialect(part, spoken))
            for part in TITLES
            if part in bodies
        ),
        losses=listed(losses, places),
    )


def stream_events(body: CapturedBody, dialect: str) -> list[list[str]]:
    """Return the events of a stream, each its name and its data, as far as they are whole."""
    framing = _framing(body.text, dialects.get(dialect))
    decoder = framing.decoder()
    found: list[ServerSentEvent] = []
    try:
        found += decoder.feed(body.text.encode("utf-8", "replace"))
        if not body.truncated:
            found += decoder.close()
    except XenoglotError as error:
        return [*_texts(found), ["error", str(error)]]
    return _texts(found)


def _texts(events: Iterable[ServerSentEvent]) -> list[list[str]]:
    return [
        [visible(one.event or "", 100), visible(one.data.decode("utf-8", "replace"), EVENT_CHARACTERS)]
        for one in events
    ]


def _dialect(part: str, spoken: tuple[str, str]) -> str:
    return spoken[0] if part.startswith("client") else spoken[1]


def _read(body: CapturedBody, name: str) -> BodyDocument:
    try:
        dialect = dialects.get(name)
    except XenoglotError as error:
        return BodyDocument((), {}, str(error), dialect=None)
    names = field_names(getattr(dialect.decode_request, "__module__", "").partition(".request")[0])
    try:
        document = _answer(body, dialect) if _is_stream(body) else parsed(body.text, truncated=body.truncated)
    except XenoglotError as error:
        return BodyDocument((), names, str(error), dialect=dialect)
    return BodyDocument(nodes(document), names, "", dialect=dialect, value=document)


def _answer(body: CapturedBody, dialect: Dialect) -> JSON:
    """Return the answer that a stream amounts to, in its own dialect.

    Raises:
        XenoglotError: the stream is not one of the dialect.
    """
    framing, folder = _framing(body.text, dialect), Folder()
    reader = StreamReader(framing, dialect.stream_decoder())
    for event in through((body.text.encode("utf-8", "replace"),), reader):
        folder.feed(event)
    if folder.failure is not None and not body.truncated:
        return dialect.encode_error(folder.failure)[1]
    return dialect.encode_response(folder.response(growing=True), Request(model="", stream_usage=True), Losses())


def _framing(text: str, dialect: Dialect) -> Framing:
    bare = dialect.bare_framing
    return bare if bare is not None and text.lstrip().startswith("[") else dialect.framing


def _is_stream(body: CapturedBody) -> bool:
    return body.part.endswith("response") and not body.media.startswith("application/json")


def _side(
    body: CapturedBody,
    document: BodyDocument,
    groups: Mapping[Path, str],
    places: Mapping[Path, tuple[str, tuple[Loss, ...]]],
    dialect: str,
) -> BodySide:
    return BodySide(
        part=body.part,
        title=TITLES[body.part],
        dialect=dialect,
        media=visible(body.media, 100),
        truncated=body.truncated,
        size=len(body.text),
        is_stream=_is_stream(body),
        rows=tuple(tree_rows(document.found, groups, places)),
        more=max(0, len(document.found) - MOST_ROWS),
        text="" if document.found else visible(body.text, SHOWN_CHARACTERS),
        problem=visible(document.problem, 300),
    )
