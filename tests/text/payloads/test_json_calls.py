"""Calls in JSON: every spelling of an object, lists of them, names with an object behind; read at every cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.syntax import CallSyntax, Syntax

if TYPE_CHECKING:
    from tests.text.vectors import Made
    from xenoglot.text.syntax import Payload

CITY: Final = '{"city": "Paris"}'
WEATHER: Final[Made] = {"call": "get_weather", "arguments": CITY}
NOW: Final[Made] = {"call": "now", "arguments": "{}"}


def read(payload: Payload, text: str, *, marked: bool = True) -> tuple[list[Made], list[str]]:
    """Return what is made of `text`, between markers or bare, and what of it was lost; at every cut."""
    form = CallSyntax(open=("<c>",), close=("</c>",), payload=payload) if marked else CallSyntax(payload=payload)
    row = Syntax(name="ours", title="Ours", source="", calls=(form,))
    whole = f"<c>{text}</c>" if marked else text
    outcome = made(row, declared(), [whole])
    for place in range(len(whole)):
        assert made(row, declared(), [whole[:place], whole[place:]]) == outcome
    parts = [
        {"text": part["text"].removeprefix("<c>").removesuffix("</c>")} if "text" in part else part
        for part in outcome.parts
    ]
    return parts, [what for _, what, _ in outcome.losses]


OBJECTS: Final = {
    "plain": ('{"name": "get_weather", "arguments": ' + CITY + "}", [WEATHER], []),
    "compact": ('{"name":"get_weather","arguments":' + CITY + "}", [WEATHER], []),
    "blanks": (' \n{ "name" : "get_weather" ,\n "arguments" : ' + CITY + " } ", [WEATHER], []),
    "parameters": ('{"name": "get_weather", "parameters": ' + CITY + "}", [WEATHER], []),
    "arguments-first": ('{"arguments": ' + CITY + ', "name": "get_weather"}', [WEATHER], []),
    "escaped-name": ('{"name": "get\\u005fweather", "arguments": ' + CITY + "}", [WEATHER], []),
    "name-with-prefix": ('{"name": "functions.get_weather", "arguments": ' + CITY + "}", [WEATHER], []),
    "no-arguments": ('{"name": "now"}', [NOW], []),
    "null-arguments": ('{"name": "now", "arguments": null}', [NOW], []),
    "string-arguments": ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}', [WEATHER], []),
    "wrapped": ('{"type": "function", "function": {"name": "get_weather", "arguments": ' + CITY + "}}", [WEATHER], []),
    "with-an-id": ('{"id": "c1", "index": 0, "name": "get_weather", "arguments": ' + CITY + "}", [WEATHER], []),
    "with-more": ('{"name": "get_weather", "arguments": ' + CITY + ', "why": [1, {"a": "}"}]}', [WEATHER], ["why"]),
    "with-more-before": ('{"why": 1, "name": "get_weather", "arguments": ' + CITY + "}", [WEATHER], ["why"]),
    "second-name-lost": ('{"name": "now", "arguments": {}, "name": "add"}', [NOW], ["name"]),
    "list": ('[{"name": "get_weather", "arguments": ' + CITY + '}, {"name": "now"}]', [WEATHER, NOW], []),
    "list-with-a-comma-too-many": ('[{"name": "now"}, ]', [NOW], []),
    "list-without-end": ('[{"name": "now"}', [NOW], []),
    "objects-in-a-row": ('{"name": "now"}\n{"name": "now"}', [NOW, NOW], []),
    "brace-missing": ('{"name": "get_weather", "arguments": ' + CITY, [WEATHER], []),
    "brace-too-many": ('{"name": "now", "arguments": {}}}', [NOW], ["}"]),
    "comma-missing": ('{"name": "get_weather" "arguments": ' + CITY + "}", [WEATHER], []),
    "arguments-of-another-kind": ('{"name": "now", "arguments": [1]}', [{"call": "now", "arguments": "[1]"}], []),
    "arguments-that-are-no-json": (
        '{"name": "now", "arguments": {\'a\': None}}',
        [{"call": "now", "arguments": "{'a': None}"}],
        [],
    ),
}


@pytest.mark.parametrize(("text", "parts", "losses"), OBJECTS.values(), ids=OBJECTS.keys())
def test_objects(text: str, parts: list[Made], losses: list[str]) -> None:
    assert read(JSONCalls(), text) == (parts, losses)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}", id="no-name"),
        pytest.param('{"name": 1}', id="a-name-that-is-none"),
        pytest.param('{"name": null, "arguments": {}}', id="null"),
        pytest.param('{"name": "", "arguments": {}}', id="an-empty-name"),
        pytest.param('{"name": "ghost", "arguments": {"a": [1, "x"]}}', id="A-W10-undeclared"),
        pytest.param('{"arguments": {}, "name": "ghost"}', id="A-W10-undeclared-at-the-end"),
        pytest.param('{"why": 1, "name": "ghost"}', id="undeclared-with-more"),
        pytest.param("{'name': 'now'}", id="L-W15-single-quotes"),
        pytest.param("[1]", id="a-list-of-another-kind"),
        pytest.param("now", id="no-object"),
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert read(JSONCalls(), text) == ([{"text": text}], [])


@pytest.mark.parametrize("text", ["", "[]", "[ ]"])
def test_no_call_says_nothing(text: str) -> None:
    assert read(JSONCalls(), text) == ([], [])


STRICT: Final = {
    "a-call": ('{"name": "get_weather", "arguments": ' + CITY + "}", [WEATHER]),
    "silent-fields-first": ('{"type": "function", "name": "now", "arguments": {}}', [NOW]),
    "A-W10-data": ('{"city": "Paris", "name": "now"}', None),
    "A-W10-undeclared": ('{"name": "ghost", "arguments": {}}', None),
    "a-list-of-data": ('["now"]', None),
}


@pytest.mark.parametrize(("text", "parts"), STRICT.values(), ids=STRICT.keys())
def test_without_a_marker(text: str, parts: list[Made] | None) -> None:
    assert read(JSONCalls(strict=True), text, marked=False) == (parts or [{"text": text}], [])


KEYED: Final = {
    "one": ('{"get_weather": ' + CITY + "}", [WEATHER]),
    "list": ('[{"get_weather": ' + CITY + '}, {"now": {}}]', [WEATHER, NOW]),
    "undeclared": ('{"ghost": {}}', None),
}


@pytest.mark.parametrize(("text", "parts"), KEYED.values(), ids=KEYED.keys())
def test_objects_with_the_name_as_key(text: str, parts: list[Made] | None) -> None:
    assert read(JSONCalls(keyed=True), text) == (parts or [{"text": text}], [])


NAMED: Final = {
    "bare": (Named(), f"get_weather {CITY}", [WEATHER]),
    "bare-line-break": (Named(), f"get_weather\n{CITY}", [WEATHER]),
    "bare-together": (Named(), f"get_weather{CITY}", [WEATHER]),
    "bare-no-object": (Named(), "get_weather Paris", None),
    "infix": (Named(infix=("[ARGS]",)), f"get_weather[ARGS]{CITY}", [WEATHER]),
    "infix-missing": (Named(infix=("[ARGS]",)), f"get_weather{CITY}", None),
    "mark": (Named(infix=("[ARGS]",), mark=("[ID]",)), f"get_weather[ID]c1[ARGS]{CITY}", [{**WEATHER, "id": "c1"}]),
    "prefix": (Named(prefix=("fn:",)), f"fn:get_weather {CITY}", [WEATHER]),
    "prefix-missing": (Named(prefix=("fn:",)), f"get_weather {CITY}", None),
    "suffix": (Named(suffix=("!",)), f"get_weather {CITY}!", [WEATHER]),
    "numbered": (Named(infix=("|",)), f"functions.get_weather:0|{CITY}", [WEATHER]),
    "numbered-id": (
        Named(infix=("|",), spelled="functions.{name}:{number}"),
        f"functions.get_weather:0|{CITY}",
        [{**WEATHER, "id": "functions.get_weather:0"}],
    ),
    "undeclared": (Named(), "ghost {}", None),
    "nothing": (Named(), "{}", None),
}


@pytest.mark.parametrize(("payload", "text", "parts"), NAMED.values(), ids=NAMED.keys())
def test_names_with_an_object_behind(payload: Named, text: str, parts: list[Made] | None) -> None:
    assert read(payload, text) == (parts or [{"text": text}], [])


VALUES = st.dictionaries(st.text(max_size=6), st.text(max_size=12) | st.integers() | st.none(), max_size=3)


@given(
    st.sampled_from([JSONCalls(), JSONCalls(listed=True), JSONCalls(keyed=True), Named(), Named(infix=("[ARGS]",))]),
    VALUES,
)
def test_what_is_written_is_read(payload: Payload, values: dict[str, object]) -> None:
    arguments = json.dumps(values, ensure_ascii=False)
    (text,) = payload.write([("search", arguments)])
    form = CallSyntax(open=("<c>",), close=("</c>",), payload=payload)
    row = Syntax(name="ours", title="Ours", source="", calls=(form,))
    outcome = made(row, declared(), [f"<c>{text}</c>"])
    assert outcome.parts == [{"call": "search", "arguments": arguments}]


def test_lists_are_written_as_one() -> None:
    calls = [("now", ""), ("add", '{"a": 1}')]
    assert JSONCalls(listed=True).write(calls) == [
        '[{"name": "now", "arguments": {}}, {"name": "add", "arguments": {"a": 1}}]'
    ]
    assert JSONCalls(keyed=True).write(calls) == ['{"now": {}}', '{"add": {"a": 1}}']


def test_a_name_that_has_a_number_is_written_as_it_is() -> None:
    payload = Named(infix=("|",), spelled="functions.{name}:{number}")
    assert payload.write([("now", "{}"), ("functions.now:7", "{}")]) == ["functions.now:0|{}", "functions.now:7|{}"]
