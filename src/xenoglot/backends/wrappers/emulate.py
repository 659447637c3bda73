"""Wraps a backend to emulate what its model or server lacks: parses its text, enforces JSON schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.text.registry import AUTO, OFF

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.backends.wrappers.emulation_settings import Emulation


def read_as(backend: Backend, text_syntax: str, emulate: Emulation) -> Backend:
    """Return `backend` with its answers read; itself where they need no reading."""
    textual = _textual(backend, text_syntax, emulate)
    if not emulate.acts:
        return textual
    from xenoglot.backends.wrappers.json_output import JSONBackend  # noqa: PLC0415  few need it

    return JSONBackend(textual, emulate)


def _textual(backend: Backend, text_syntax: str, emulate: Emulation) -> Backend:
    syntax = AUTO if text_syntax == OFF and emulate.tools else text_syntax
    if syntax == OFF:
        return backend
    from xenoglot.backends.wrappers.text_tools import TextBackend, TextPolicy  # noqa: PLC0415  as above

    return TextBackend(backend, TextPolicy(syntax=syntax, tools=emulate.tools, repair=emulate.repair))
