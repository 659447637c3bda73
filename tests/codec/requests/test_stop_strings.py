"""Which stop strings can be sent where."""

from __future__ import annotations

import pytest

from xenoglot.codec.requests.stop_strings import sendable_stops
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import Extra
from xenoglot.model.request import Request, Sampling

SIX = ("1", "2", "3", "4", "5", "6")


@pytest.mark.parametrize(
    ("dialect", "stops", "target", "sent"),
    [
        pytest.param("chat", None, Target(), None, id="none"),
        pytest.param("chat", (), Target(stops="ours"), None, id="an-empty-list"),
        pytest.param("responses", ("",), Target(), None, id="A3-nothing-but-an-empty-one"),
        pytest.param("chat", SIX[:4], Target(), None, id="pitfall-20-four"),
        pytest.param("chat", SIX, Target(), SIX[:4], id="pitfall-20-six"),
        pytest.param("chat", SIX, Target(stop_limit=None), None, id="a-server-without-a-limit"),
        pytest.param("chat", SIX, Target(stop_limit=1), ("1",), id="a-server-with-its-own"),
        pytest.param("completions", SIX, Target(), SIX[:4], id="completions"),
        pytest.param("llama_stack", SIX, Target(), SIX[:4], id="llama-stack"),
        pytest.param("llama_stack_completion", SIX, Target(), SIX[:4], id="llama-stack-completion"),
        pytest.param("gemini", SIX, Target(), SIX[:5], id="gemini"),
        pytest.param("ollama", SIX, Target(), None, id="ollama"),
        pytest.param("ollama_generate", SIX, Target(), None, id="ollama-generate"),
        pytest.param("messages", SIX, Target(), None, id="messages"),
        pytest.param("messages", ("a", "\n\n", "b"), Target(), ("a", "b"), id="messages-blanks"),
        pytest.param("messages", SIX, Target(stop_limit=2), SIX[:2], id="messages-with-a-limit"),
        pytest.param("responses", SIX, Target(), (), id="responses-has-no-field"),
        pytest.param("responses", SIX, Target(stop_limit=None), (), id="responses-whatever-is-known"),
        pytest.param("chat", ("a",), Target(stops="ours"), (), id="A-W3-a-server-that-ignores-them"),
    ],
)
def test_what_can_be_sent(
    dialect: str, stops: tuple[str, ...] | None, target: Target, sent: tuple[str, ...] | None
) -> None:
    request = Request(model="m", sampling=Sampling(stop=stops))
    assert sendable_stops(request, get(dialect), target) == sent


@pytest.mark.parametrize(
    ("dialect", "stops", "target", "sent"),
    [
        pytest.param("chat", SIX, Target(), None, id="as-it-came"),
        pytest.param("messages", ("\n",), Target(), None, id="blanks-as-they-came"),
        pytest.param("chat", SIX, Target(stop_limit=5), SIX[:5], id="known-better"),
        pytest.param("chat", SIX, Target(stops="ours"), (), id="A-W3-ours"),
    ],
)
def test_what_came_in_the_same_dialect(
    dialect: str, stops: tuple[str, ...], target: Target, sent: tuple[str, ...] | None
) -> None:
    request = Request(model="m", sampling=Sampling(stop=stops), extra=Extra(dialect=dialect))
    assert sendable_stops(request, get(dialect), target) == sent
