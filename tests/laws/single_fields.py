"""Each field of a struct of the canonical model, set alone: values are made from the types of the fields."""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.content import CacheMark, Opaque, Text
from xenoglot.model.context import ClearThinking, ClearToolUses, Compact, ContextManagement
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import (
    MediaOutput,
    Message,
    OutputFormat,
    Prompt,
    ProviderDefinition,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

Hint: TypeAlias = Any
"""A type as annotations write it."""

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

VALUES: Mapping[Hint, tuple[object, ...]] = {
    bool: (True, False),
    int: (11,),
    float: (0.5,),
    str: ("x",),
    tuple[str, ...]: (("x",),),
    tuple[Message, ...]: ((Message(role="user", content=(Text(text="Other"),)),),),
    tuple[Tool | HostedTool | Opaque, ...]: ((Tool(name="f", parameters=SCHEMA),),),
    dict[str, float]: ({"7": 1.5},),
    dict[str, Any]: ({"x": "y"},),
    Any: (SCHEMA,),
    CacheMark: (CacheMark(),),
    MediaOutput: (MediaOutput(modalities=("text", "image")),),
    OutputFormat: (
        OutputFormat(kind="text"),
        OutputFormat(kind="json"),
        OutputFormat(kind="json_schema", schema=SCHEMA),
    ),
    ProviderDefinition: (
        ProviderDefinition(dialect="messages", kind="bash_20250124", fields={"type": "bash_20250124", "name": "f"}),
    ),
    Prompt: (Prompt(texts=("Other",)),),
    ContextManagement: tuple(
        ContextManagement(edits=(edit,))
        for edit in (Compact(trigger_tokens=50_000), Compact(now=True), ClearToolUses(keep=3), ClearThinking(keep=1))
    ),
    Sampling: (),
    Thinking: (Thinking(mode="enabled"),),
    ToolChoice: (
        ToolChoice(mode="auto"),
        ToolChoice(mode="required"),
        ToolChoice(mode="none"),
    ),
}
"""The values to set by the type of a field; fields of the structs without a value have laws of their own."""


class Change(NamedTuple):
    """A struct with one field set: its `name`, the `value`, and the struct."""

    name: str
    value: object
    changed: Any


def changes(base: Struct, values: Mapping[str, tuple[object, ...]] | None = None) -> Iterator[Change]:
    """Yield `base` with each of its fields set to each value of its type; `values` replaces those of some fields.

    `extra` is left out: it holds what other dialects define, and has a law of its own.
    """
    hints = get_type_hints(type(base))
    for name in base.__struct_fields__:
        if name == "extra":
            continue
        given = {} if values is None else values
        for value in given[name] if name in given else values_of(hints[name]):
            if value != getattr(base, name):
                yield Change(name, value, replace(base, **{name: value}))


def values_of(hint: Hint) -> tuple[object, ...]:
    """Return values of a type; a type that is not known yet is a mistake, to be added to `VALUES`."""
    if hint in VALUES:
        return VALUES[hint]
    origin: Hint = get_origin(hint)
    if origin is Literal:
        return get_args(hint)
    if origin in (Union, UnionType):
        return tuple(value for part in get_args(hint) if part is not NoneType for value in values_of(part))
    raise KeyError(f"no value of the type {hint} is known: add one to VALUES")
