"""Whether a text is of a grammar's language: a reader of the notation that follows all ways at once."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tests.engine.grammar.derive import TOKEN, class_ranges, plain


class Characters(Struct, frozen=True):
    """One character of these ranges."""

    ranges: tuple[tuple[int, int], ...]


class Rule(Struct, frozen=True):
    """What the rule of this name lets pass."""

    name: str


class Alternatives(Struct, frozen=True):
    """One of these."""

    ways: tuple[Row, ...]


class Times(Struct, frozen=True):
    """An item, at least and at most so often."""

    item: Item
    least: int
    most: int


Item: TypeAlias = Characters | Rule | Alternatives | Times
Row: TypeAlias = tuple[Item, ...]


def matches(grammar: str, text: str) -> bool:
    """Return whether the grammar, in the notation of `grammar.gbnf`, lets `text` pass."""
    rules = {name: _read(body) for name, _, body in (line.partition(" ::= ") for line in grammar.splitlines())}
    stacks = _ready(rules, {(Rule("root"),)})
    for code in map(ord, text):
        stacks = _ready(rules, {stack[1:] for stack in stacks if stack and _takes(stack[0], code)})
    return () in stacks


def _takes(item: Item, code: int) -> bool:
    return isinstance(item, Characters) and any(low <= code <= high for low, high in item.ranges)


def _ready(rules: dict[str, Alternatives], stacks: set[Row]) -> set[Row]:
    """Return what the stacks come to before the next character."""
    waiting, seen = list(stacks), set(stacks)
    while waiting:
        stack = waiting.pop()
        for way in _alternatives(rules, stack[0]) if stack else ():
            if (new := (*way, *stack[1:])) not in seen:
                seen.add(new)
                waiting.append(new)
    return {stack for stack in seen if not stack or isinstance(stack[0], Characters)}


def _alternatives(rules: dict[str, Alternatives], item: Item) -> tuple[Row, ...]:
    match item:
        case Rule(name=name):
            return rules[name].ways
        case Alternatives(ways=ways):
            return ways
        case Times(item=once, least=least, most=most):
            again: Row = (once, Times(once, max(0, least - 1), most - 1))
            return ((),) if not most else (again,) if least else ((), again)
        case Characters():
            return ()


def _read(body: str) -> Alternatives:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(body.rstrip()):
        match = TOKEN.match(body, at)
        assert match is not None, body[at : at + 40]
        assert match.lastgroup is not None
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    found = _either(tokens)
    assert not tokens, body
    return found


def _either(tokens: list[tuple[str, str]]) -> Alternatives:
    ways: list[list[Item]] = [[]]
    while tokens and tokens[0][1] != ")":
        kind, token = tokens.pop(0)
        match kind, token:
            case "mark", "|":
                ways.append([])
            case "mark", "(":
                ways[-1].append(_either(tokens))
                tokens.pop(0)
            case "mark", "?":
                ways[-1].append(Times(ways[-1].pop(), 0, 1))
            case "times", _:
                low, _, high = token[1:-1].partition(",")
                ways[-1].append(Times(ways[-1].pop(), int(low), int(high or low)))
            case "text", _:
                ways[-1] += [Characters(((ord(one), ord(one)),)) for one in plain(token[1:-1])]
            case "chars", _:
                ways[-1].append(Characters(tuple(class_ranges(token[1:-1]))))
            case _:
                ways[-1].append(Rule(token))
    return Alternatives(tuple(map(tuple, ways)))
