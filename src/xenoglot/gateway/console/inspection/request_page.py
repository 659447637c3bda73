"""The page of one request: its facts, bodies next to each other, losses, times, events; and how to send it again."""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.backends.offload import offload
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError
from xenoglot.gateway.admin.requests import CapturedBody, RequestDetails
from xenoglot.gateway.admin.route import RawBody
from xenoglot.gateway.admin.services import NO_LEDGER
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.inspection.bodies import compare, stream_events
from xenoglot.gateway.console.inspection.json_tree import escaped
from xenoglot.gateway.console.inspection.timeline import timeline
from xenoglot.gateway.console.inspection.vector_archive import vector_archive
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.model.failure import Failure
from xenoglot.store.ledger.bodies import DETAILS, PARTS, CaptureDetails

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.store.ledger.rows import RequestRow

TEXT: Final = "text/plain; charset=utf-8"
JSON_TYPE: Final = "application/json"
ZIP: Final = "application/zip"
USUAL_DIALECT: Final = "chat"
"""In which a request is shown whose dialect is not known."""
ID_PREFIX: Final = "req_"
LOOKS: Final = 6
"""How often a request is looked up that is not in the ledger: a gateway writes its rows after a quarter of a second."""
PAUSE: Final = 0.15
"""Seconds before the next look."""
MOST_SENT: Final = 512 * 1024
"""Characters of a request that the page holds a second time, to send it."""
TOKENS: Final = (
    ("input", "Input"), ("cache_read", "of it read from the cache"), ("cache_write", "of it written to the cache"),
    ("audio_in", "of it audio"), ("extra_input", "input of the gateway's own calls"), ("output", "Output"),
    ("reasoning", "of it reasoning"), ("audio_out", "of it audio"),
    ("extra_output", "output of the gateway's own calls"), ("searches", "Searches"),
)  # fmt: skip
"""Fields of the row with counts, and what they are called."""


class InspectionPages(Struct, frozen=True):
    """Shows one request."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/requests/{id}", handler=self.request),
            ConsoleRoute(method="GET", path="/requests/{id}/text/{part}", handler=self.text),
            ConsoleRoute(method="GET", path="/requests/{id}/events/{part}", handler=self.events),
            ConsoleRoute(method="GET", path="/requests/{id}/vector.zip", handler=self.vector),
        )

    async def request(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page of a request.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        found, bodies = await self._found(request)
        row = found.request
        details = msgspec.json.decode(bodies.pop(DETAILS).text, type=CaptureDetails) if DETAILS in bodies else None
        losses = () if details is None else details.losses
        size = sum(len(body.text) for body in bodies.values())
        shown = await offload(size * 4, lambda: compare(bodies, spoken(row), losses))
        sent = bodies.get("client_request")
        query = stream_query(row, bodies.get("client_response"))
        path = path_of(row)
        whole = sent is not None and not sent.truncated and len(sent.text) <= MOST_SENT and path != ""
        values: dict[str, object] = {
            "title": f"Request {row.id}",
            "row": row,
            "kinds": found.loss_kinds,
            "comparison": shown,
            "rows": [one for side in shown.sides for one in side.rows],
            "details": details,
            "bars": timeline(row, details),
            "tokens": [(label, getattr(row, name)) for name, label in TOKENS if getattr(row, name) is not None],
            "curl": curl(path + query, escaped(sent.text)) if sent is not None and whole else None,
            "replay": f"{row.route}{query}",
            "sent": escaped(sent.text) if sent is not None and whole else None,
            "replays": request.session.administers or not request.session.signed_in,
        }
        return Page(template="one_request.html", values=values)

    async def text(self, request: ConsoleRequest) -> ConsoleResult:
        """Return a captured body as plain text, with escapes for what is not printable.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        body = await self._body(request, request.variables["part"])
        text = body.text
        shown = await offload(len(text), lambda: escaped(text))
        return RawBody(shown.encode("utf-8", "replace"), TEXT)

    async def events(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the events of a stream as a JSON list of names and data.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        part = request.variables["part"]
        details = await self.calls.object(RequestDetails, request, _place(request))
        body = await self._body(request, part)
        client, upstream = spoken(details.request)
        dialect = client if part.startswith("client") else upstream
        found = await offload(len(body.text) * 4, lambda: encode_json([*stream_events(body, dialect)]))
        return RawBody(found, JSON_TYPE)

    async def vector(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the files of a test vector.

        Raises:
            FailureError: the request does not exist or was not captured, or the store cannot be used.
        """
        found, bodies = await self._found(request)
        if not bodies:
            raise FailureError(Failure(kind="not_found", message="this request was not captured"))
        client, upstream = spoken(found.request)
        size = sum(len(body.text) for body in bodies.values())
        return RawBody(await offload(size, lambda: vector_archive(found.request.id, bodies, client, upstream)), ZIP)

    async def _found(self, request: ConsoleRequest) -> tuple[RequestDetails, dict[str, CapturedBody]]:
        """Return a request, and what was captured of it by part."""
        found = await self._details(request)
        captured = {one.part for one in found.capture}
        parts = [part for part in (*PARTS, DETAILS) if part in captured]
        return found, {part: await self._body(request, part) for part in parts}

    async def _details(self, request: ConsoleRequest) -> RequestDetails:
        """Return a request, whose row may still be on its way into the ledger when the client has its last byte."""
        place, looks = _place(request), LOOKS if request.variables["id"].startswith(ID_PREFIX) else 1
        for _ in range(looks - 1):
            try:
                return await self.calls.object(RequestDetails, request, place)
            except FailureError as error:
                if error.failure.kind != "not_found" or error.failure == NO_LEDGER:
                    raise
            await asyncio.sleep(PAUSE)
        return await self.calls.object(RequestDetails, request, place)

    async def _body(self, request: ConsoleRequest, part: str) -> CapturedBody:
        path = f"{_place(request)}/capture/{quote(part, safe='')}"
        return await self.calls.object(CapturedBody, request, path)


def _place(request: ConsoleRequest) -> str:
    """Return the path of the request at the administration."""
    return f"/requests/{quote(request.variables['id'], safe='')}"


def spoken(row: RequestRow) -> tuple[str, str]:
    """Return the dialects of the client and of the upstream."""
    client = row.dialect or USUAL_DIALECT
    return client, row.upstream_dialect or client


def path_of(row: RequestRow) -> str:
    """Return the path that a request was sent to; the ledger has that of the route.

    It is empty if the name of the model would lead to another route.
    """
    model = row.model or ""
    if not {".", ".."}.isdisjoint(re.split(r"[/\\]", model)):
        return ""
    path = (row.route or "").replace("{+model}", quote(model, safe="/")).replace("{model}", quote(model, safe=""))
    return "" if "{" in path else path


def stream_query(row: RequestRow, answered: CapturedBody | None) -> str:
    """Return the query with which a stream was requested, as `?alt=sse`; the ledger has the path alone.

    It matters in a dialect whose streams are framed in two ways: a captured stream shows which one it was.
    """
    name = spoken(row)[0]
    if not row.stream or name not in dialects.names():
        return ""
    query = dialects.get(name).stream_query
    bare = answered is not None and answered.text.lstrip().startswith("[")
    return f"?{query}" if query and not bare else ""


def curl(path: str, body: str) -> str:
    """Return a command that sends a request again, without a key."""
    return (
        f'curl "$XENOGLOT_URL"{shlex.quote(path)} \\\n'
        '  -H "authorization: Bearer $XENOGLOT_KEY" \\\n'
        "  -H 'content-type: application/json' \\\n"
        f"  --data-raw {shlex.quote(body)}"
    )
