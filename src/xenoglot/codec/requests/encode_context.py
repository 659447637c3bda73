"""The context of one request while it is encoded, shared by the functions that encode its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import Reader
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from xenoglot.model.request import Request

ADDED: Final = "added"
"""Stands in the form of a request's `extra` whose fields a program adds: the request itself came in no dialect."""


class EncodeContext(Struct, frozen=True):
    """One request while it is encoded: its losses, its target, and whether it came in this dialect (`home`)."""

    losses: Losses
    target: Target
    home: bool

    def takes(self, known: bool | None) -> bool:  # noqa: FBT001  what is known of the server, if anything
        """Return whether something can be sent: what is not known to be refused returns unchanged."""
        return self.home if known is None else known


PREVIOUS: Final = "previous"
"""In the form of a request's `extra`: what its dialect calls the field that refers to stored state."""


def stateless(request: Request) -> WireError:
    """Return the refusal of `request`, which refers to stored state, for a server that has none."""
    form = {} if request.extra is None else request.extra.form
    return WireError(f"$.{form.get(PREVIOUS, PREVIOUS)}", "this model keeps no conversation; send the whole history")


def take_previous(reader: Reader, key: str, form: JSONObject) -> str | None:
    """Take the reference to stored state, for the row of a field table; the form gets its name on the wire."""
    form[PREVIOUS] = key
    return reader.take(key, str)


def came_from(request: Request, dialect: str) -> bool:
    """Return whether `request` came in `dialect`: then its content is encoded unchanged."""
    extra = request.extra
    return extra is not None and extra.dialect == dialect and ADDED not in extra.form


def extended(context: EncodeContext) -> bool:
    """Whether fields that the dialect does not define can be written: they came in it, or the server supports them."""
    return context.home or context.target.extended_sampling


def write_max_tokens(wanted: int, _form: JSONObject, context: EncodeContext) -> int:
    """Return the token limit, lowered to what the server generates."""
    limit = context.target.max_tokens_limit
    if limit is None or wanted <= limit:
        return wanted
    context.losses.approximated("$.sampling", "max_tokens", f"lowered to {limit}, the most of the server")
    return limit
