"""The vectors: real wire data as files, `tests/vectors/<dialect>/<case>/`, and the one loader of them.

A case holds any of `request.json`, `response.json`, `stream.*` (`sse` or `ndjson`, as the dialect frames it; `jsonl`
for binary frames: a line for each event, `{"name": payload}`) and
`error.json` (`{"status": ..., "body": ...}`), and `NOTE.md`, which names what it covers (`pitfall-89`, `U31`) and where
it is from. A stream beside a response is the same answer twice, unless the note says `unpaired`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from xenoglot.codec.framing.binary_events import EXCEPTION, encode_message
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON

ROOT = Path(__file__).parent.parent / "vectors"

CITATION = re.compile(r"\b(?:pitfall-\d+|[ACFLR]-?[SWT]?\d+|U\d\d)\b")
"""The name of a case in a note or in a test."""


class Case(Struct, frozen=True):
    """One folder of vectors."""

    folder: Path

    @property
    def dialect(self) -> Dialect:
        return get(self.folder.parent.name)

    @property
    def note(self) -> str:
        return (self.folder / "NOTE.md").read_text(encoding="utf-8")

    @property
    def cited(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(CITATION.findall(self.note)))

    @property
    def id(self) -> str:
        """Return `chat/parallel-calls` and what it covers."""
        return "-".join((f"{self.folder.parent.name}/{self.folder.name}", *self.cited))

    @property
    def request(self) -> JSON:
        return decode_json((self.folder / "request.json").read_bytes())

    @property
    def response(self) -> JSON:
        return decode_json((self.folder / "response.json").read_bytes())

    @property
    def error(self) -> JSON:
        return decode_json((self.folder / "error.json").read_bytes())

    @property
    def stream(self) -> bytes:
        path = next(self.folder.glob("stream.*"))
        return framed_lines(path.read_bytes()) if path.suffix == ".jsonl" else path.read_bytes()

    def has(self, file: str) -> bool:
        """Return whether `file`, which may be a pattern, is here."""
        return any(self.folder.glob(file))

    def asked(self) -> Request:
        """Return the request that belongs to the answer here, or the shortest there is."""
        if (self.folder / "request.json").exists():
            return self.dialect.decode_request(self.request)
        return Request(model="m", stream=True, stream_usage=True)


def framed_lines(lines: bytes) -> bytes:
    """Return the binary frames of events that are written as lines."""
    events = [next(iter(decode_json(line).items())) for line in lines.splitlines()]
    return b"".join(
        encode_message(ServerSentEvent(encode_json(body), name, EXCEPTION if name.endswith("Exception") else None))
        for name, body in events
    )


@cache
def cases() -> tuple[Case, ...]:
    """Return every case of every dialect."""
    folders = (folder for name in names() for folder in (ROOT / name).glob("*") if folder.is_dir())
    return tuple(map(Case, sorted(folders)))


def each(*files: str, where: Callable[[Case], bool] = lambda _: True) -> pytest.MarkDecorator:
    """Return the parametrisation of `case` over all that have all of `files`."""
    found = [case for case in cases() if all(map(case.has, files)) and where(case)]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in found])


def decoded(dialect: Dialect, pieces: Iterable[bytes]) -> list[Event]:
    """Return the events of a stream of bytes."""
    return list(through(pieces, Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))


def went_home(case: Case, target: Target | None = None) -> JSON:
    """Return the request as its own dialect writes it again."""
    return case.dialect.encode_request(case.dialect.decode_request(case.request), Losses(), target or Target())
