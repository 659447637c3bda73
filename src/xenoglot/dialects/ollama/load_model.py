"""Requests without a prompt, which load or unload the model; the answer confirms it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.ollama.extras import FAMILY, NAMES
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.request import Request

_AT_ONCE = (0, "0", "0s")
"""The times to keep a model that drop it (`Duration` in `api/types.go`)."""


def answer_of_loading(request: Request) -> Response | None:
    """Return the answer to a request without anything to answer, as `ChatHandler` and `GenerateHandler` give it.

    `None` for any other request.
    """
    extra = request.extra
    if extra is None or extra.dialect not in NAMES:
        return None
    if request.prompt is not None or any(message.role != "system" for message in request.messages):
        return None
    if request.messages and extra.dialect == FAMILY:  # a chat of system turns alone is answered
        return None
    raw = "unload" if extra.fields.get("keep_alive") in _AT_ONCE else "load"
    finish = Finish(reason="stop", raw=raw, dialect=FAMILY)
    return Response(model=request.model, candidates=(Candidate(finish=finish),))
