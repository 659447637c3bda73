"""A captured request as a test vector: files as `tests/vectors` has them, in an archive."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.gateway.admin.requests import CapturedBody

NOTE: Final = "Captured request {id}, redacted by the gateway. Describe what it shows; check it for personal data.\n"


def vector_archive(name: str, bodies: Mapping[str, CapturedBody], client: str, upstream: str) -> bytes:
    """Return the archive: the client's request in its dialect, and the upstream's answer in that of the upstream."""
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for path, text in _files(name, bodies, client, upstream):
            archive.writestr(ZipInfo(path), text.encode("utf-8", "replace"))
    return out.getvalue()


def _files(name: str, bodies: Mapping[str, CapturedBody], client: str, upstream: str) -> Iterator[tuple[str, str]]:
    sent, answered = bodies.get("client_request"), bodies.get("upstream_response")
    if sent is not None:
        yield f"{client}/ask-{name}/request.json", sent.text
        yield f"{client}/ask-{name}/NOTE.md", NOTE.format(id=name)
    if answered is not None:
        whole = answered.media.startswith("application/json")
        yield f"{upstream}/{name}/{'response.json' if whole else 'stream.sse'}", answered.text
        yield f"{upstream}/{name}/NOTE.md", NOTE.format(id=name)
