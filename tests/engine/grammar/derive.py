"""Texts that a grammar lets pass, drawn by chance: a reader of the notation that derives instead of matching."""

import random
import re
from collections.abc import Callable

TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<chars>\[(?:[^\]\\]|\\.)+\])
    | (?P<times>\{\d+,\d+\}|\{\d+\})
    | (?P<mark>[()|?])
    | (?P<name>[a-z][a-z0-9]*)
    )""",
    re.VERBOSE,
)
ESCAPE = re.compile(r"\\(?:x([0-9A-F]{2})|U([0-9A-F]{8})|(.))")

Derive = Callable[[random.Random, int], str]


class Grammar:
    """A grammar in the notation of `grammar.gbnf`, ready to make texts."""

    def __init__(self, text: str) -> None:
        self._rules: dict[str, Derive] = {}
        for line in text.splitlines():
            name, _, body = line.partition(" ::= ")
            self._rules[name] = Parser(body, self._rule).whole()

    def derive(self, seed: int) -> str:
        """Return one text of the grammar's language; the same one for the same seed."""
        return self._rules["root"](random.Random(seed), 0)  # noqa: S311 (no secret)

    def _rule(self, name: str, chance: random.Random, depth: int) -> str:
        return self._rules[name](chance, depth + 1)


class Parser:
    """Reads one expression."""

    def __init__(self, body: str, rule: Callable[[str, random.Random, int], str]) -> None:
        self._body = body
        self._rule = rule
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(body.rstrip()):
            match = TOKEN.match(body, at)
            assert match is not None, body[at : at + 40]
            assert match.lastgroup is not None
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()

    def whole(self) -> Derive:
        """Return the derivation of the whole expression."""
        found = self._either()
        assert not self._tokens, self._body
        return found

    def _either(self) -> Derive:
        branches = [self._sequence()]
        while self._tokens and self._tokens[0][1] == "|":
            self._tokens.pop(0)
            branches.append(self._sequence())
        # deep inside, the last branch is taken: in our grammars it is the one that leads out
        return lambda chance, depth: (branches[-1] if depth > 12 else chance.choice(branches))(chance, depth)

    def _sequence(self) -> Derive:
        items: list[Derive] = []
        while self._tokens and self._tokens[0][1] not in {"|", ")"}:
            item = self._item(*self._tokens.pop(0))
            if self._tokens and (self._tokens[0][0] == "times" or self._tokens[0][1] == "?"):
                item = repeated(item, self._tokens.pop(0)[1])
            items.append(item)
        assert items, self._body
        return lambda chance, depth: "".join([item(chance, depth) for item in items])

    def _item(self, kind: str, token: str) -> Derive:
        if kind == "text":
            text = plain(token[1:-1])
            return lambda _chance, _depth: text
        if kind == "chars":
            ranges = class_ranges(token[1:-1])
            return lambda chance, _depth: one_of(ranges, chance)
        if token == "(":
            inside = self._either()
            assert self._tokens.pop(0)[1] == ")", self._body
            return inside
        return lambda chance, depth: self._rule(token, chance, depth)


def repeated(item: Derive, times: str) -> Derive:
    """Return the derivation of `item`, as often as `{1,3}`, `{2}` or `?` says; rather seldom than often."""
    low, _, high = "0,1".partition(",") if times == "?" else times[1:-1].partition(",")
    least, most = int(low), int(high or low)

    def derive(chance: random.Random, depth: int) -> str:
        top = chance.choice((least, min(most, least + 3), most if depth < 3 else least))
        return "".join([item(chance, depth) for _ in range(chance.randint(least, top))])

    return derive


def plain(text: str) -> str:
    """Return the text without its escapes."""
    return ESCAPE.sub(lambda match: match[3] or chr(int(match[1] or match[2], 16)), text)


def class_ranges(text: str) -> list[tuple[int, int]]:
    """Return the code points of a class."""
    items = re.findall(r"(\\x..|\\U........|[^\\])(?:-(\\x..|\\U........|[^\\]))?", text)
    return [(ord(plain(first)), ord(plain(last or first))) for first, last in items]


def one_of(ranges: list[tuple[int, int]], chance: random.Random) -> str:
    """Return a character of the ranges; each range is as likely as another."""
    return chr(chance.randint(*chance.choice(ranges)))
