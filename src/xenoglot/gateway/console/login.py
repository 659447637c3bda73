"""The page to sign in at, and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page, Redirect
from xenoglot.gateway.console.sessions import Sessions
from xenoglot.model.failure import STATUS

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult


class LoginPages(Struct, frozen=True):
    """Exchanges an API key for a session."""

    sessions: Sessions

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/sign-in", handler=self.form, public=True),
            ConsoleRoute(method="POST", path="/sign-in", handler=self.sign_in, public=True),
            ConsoleRoute(method="POST", path="/sign-out", handler=self.sign_out),
        )

    async def form(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the form; a client that is signed in is sent to the page that it wants."""
        to = _place(request.parameter("to"))
        if request.session.signed_in or not self.sessions.auth.keyring.needs_key("view"):
            return Redirect(to=to)
        return _form(to, None, 200)

    async def sign_in(self, request: ConsoleRequest) -> ConsoleResult:
        """Open a session, or return the form with the reason against it."""
        to = _place(request.form.get("to"))
        try:
            cookie = await self.sessions.sign_in(request.ctx.exchange, request.form.get("key", "").strip())
        except FailureError as error:
            failure = error.failure
            request.ctx.record.failed(failure)
            return _form(to, failure.message, failure.status or STATUS[failure.kind])
        return Redirect(to=to, cookie=cookie)

    async def sign_out(self, request: ConsoleRequest) -> ConsoleResult:
        """End the session.

        Raises:
            FailureError: the store cannot be used.
        """
        return Redirect(to="/sign-in", cookie=await self.sessions.sign_out(request.ctx.exchange))


def _form(to: str, problem: str | None, status: int) -> Page:
    return Page(template="sign_in.html", values={"title": "Sign in", "to": to, "problem": problem}, status=status)


def _place(wanted: str | None) -> str:
    """Return a path of the console to go to: never another site, whatever a link has."""
    plain = wanted or "/"
    return plain if plain.startswith("/") and not plain.startswith("//") and plain.isprintable() else "/"
