"""The page of what becomes of each feature: a loss is counted at the features that it affects."""

import pytest

from tests.laws.essence import Thing
from tests.laws.features import Use
from tests.laws.fidelity import Tally, blamed, fates_of
from xenoglot.codec.loss import Losses
from xenoglot.model.content import Extra, Text
from xenoglot.model.request import Message, Request

REQUEST = Request(
    model="m",
    messages=(Message(role="user", content=(Text(text="Hi", extra=Extra(dialect="alien", fields={"odd": 1})),)),),
)
WORDS = Use("text", Thing(("$.messages[0].content[0]",), b"", ("text",)))
MARK = Use("cache mark", Thing(("$.messages[0].content[0].cache",), b""))


@pytest.mark.parametrize(
    ("where", "what", "fates"),
    [
        pytest.param("$.messages[0].content[0]", "cache", {"text": "exact", "cache mark": "dropped"}, id="field"),
        pytest.param("$.messages[0].content[0]", "text", {"text": "dropped", "cache mark": "exact"}, id="words"),
        pytest.param("$.messages[0].content[0]", "Text", {"text": "dropped", "cache mark": "dropped"}, id="part"),
        pytest.param("$.messages[0].content[0]", "odd", {"text": "exact", "cache mark": "exact"}, id="unknown-field"),
        pytest.param("$.messages[0]", "odd", {"text": "exact", "cache mark": "exact"}, id="field-of-something-inside"),
        pytest.param("$.messages[0]", "role", {"text": "dropped", "cache mark": "dropped"}, id="turn"),
        pytest.param("$.messages[0]", "prefill", {"text": "exact", "cache mark": "exact"}, id="named"),
        pytest.param("$.messages", "cache", {"text": "exact", "cache mark": "dropped"}, id="some-field-of-the-turns"),
        pytest.param("$.messages", "tool result", {"text": "exact", "cache mark": "exact"}, id="mended"),
        pytest.param("$.messages", "turns", {"text": "dropped", "cache mark": "dropped"}, id="said-otherwise"),
        pytest.param("$", "user", {"text": "exact", "cache mark": "exact"}, id="elsewhere"),
    ],
)
def test_a_loss_touches_what_it_tells_of(where: str, what: str, fates: dict[str, str]) -> None:
    losses = Losses()
    losses.dropped(where, what, "why not")
    assert fates_of([WORDS, MARK], losses, REQUEST) == fates


def test_the_worst_counts() -> None:
    losses = Losses()
    losses.dropped("$.messages[0].content[0]", "cache", "why not")
    losses.approximated("$.messages[0].content[0]", "cache.ttl", "why not")
    assert fates_of([MARK], losses, REQUEST) == {"cache mark": "dropped"}
    assert Tally(["exact", "dropped", "exact"]).cell() == "`x` 1/3"
    assert Tally(["emulated", "emulated"]).cell() == "`e`"


def test_a_refusal_blames_one_feature() -> None:
    assert blamed("$.messages[0].content[0]", [WORDS, MARK]) == {"text": "refused", "cache mark": "refused"}
    assert blamed("$.cache", [WORDS, MARK]) == {"cache mark": "refused"}
    assert blamed("$.tools", [WORDS, MARK]) == {"the request as a whole": "refused"}
