"""Cost: a client's grammar is read in steps that are linear in each thing that can be repeated in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.laws.costs import FEW, MANY, MOST, SLACK
from tests.laws.steps import Counted, steep

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def counted() -> Counted:
    return Counted()


def chain(count: int) -> list[str]:
    return [f"a{place} ::= a{place + 1}" for place in range(count)]


GRAMMARS: dict[str, Callable[[int], list[str]]] = {
    "chain-of-empty-rules": lambda count: ["root ::= a0", *chain(count), f'a{count} ::= ""'],
    "chain-backwards": lambda count: [f'a{count} ::= ""', *reversed(chain(count)), "root ::= a0"],
    "row-of-empty-rules": lambda count: [
        "root ::= " + " ".join(f"a{place}" for place in range(count)),
        *(f'a{place} ::= ""' for place in range(count)),
    ],
    "choice-of-empty-rules": lambda count: [
        "root ::= " + " | ".join(f"a{place}" for place in range(count)),
        *(f'a{place} ::= ""' for place in range(count)),
    ],
    "rows-of-one-empty-rule": lambda count: ["root ::= " + "a " * count, 'a ::= "x"?'],
    "ranges": lambda count: [
        "root ::= [" + "".join(f"\\u{4096 + 4 * place:04X}-\\u{4098 + 4 * place:04X}" for place in range(count)) + "]"
    ],
    "ranges-left-out": lambda count: [
        "root ::= [^" + "".join(f"\\u{4096 + 4 * place:04X}-\\u{4098 + 4 * place:04X}" for place in range(count)) + "]"
    ],
    "characters": lambda count: ["root ::= [" + "".join(chr(0x4E00 + 2 * place) for place in range(count)) + "]"],
    "groups": lambda count: ["root ::= " + '("a"? "b")* ' * count],
    "texts": lambda count: ["root ::= " + '"text" ' * count],
    "comments": lambda count: ["# said\n" * count, 'root ::= "a"'],
}


@pytest.mark.parametrize("shape", GRAMMARS)
def test_a_clients_grammar(counted: Counted, shape: str) -> None:
    with counted:
        module, rules = (
            counted.module("engine.grammar.client_grammar"),
            counted.module("engine.grammar.gbnf").GrammarRules,
        )
        few, many = (
            counted.cost(lambda text=text: module.translated(rules(), text))  # type: ignore[misc]
            for text in ("\n".join(GRAMMARS[shape](count)) for count in (2 * FEW, 2 * MANY))
        )
    assert steep(few, many, MOST, SLACK) == {}
