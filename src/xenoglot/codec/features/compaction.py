"""The record of a dialect's endpoint that compacts a conversation. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from xenoglot.model.json import JSON, JSONObject


class CompactionForm(Struct, frozen=True, kw_only=True):
    """An endpoint whose answer is a conversation, compacted.

    `ask` writes its request as one of the dialect for an answer that is a summary alone; it raises `WireError` for what
    the dialect does not allow. `show` returns the endpoint's answer, given that answer and that request.
    """

    path: str
    ask: Callable[[JSON], JSONObject]
    show: Callable[[JSONObject, JSONObject], JSONObject]
