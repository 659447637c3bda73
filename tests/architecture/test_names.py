"""Names say what they stand for: modules, packages and public classes are made of the words of the glossary.

What does not follow it yet stands in `names_allowed.toml` with its new name. That file may only get shorter: a module
that is renamed or removed leaves it, and nothing enters it.
"""

import re

import pytest

from tests.architecture.allowances import COMMAND, NAMES, read
from tests.architecture.names import (
    GLOSSARY,
    SPEECH,
    fault,
    glossary,
    own_name,
    public_classes,
    shared_names,
    terms,
    unknown,
    words,
    wrong_classes,
    wrong_modules,
)
from tests.architecture.tree import MODULES

LISTED = read(NAMES)
RENAMED: dict[str, str] = LISTED.get("modules", {})
CLASSES: dict[str, str] = LISTED.get("classes", {})


def test_modules_are_named_in_the_words_of_the_glossary() -> None:
    assert {module: why for module, why in wrong_modules().items() if module not in RENAMED} == {}, COMMAND


def test_public_classes_are_named_in_the_words_of_the_glossary() -> None:
    assert {name: why for name, why in wrong_classes().items() if name not in CLASSES} == {}, COMMAND


def test_nothing_is_allowed_that_needs_no_allowance() -> None:
    """A listed name still exists, and its words are wrong, or it has another name to come."""
    modules = [module for module, new in RENAMED.items() if module not in MODULES or new == module]
    modules += [module for module, new in RENAMED.items() if not new and module not in wrong_modules()]
    classes = [name for name, new in CLASSES.items() if name not in public_classes() or new == name]
    classes += [name for name, new in CLASSES.items() if not new and name not in wrong_classes()]
    assert (modules, classes) == ([], []), COMMAND


def test_names_shared_by_many_classes_are_those_allowed() -> None:
    assert shared_names() == LISTED.get("owners", {}), COMMAND


def test_new_names_of_modules_follow_the_glossary() -> None:
    parts = {part for new in RENAMED.values() for part in new.split(".") if part}
    assert {part: fault(part, glossary()) for part in parts if fault(part, glossary())} == {}


def test_new_names_of_classes_follow_the_glossary() -> None:
    assert {new: unknown(new, glossary()) for new in CLASSES.values() if unknown(new, glossary())} == {}


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
