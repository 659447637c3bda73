"""Rate and concurrency limits, in memory or shared between workers and gateways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.moved_modules import renamed

if not TYPE_CHECKING:  # type checkers report the old names

    def __getattr__(name: str) -> object:
        """Return what an old name is today."""
        return renamed(__name__, name)
