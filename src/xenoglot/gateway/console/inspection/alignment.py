"""Alignment of two JSON documents by meaning: which value of one is which value of the other.

Theory of operation. The values of both documents are listed in document order, and matched in four passes, each of
which sees only what those before it left over:

1. equal values under the same name, if both documents have as many of them,
2. equal values: the first with the first, the second with the second,
3. fields outside of lists, by their canonical names (`max_completion_tokens` and `generationConfig.maxOutputTokens`),
4. other single values under the same canonical name, if both documents have as many (`stop` and `end_turn`).

Values are equal if they have the same meaning: a text with JSON and the object in it (arguments of tool calls), a data
URL and its content. Every pass visits each value once, and an object is compared by a hash that is made of those of
its fields, so the work is linear in the size of the documents, which are at most as deep as the JSON reader allows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from xenoglot.model.json import JSON

Path: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes from the root of a document to a value."""

DEEPEST_FIELD: Final = 3
"""How many names the path of a field of a table has at most: `usage.prompt_tokens_details.cached_tokens`."""
BASE64: Final = ";base64,"


class Node(NamedTuple):
    """A value of a document. `key` is its name, or that of the list it is in; `meaning` is equal for equal values."""

    path: Path
    key: str
    value: JSON
    meaning: Hashable

    @property
    def is_leaf(self) -> bool:
        """Whether it has no values in it."""
        return not isinstance(self.value, dict | list)

    @property
    def in_list(self) -> bool:
        """Whether it is somewhere in a list."""
        return any(isinstance(part, int) for part in self.path)


Key: TypeAlias = "Callable[[Node, Mapping[str, str]], Hashable]"
"""Returns what a node is matched by, `None` for no match; the mapping has canonical names of the dialect."""


def nodes(document: JSON) -> list[Node]:
    """Return the values of a document below its root, in document order."""
    found: list[Node] = []
    meanings: dict[int, Hashable] = {}
    waiting: list[tuple[Path, str, JSON]] = [((), "", document)]
    while waiting:
        path, key, value = waiting.pop()
        found.append(Node(path, key, value, None))
        waiting += reversed([((*path, part), name, one) for part, name, one in _parts(value, key)])
    for index in range(len(found) - 1, -1, -1):  # what is in a container comes after it
        node = found[index]
        meaning = meanings[id(node.value)] = _meaning(node.value, meanings)
        found[index] = node._replace(meaning=meaning)
    return found[1:]


def align(
    left: Sequence[Node], right: Sequence[Node], left_names: Mapping[str, str], right_names: Mapping[str, str]
) -> list[tuple[Path, Path]]:
    """Return the paths of values that are the same in both documents, in the order of the first one.

    `left_names` and `right_names` are canonical names of fields (`field_names`).
    """
    pairs: list[tuple[Path, Path]] = []
    rest = (list(left), list(right))
    for key, same_number in _PASSES:
        found = list(_matched(rest, (left_names, right_names), key, same_number=same_number))
        pairs += [(one.path, other.path) for one, other in found]
        taken = ({one.path for one, _ in found}, {other.path for _, other in found})
        rest = (
            [node for node in rest[0] if node.path not in taken[0]],
            [node for node in rest[1] if node.path not in taken[1]],
        )
    order = {node.path: place for place, node in enumerate(left)}
    return sorted(pairs, key=lambda pair: order[pair[0]])


def _matched(
    both: tuple[list[Node], list[Node]],
    names: tuple[Mapping[str, str], Mapping[str, str]],
    key: Key,
    *,
    same_number: bool,
) -> Iterator[tuple[Node, Node]]:
    """Yield nodes with equal keys: the first of each key with the first of the other document, and so on."""
    groups: tuple[dict[Hashable, list[Node]], dict[Hashable, list[Node]]] = (defaultdict(list), defaultdict(list))
    for side in (0, 1):
        for node in both[side]:
            if (found := key(node, names[side])) is not None:
                groups[side][found].append(node)
    for found, some in groups[0].items():
        others = groups[1].get(found, [])
        if not same_number or len(some) == len(others):
            yield from zip(some, others, strict=False)


def _field(node: Node, names: Mapping[str, str]) -> Hashable:
    deepest = DEEPEST_FIELD if node.key in names else 1
    if len(node.path) > deepest or node.in_list:
        return None
    return names.get(node.key, node.key), node.is_leaf


def _named_value(node: Node, names: Mapping[str, str]) -> Hashable:
    return None if node.meaning is None else (names.get(node.key, node.key), node.meaning)


def _equal_value(node: Node, names: Mapping[str, str]) -> Hashable:
    if isinstance(node.value, str | dict | list):
        return node.meaning
    return _named_value(node, names)  # numbers and flags are equal by chance


def _same_name(node: Node, names: Mapping[str, str]) -> Hashable:
    return names.get(node.key, node.key) if node.is_leaf else None


_PASSES: Final[tuple[tuple[Key, bool], ...]] = (
    (_named_value, True),
    (_equal_value, False),
    (_field, True),
    (_same_name, True),
)


def _parts(value: JSON, key: str) -> Iterator[tuple[str | int, str, JSON]]:
    """Yield the values in a container: where they are, their names, and what they are."""
    if isinstance(value, dict):
        yield from ((name, name, one) for name, one in value.items())
    elif isinstance(value, list):
        yield from ((index, key, one) for index, one in enumerate(value))


def _meaning(value: JSON, known: Mapping[int, Hashable]) -> Hashable:
    """Return what is equal for values with the same meaning; `None` for empty ones."""
    if isinstance(value, dict):
        return hash(frozenset((name, known[id(one)]) for name, one in value.items())) if value else None
    if isinstance(value, list):
        return hash(tuple(known[id(one)] for one in value)) if value else None
    if isinstance(value, str):
        return _text_meaning(value)
    return None if value is None else (type(value).__name__, value)


def _text_meaning(text: str) -> Hashable:
    if text.startswith(("{", "[")):
        try:
            inner = decode_json(text.encode("utf-8", "replace"))
        except WireError:
            return text
        if isinstance(inner, dict | list) and inner:
            return _document_meaning(inner)
    if text.startswith("data:") and BASE64 in text:
        return text.partition(BASE64)[2]
    return text or None


def _document_meaning(document: JSON) -> Hashable:
    """Return what a document means; a text in it is taken as it is, so that the work stays linear."""
    waiting, ordered = [document], []
    while waiting:
        value = waiting.pop()
        ordered.append(value)
        waiting += [one for _, _, one in _parts(value, "")]
    known: dict[int, Hashable] = {}
    for value in reversed(ordered):
        known[id(value)] = (value or None) if isinstance(value, str) else _meaning(value, known)
    return known[id(document)]
