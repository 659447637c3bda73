"""Random cuttings of bytes, and random damage to JSON."""

from collections.abc import Callable

from hypothesis import strategies as st

from xenoglot.model.json import JSON


@st.composite
def cuttings(draw: st.DrawFn, data: bytes, most: int = 8) -> list[bytes]:
    """Return `data` in pieces, cut anywhere."""
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=most)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


WRONG: tuple[JSON, ...] = (None, True, 0, -1, 2**70, 1.5, "", "x", [], [None], [[]], {}, {"type": "x"}, [{"type": "x"}])
"""A value of each type, and some that stand in the way."""


@st.composite
def mutations(draw: st.DrawFn, value: JSON) -> JSON:
    """Return `value` with one place of it dropped, replaced by something else, or doubled."""
    paths = list(places(value))
    path = draw(st.sampled_from(paths))
    wrong = draw(st.sampled_from(WRONG))
    actions: list[Callable[[JSON, str | int], None]] = [_drop, _double, lambda inside, key: _put(inside, key, wrong)]
    return changed(value, path, draw(st.sampled_from(actions))) if path else wrong


def places(value: JSON, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the way to every value inside `value`, itself first."""
    found = [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        found += places(item, (*path, key))
    return found


def changed(value: JSON, path: tuple[str | int, ...], action: Callable[[JSON, str | int], None]) -> JSON:
    """Return a copy of `value` in which `action` was done at `path`."""
    copied = value.copy()
    if len(path) == 1:
        action(copied, path[0])
    else:
        copied[path[0]] = changed(copied[path[0]], path[1:], action)
    return copied


def _put(inside: JSON, key: str | int, value: JSON) -> None:
    inside[key] = value


def _drop(inside: JSON, key: str | int) -> None:
    del inside[key]


def _double(inside: JSON, key: str | int) -> None:
    if isinstance(inside, list):
        inside.append(inside[int(key)])
    else:
        inside[f"{key}x"] = inside[str(key)]
