"""Grammars for output formats other than JSON: choices, regular expressions and a client's own grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.invalid_request import refused
from xenoglot.engine.grammar.ambiguity import too_ambiguous
from xenoglot.engine.grammar.client_grammar import ClientGrammarError, translated
from xenoglot.engine.grammar.gbnf import GrammarTooLargeError, either, literal
from xenoglot.engine.grammar.patterns import Bounds, PatternError, translate

if TYPE_CHECKING:
    from xenoglot.engine.extras import Demand
    from xenoglot.engine.grammar.gbnf import GrammarRules

MOST_CHOICES: Final = 256
LONGEST_CHOICES: Final = 64 * 1024
"""Characters of all choices together."""

AMBIGUOUS: Final = "too much in it can begin alike: the runtime would follow all of it at once"


def format_expression(rules: GrammarRules, demand: Demand) -> str:
    """Return the expression for the form that a request demands.

    Raises:
        FailureError: it is wrong, too large or too ambiguous for the runtime.
    """
    try:
        root = rules.add(_expression(rules, demand))
    except (PatternError, ClientGrammarError) as error:
        raise refused(demand.path, str(error)) from None
    except GrammarTooLargeError:
        raise refused(demand.path, "too large for the embedded model") from None
    if too_ambiguous(rules.bodies, root):
        raise refused(demand.path, AMBIGUOUS)
    return root


def _expression(rules: GrammarRules, demand: Demand) -> str:
    match demand.kind, demand.value:
        case "regex", str(pattern):
            return translate(pattern, Bounds(), plain=True).text
        case "grammar", str(text):
            return translated(rules, text)
        case _, choices:
            if len(choices) > MOST_CHOICES or sum(map(len, choices)) > LONGEST_CHOICES:
                raise GrammarTooLargeError
            return either(map(literal, choices))
