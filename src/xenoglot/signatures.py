"""Signatures for `help()` and editors: the options of `**options`, each with its type and default.

A function with many options declares them as `**options: Unpack[SomeOptions]`, where `SomeOptions` is a `TypedDict`.
Type checkers and editors read that; at run time `inspect.signature` would show `**options` alone.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

F = TypeVar("F", bound="Callable[..., Any]")

_KEYWORD, _VAR_KEYWORD = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD


class Annotation(str):
    """An annotation as its source text, shown without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show_options(options: type, defaults: Mapping[str, object] | None = None) -> Callable[[F], F]:
    """Return a decorator that lists the keys of the `TypedDict` `options` in the signature of a function.

    `defaults` are the values of options that are not set; options without one have `None`.
    """
    known = defaults or {}
    listed = [
        inspect.Parameter(name, _KEYWORD, default=known.get(name), annotation=_source(annotation))
        for name, annotation in options.__annotations__.items()
    ]

    def show(function: F) -> F:
        signature = inspect.signature(function)
        own = [
            parameter.replace(annotation=_source(parameter.annotation))
            for parameter in signature.parameters.values()
            if parameter.kind is not _VAR_KEYWORD
        ]
        shown = signature.replace(parameters=[*own, *listed], return_annotation=_source(signature.return_annotation))
        function.__signature__ = shown  # type: ignore[attr-defined]  # `inspect` reads it
        return function

    return show


def defaults_of(settings: type[Struct]) -> dict[str, object]:
    """Return the fields of a struct that have a default, with their defaults."""
    names, values = settings.__struct_fields__, settings.__struct_defaults__
    return dict(zip(names[len(names) - len(values) :], values, strict=True))


def _source(annotation: object) -> object:
    """Return a postponed annotation as its source text, any other unchanged."""
    text = getattr(annotation, "__forward_arg__", annotation)
    return Annotation(text) if isinstance(text, str) else text
