"""Canonical names of the fields that dialects have, from their field tables (`codec.fields`)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MODULES: Final = ("request.fields", "usage", "finish")
"""Modules of a dialect's package that have tables."""

SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "stop_reason": "finish_reason",
        "finishReason": "finish_reason",
        "done_reason": "finish_reason",
        "stopReason": "finish_reason",
        "responseId": "id",
        "modelVersion": "model",
        "created_at": "created",
        "thinkingLevel": "effort",
        "thinking_level": "effort",
        "prompt_tokens": "input_tokens",
        "completion_tokens": "output_tokens",
        "cached_tokens": "cache_read",
        "total_tokens": "total",
        "totalTokens": "total",
        "totalTokenCount": "total",
        "cache_control": "cache",
        "tool_use_id": "tool_call_id",
        "call_id": "tool_call_id",
        "input_schema": "parameters",
        "parametersJsonSchema": "parameters",
    }
)
"""Fields that no table has, by the name that another dialect gives to the same."""


@cache
def field_names(package: str) -> Mapping[str, str]:
    """Return our name of each field of a dialect, by the last part of its name on the wire.

    `package` is the module that defines the dialect; a dialect without tables has none but those in `SAME`.
    """
    names: dict[str, str] = dict(SAME)
    for table in _tables(package):
        for row in table.documented():
            for key in row.keys:
                names.setdefault(key.rpartition(".")[2], row.name)
    return MappingProxyType(names)


def _tables(package: str) -> Iterator[Fields]:
    for name in MODULES:
        try:
            module = import_module(f"{package}.{name}")
        except ModuleNotFoundError:
            continue
        yield from (value for value in vars(module).values() if isinstance(value, Fields))
