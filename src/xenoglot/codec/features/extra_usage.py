"""Counts of usage that only a dialect knows, and that are billed apart from the tokens of an answer."""

from __future__ import annotations

from msgspec import Struct


class ExtraUsage(Struct, frozen=True, kw_only=True):
    """Counts that `Usage` has no field for; `None` where nothing was reported.

    `extra_input` and `extra_output` are tokens of further calls of a model that the provider made for the answer and
    reports apart from it.
    """

    extra_input: int | None = None
    extra_output: int | None = None


NO_EXTRA = ExtraUsage()
