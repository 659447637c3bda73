"""The page Playground: a conversation with any model of the gateway in any dialect, with the bytes of the answer.

The browser sends requests to the gateway's own endpoints, with a key that only the page has. What it sends is made here
from one form for all dialects, and what it gets is read here, both by translations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.requests.url_params import addressed
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.route import RawBody, decoded
from xenoglot.gateway.admin.translation import Translation
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.pages.translation import JSON_TYPE, TypedText, parsed_text
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSON, JSONObject


class PlaygroundPage(Struct, frozen=True):
    """Writes requests for the script of the page, and reads answers for it."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/playground", handler=self.page),
            ConsoleRoute(method="POST", path="/playground/write", handler=self.write),
            ConsoleRoute(method="POST", path="/playground/read", handler=self.read),
        )

    async def page(self, request: ConsoleRequest) -> ConsoleResult:  # noqa: ARG002  the form of a handler
        """Return the page."""
        values = {"title": "Playground", "dialects": shown_dialects(), "usual": USUAL_DIALECT}
        return Page(template="playground.html", values=values)

    async def write(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the request that a form means in a dialect: its path and body, and what of the form is lost there."""
        try:
            made = await self._translated(request)
            path, query, body = addressed(made.body or {}, dialects.get(made.to))
        except (FailureError, WireError) as error:
            return _problem(error)
        losses: JSON = [msgspec.to_builtins(loss) for loss in made.losses]
        text = msgspec.json.format(encode_json(body)).decode()
        return _json({"path": f"{path}?{query}" if query else path, "body": text, "losses": losses})

    async def read(self, request: ConsoleRequest) -> ConsoleResult:
        """Return an answer in the usual dialect; for a stream, its events so far."""
        try:
            made = await self._translated(request)
        except (FailureError, WireError) as error:
            return _problem(error)
        return _json({"body": made.body, "stream": made.stream})

    async def _translated(self, request: ConsoleRequest) -> Translation:
        """Return the translation of what the script has sent.

        Raises:
            FailureError: a dialect is unknown, or this cannot be translated.
            WireError: it is invalid.
        """
        typed = decoded(decode_json(request.body), TypedText)
        body: JSONObject = {"from": typed.from_, "to": typed.to, **parsed_text(typed.text)}
        made = await self.calls.call(request, "POST", "/translate", body=body, reads=True)
        if not isinstance(made, Translation):
            raise TypeError(type(made).__name__)
        return made


def shown_dialects() -> list[str]:
    """Return the dialects of conversations whose streams are text, so that the page can show them as they come."""
    found = [dialects.get(name) for name in dialects.names()]
    return [one.name for one in found if one.turns and one.framing.ends]


def _problem(error: FailureError | WireError) -> RawBody:
    if isinstance(error, FailureError):
        return _json({"problem": error.failure.message, "path": error.failure.param})
    return _json({"problem": error.problem, "path": error.path})


def _json(value: JSON) -> RawBody:
    return RawBody(encode_json(value), JSON_TYPE)
