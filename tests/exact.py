"""The whole of a value as text: `repr()` of a struct leaves out defaults and the middle of long texts."""

from collections.abc import Iterator

from msgspec import Struct


def exact(value: object) -> str:
    """Return a value with all its fields, in the form of a call."""
    match value:
        case Struct():
            fields = ", ".join(f"{name}={exact(getattr(value, name))}" for name in value.__struct_fields__)
            return f"{type(value).__name__}({fields})"
        case list() | tuple():
            return f"{type(value).__name__}({', '.join(map(exact, value))})"
        case dict():
            return "{" + ", ".join(f"{exact(key)}: {exact(one)}" for key, one in value.items()) + "}"
        case _:
            return repr(value)


def differences(found: object, expected: object, path: str = "") -> Iterator[str]:
    """Yield each field in which two values differ, with its path."""
    if type(found) is type(expected) and isinstance(found, Struct):
        for name in found.__struct_fields__:
            yield from differences(getattr(found, name), getattr(expected, name), f"{path}.{name}")
    elif isinstance(found, list | tuple) and isinstance(expected, list | tuple) and len(found) == len(expected):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif found != expected:
        yield f"{path or 'value'}: {exact(found)} != {exact(expected)}"
