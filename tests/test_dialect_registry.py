"""The registry of dialects: found by entry points, so that others can add theirs."""

import pytest

from xenoglot import dialect_registry
from xenoglot.codec import dialect
from xenoglot.codec.dialect import Dialect
from xenoglot.dialect_registry import get, names
from xenoglot.errors import ConfigurationError

RELEASED = (
    "chat",
    "completions",
    "converse",
    "gemini",
    "interactions",
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
    found = get(name)
    assert isinstance(found, Dialect)
    assert found.name == name
    assert get(name) is found


def test_an_unknown_dialect_says_which_there_are() -> None:
    with pytest.raises(ConfigurationError) as caught:
        get("latin")
    assert str(caught.value) == f"there is no dialect `latin`; installed: {', '.join(RELEASED)}"


@pytest.mark.parametrize("name", ["get", "names"])
def test_the_former_place_warns(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"moved to `xenoglot.dialect_registry.{name}`"):
        found = getattr(dialect, name)
    assert found is getattr(dialect_registry, name)


def test_the_former_place_has_nothing_else() -> None:
    with pytest.raises(AttributeError, match="no attribute `entries`"):
        getattr(dialect, "entries")  # noqa: B009  a type checker does not know it


@pytest.mark.parametrize(
    ("other", "name"), [("openai", "chat"), ("anthropic", "messages"), ("claude", "messages"), ("google", "gemini")]
)
def test_other_names_of_dialects(other: str, name: str) -> None:
    assert get(other) is get(name)
    assert dialect_registry.canonical(other) == dialect_registry.argument(other) == name
    assert other not in names()


@pytest.mark.parametrize(("wrong", "near"), [("massages", "messages"), ("opnai", "openai"), ("gemni", "gemini")])
def test_a_misspelt_dialect_has_a_suggestion(wrong: str, near: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        get(wrong)
    assert str(caught.value) == f"there is no dialect `{wrong}`; did you mean `{near}`?"
