"""Names say what they stand for: modules, packages and public classes are made of the words of the glossary."""

import re

import pytest

from tests.architecture.names import (
    GLOSSARY,
    SPEECH,
    fault,
    glossary,
    own_name,
    shared_names,
    terms,
    words,
    wrong_classes,
    wrong_modules,
)


def test_modules_are_named_in_the_words_of_the_glossary() -> None:
    assert wrong_modules() == {}


def test_public_classes_are_named_in_the_words_of_the_glossary() -> None:
    assert wrong_classes() == {}


def test_few_classes_share_a_name() -> None:
    assert shared_names() == {}


def test_the_glossary_has_each_term_once_in_order_and_no_verb_of_speech() -> None:
    found = terms(GLOSSARY.read_text(encoding="utf-8"))
    assert found == sorted(set(found), key=lambda term: re.sub("[^a-z ]", "", term))
    assert len(found) > 60
    assert set(glossary()) & SPEECH == set()


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        pytest.param("route_cache", None, id="words-of-the-glossary"),
        pytest.param("http1", None, id="digits"),
        pytest.param("routing", None, id="a-thing-in-ing"),
        pytest.param("ask_command", None, id="a-command"),
        pytest.param("tool_calls", None, id="plural"),
        pytest.param("passing", "a gerund: passing", id="gerund"),
        pytest.param("telling", "a verb of speech: telling", id="speech"),
        pytest.param("batches_asked", "a verb of speech: asked", id="speech-behind-a-word"),
        pytest.param("broom", "not in the glossary: broom", id="metaphor"),
        pytest.param("told_command_list", "a verb of speech: told", id="no-command"),
    ],
)
def test_faults_of_a_name(stem: str, expected: str | None) -> None:
    assert fault(stem, glossary()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("StreamDecoder", ["stream", "decoder"], id="camel"),
        pytest.param("HTTPServer", ["http", "server"], id="capitals-before-a-word"),
        pytest.param("SQLite", ["sqlite"], id="a-name-of-its-own"),
        pytest.param("ClientJSON", ["client", "json"], id="capitals-at-the-end"),
        pytest.param("async_", ["async"], id="underscore"),
    ],
)
def test_words_of_a_name(name: str, expected: list[str]) -> None:
    assert words(name) == expected


def test_a_package_is_named_like_a_module() -> None:
    assert own_name("xenoglot.backends.own") == "own"
