"""The registry of dialects: found by entry points, so that others can add theirs."""

import pytest

from xenoglot.codec.dialect import Dialect, get, names
from xenoglot.errors import ConfigurationError

RELEASED = (
    "chat",
    "completions",
    "gemini",
    "llama_stack",
    "llama_stack_completion",
    "messages",
    "ollama",
    "ollama_generate",
    "responses",
)


def test_the_dialects_of_this_release() -> None:
    assert names() == RELEASED


@pytest.mark.parametrize("name", RELEASED)
def test_a_dialect_is_known_by_its_name(name: str) -> None:
    dialect = get(name)
    assert isinstance(dialect, Dialect)
    assert dialect.name == name
    assert get(name) is dialect


def test_an_unknown_dialect_says_which_there_are() -> None:
    with pytest.raises(ConfigurationError) as caught:
        get("latin")
    assert str(caught.value) == f"there is no dialect `latin`; installed: {', '.join(RELEASED)}"
