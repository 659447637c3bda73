"""Harmless losses: which are, how they are summarized, and that the policy and reports treat them as any other."""

import pytest

from tests.architecture.tree import ROOT
from xenoglot.codec.loss import HARMLESS, HarmlessLoss, Loss, Losses, divide, is_harmless, summary, table
from xenoglot.errors import LossError

CACHE = Loss("$.messages[0].content[0]", "cache", "dropped", "the server decides what it caches")
BETA = Loss("$", "header anthropic-beta", "dropped", "only messages has it")
SEED = Loss("$.sampling", "seed", "dropped", "the dialect has no such field")


@pytest.mark.parametrize("kind", [pytest.param(kind, id=f"{kind.what}-{kind.how}") for kind in HARMLESS])
def test_each_kind_has_its_row(kind: HarmlessLoss) -> None:
    page = (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")
    assert is_harmless(Loss("$", kind.what, kind.how, kind.why or "any"))
    assert f"| `{kind.what}` | {kind.how} | {kind.reason} |" in page


@pytest.mark.parametrize(
    "loss",
    [
        SEED,
        Loss("$.messages[0]", "name", "dropped", "a message has none"),
        Loss("$.messages[0]", "content", "approximated", "the result of no call before it is written as text"),
        Loss("$.messages[0].content[0]", "signature", "dropped", "only its maker can open it"),
        Loss("$", "header x-other", "dropped", "only messages has it"),
    ],
    ids=lambda loss: loss.what,
)
def test_all_others_matter(loss: Loss) -> None:
    assert not is_harmless(loss)


def test_they_are_divided_in_order() -> None:
    assert divide([CACHE, SEED, BETA]) == ([SEED], [CACHE, BETA])


def test_the_summary_counts_each_kind() -> None:
    other = Loss("$.tools[0]", "cache", "dropped", "a tool takes no cache mark")
    assert summary([CACHE, BETA, other]) == "3 harmless: cache (2), header anthropic-beta"
    assert summary([BETA]) == "1 harmless: header anthropic-beta"
    assert summary([]) == ""


def test_a_strict_crossing_is_refused_for_them_too() -> None:
    losses = Losses(strict=True)
    losses.dropped(CACHE.where, CACHE.what, CACHE.why)
    with pytest.raises(LossError) as refused:
        losses.settle()
    assert refused.value.losses == (str(CACHE),)


def test_a_report_names_each() -> None:
    losses = Losses()
    for loss in (CACHE, SEED):
        losses.dropped(loss.where, loss.what, loss.why)
    assert [line.split()[:2] for line in table(losses)][1:] == [
        [CACHE.where, "cache"],
        ["$.sampling", "seed"],
        ["2", "losses:"],
    ]
