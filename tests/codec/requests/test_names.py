"""Names of tools: fitted to a limit, and put back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.requests.names import RestoreNames, fit, namespace_of, namespaces_of, qualified, read_id, spell_id
from xenoglot.codec.stage import through
from xenoglot.model.content import Opaque, Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, Event, TextDelta
from xenoglot.model.request import Request, Tool

FITTED = {
    "what-fits": ("get_weather-2", 64, "get_weather-2"),
    "at-the-limit": ("a" * 64, 64, "a" * 64),
    "pitfall-43-one-too-long": ("a" * 65, 64, "a" * 55 + "_635361c4"),
    "pitfall-43-fits-messages": ("a" * 65, 128, "a" * 65),
    "pitfall-41-dots-and-colons": ("srv.tool:x", 64, "srv_tool_x_e6b30493"),
    "pitfall-41-empty": ("", 64, "e3b0c442"),
    "pitfall-41-not-ascii": ("größe", 64, "gr__e_d353a267"),
    "C12-half-a-pair": ("\ud800", 64, "__91a681b9"),
    "pitfall-42-nine-characters": ("call.x", 9, "2865c1db"),
    "a-tiny-limit": ("call.x", 3, "286"),
}


@pytest.mark.parametrize(("name", "limit", "fitted"), [pytest.param(*case, id=key) for key, case in FITTED.items()])
def test_names(name: str, limit: int, fitted: str) -> None:
    assert fit(name, limit) == fitted


LIMITS = st.sampled_from([9, 40, 64, 128])
NAMES = st.text(max_size=140) | st.text("abc_-.:/", max_size=140)


@given(NAMES, LIMITS)
def test_a_fitted_name_is_allowed_and_stays(name: str, limit: int) -> None:
    """pitfall-41, pitfall-43: deterministic, and fitting twice changes nothing."""
    fitted = fit(name, limit)
    assert re.fullmatch(f"[a-zA-Z0-9_-]{{1,{limit}}}", fitted)
    assert fit(name, limit) == fitted
    assert fit(fitted, limit) == fitted


@given(st.text("abcXYZ019_-", min_size=1, max_size=64))
def test_what_is_allowed_is_not_touched(name: str) -> None:
    assert fit(name, 64) == name


@given(NAMES | st.text("f_.:-x20é").map("toolu_as_".__add__))
def test_a_spelled_id_is_allowed_and_comes_back(call_id: str) -> None:
    spelled = spell_id(call_id)
    assert re.fullmatch("[a-zA-Z0-9_-]*", spelled)
    assert read_id(spelled) in {call_id, read_id(call_id)}
    assert spell_id(read_id(spelled)) == spelled


@pytest.mark.parametrize(
    ("call_id", "spelled"),
    [
        pytest.param("functions.f_g:0", "toolu_as_functions_2ef__g_3a0", id="findings-C6-Kimi"),
        pytest.param("call_1|fc-é", "toolu_as_call__1_7cfc-_c3_a9", id="two ids in one"),
        pytest.param("toolu_01A-b_", "toolu_01A-b_", id="what fits"),
        pytest.param("", "", id="none"),
    ],
)
def test_ids_of_calls(call_id: str, spelled: str) -> None:
    assert (spell_id(call_id), read_id(spelled)) == (spelled, call_id)


@pytest.mark.parametrize("call_id", ["toolu_as_", "toolu_as_a_b", "toolu_as_a_2Eb", "toolu_as_ab", "toolu_as__ff"])
def test_ids_that_nobody_spelled_stay(call_id: str) -> None:
    assert read_id(call_id) == call_id


@given(st.sets(NAMES, max_size=30), LIMITS)
def test_two_names_stay_two(names: set[str], limit: int) -> None:
    assert len({fit(name, limit) for name in names}) == len(names)


def test_names_that_differ_only_behind_the_limit_stay_two() -> None:
    names = [f"{'a' * 100}{number}" for number in range(500)]  # C19: 500 tools
    assert len({fit(name, 64) for name in names}) == 500


def test_qualified_names() -> None:
    assert qualified("read", None) == "read"
    assert qualified("read", "mcp__files") == "mcp__files__read"


def request(*tools: Tool | Opaque) -> Request:
    return Request(model="m", tools=tools)


def test_the_clients_names_come_back() -> None:
    """pitfall-43, pitfall-63: names and namespaces are restored in the answer, and nothing else is touched."""
    long, short, inner = Tool(name="x" * 70), Tool(name="short"), Tool(name="read", namespace="files")
    stage = RestoreNames(request(long, short, inner, Opaque(dialect="messages", data={})), 64)
    assert bool(stage)

    def events(*calls: ToolCall) -> list[Event]:
        made: list[Event] = []
        for call in calls:
            made += [BlockStarted(part=call), ArgumentsDelta(text="{}"), BlockEnded(part=call), BlockEnded()]
        return [*made, BlockStarted(part=Text(text="x")), TextDelta(text=fit("x" * 70, 64))]

    sent = events(
        ToolCall(id="1", name=fit("x" * 70, 64)),
        ToolCall(id="2", name="short"),
        ToolCall(id="3", name="files__read"),
        ToolCall(id="4", name="unknown"),
    )
    assert list(through(sent, stage)) == events(
        ToolCall(id="1", name="x" * 70),
        ToolCall(id="2", name="short"),
        ToolCall(id="3", name="read", namespace="files"),
        ToolCall(id="4", name="unknown"),
    )


def test_where_all_names_fit_there_is_nothing_to_do() -> None:
    assert not RestoreNames(request(Tool(name="x" * 70)), 128)
    assert not RestoreNames(request(), 64)
    assert RestoreNames(request(Tool(name="x" * 70)), 64)


@pytest.mark.parametrize(
    ("spaces", "meant"),
    [((), None), (("a",), "a"), (("a", "b"), "a"), (("a", None), None), ((None,), None)],
    ids=["no-tool", "one", "two", "one-outside", "outside"],
)
def test_pitfall_63_the_tool_that_a_choice_means(spaces: tuple[str | None, ...], meant: str | None) -> None:
    tools: list[Tool | Opaque] = [Opaque(dialect="x", data={}), Tool(name="g", namespace="z")]
    assert namespace_of("f", [*tools, *(Tool(name="f", namespace=space) for space in spaces)]) == meant
    assert namespaces_of(tools) == {"g": "z"}
