"""The pair table: its words are those of the documentation, and its examples have the features that they are about."""

from __future__ import annotations

import pytest

from tests.laws import features, fidelity
from xenoglot import dialect_registry as dialects
from xenoglot.gateway.console.fidelity.pair_table import ASKED, FATES, KEPT, PairExample, pair_table
from xenoglot.gateway.console.fidelity.request_examples import request_examples
from xenoglot.gateway.console.fidelity.response_examples import response_examples

NAMES = dialects.names()
RESPELLED = {"thinking: mode": "thinking: effort"}
"""No thinking is an effort of its own in some dialects."""


def test_features_have_the_words_of_the_documentation() -> None:
    """The page has the rows of `build/docs/fidelity.md`, in its order."""
    asked = [one.feature for one in request_examples("chat")]
    answered = [one.feature for one in response_examples("chat")]
    for found, groups in ((asked, features.ASKED), (answered, features.ANSWERED)):
        known = [name for names in groups.values() for name in names]
        assert set(found) <= set(known)
        assert len(found) == len(set(found))


def test_the_documentation_counts_the_same_fates() -> None:
    """Both have the same order of fates, and the same of them count as kept."""
    assert (FATES, set(KEPT)) == (fidelity.FATES, set(fidelity.KEPT))


def test_there_is_a_cell_for_every_two_dialects() -> None:
    assert pair_table().keys() == {(one, other) for one in NAMES for other in NAMES if one != other}


def uses(dialect: str, example: PairExample, *, after: bool) -> set[str]:
    """Return the features of a body of an example, as its dialect reads it."""
    body = example.after if after else example.before
    assert body is not None
    if example.part == "requests":
        return {use.feature for use in features.features_of_request(dialects.get(dialect).decode_request(body))}
    return {use.feature for use in features.features_of_response(dialects.get(dialect).decode_response(body))}


@pytest.mark.parametrize("client", NAMES)
def test_a_body_has_the_feature_that_it_is_about(client: str) -> None:
    """The sender's dialect reads it back; so does the receiver's, if the table calls it exact."""
    without = []
    for (one, upstream), pair in pair_table().items():
        for example in pair.examples if one == client else ():
            sender, receiver = (client, upstream) if example.part == "requests" else (upstream, client)
            for dialect, after in ((sender, False), (receiver, True)):
                if after and example.fate != FATES[0]:
                    continue
                found = uses(dialect, example, after=after)
                if found.isdisjoint({example.feature, RESPELLED.get(example.feature, "")}):
                    without.append((example.part, example.feature, sender, receiver, after))
    assert without == []


def test_what_is_no_longer_the_same_has_a_reason() -> None:
    for pair in pair_table().values():
        for one in pair.examples:
            worst = max((loss.how for loss in one.losses), key=FATES.index, default=FATES[0])
            assert (one.fate == "refused", bool(one.problem)) in {(True, True), (False, False)}
            assert one.fate in (worst, "refused")


def test_the_client_of_answers_asks_for_reasoning() -> None:
    assert ASKED.thinking is not None
