"""What the answer may be, by the tools, the choice of them, and the form of the output."""

import pytest
from msgspec.structs import replace

from tests.engine.grammar.derive import Grammar
from tests.engine.grammar.match import matches
from tests.engine.shared_engine import call_of, message_of
from xenoglot.backends.backend import Call
from xenoglot.codec.loss import Loss, Losses
from xenoglot.engine.decoding.tool_calls import Branch
from xenoglot.engine.prompting.call_formats import form_of
from xenoglot.engine.prompting.constrain import MOST_CALLS, MOST_UNTAUGHT_CALLS, Constraint, constrain
from xenoglot.engine.server.model_traits import UNTAUGHT, ModelTraits
from xenoglot.errors import FailureError
from xenoglot.model.content import Opaque, ToolResult
from xenoglot.model.request import OutputFormat, Tool, ToolChoice
from xenoglot.text import registry
from xenoglot.text.syntax import ReasoningSyntax

CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
WEATHER = Tool(name="weather", description="The weather", parameters=CITY)
CLOCK = Tool(name="clock")
SHELL = Tool(name="shell", kind="custom")
REQUIRED = ToolChoice(mode="required")
NAMED, BOTH = (ToolChoice(mode="required", names=names) for names in (("clock",), ("clock", "weather")))
SCHEMA = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]}
FORM = OutputFormat(kind="json_schema", schema=SCHEMA)

CALLS = {'{"name": "weather", "arguments": {"city": "Paris"}}', '{"name": "weather", "arguments": {"city": "Rome"}}'}
TIME = {'{"name": "clock", "arguments": {}}'}


def held(call: Call, manner: ModelTraits = UNTAUGHT) -> Constraint:
    constraint = constrain(call.request, call.losses, manner)
    assert constraint is not None
    return constraint


def texts(constraint: Constraint) -> set[str]:
    grammar = Grammar(constraint.grammar)
    return {grammar.derive(seed) for seed in range(80)}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(call_of("Hi", tools=(WEATHER, CLOCK), tool_choice=REQUIRED), CALLS | TIME, id="required"),
        pytest.param(
            call_of("Hi", tools=(WEATHER, CLOCK), tool_choice=ToolChoice(mode="required", names=("clock",))),
            TIME,
            id="named",
        ),
        pytest.param(
            call_of("Hi", tools=(WEATHER, CLOCK), tool_choice=ToolChoice(mode="auto", names=("clock",)), output=FORM),
            TIME | {'{"reply": {"ok": true}}'},
            id="auto-among-some-in-a-form",
        ),
        pytest.param(call_of("Hi", output=FORM), {'{"ok": true}'}, id="form"),
        pytest.param(
            call_of(
                "Hi",
                tools=(Tool(name="clock", parameters={"$defs": {"none": {"properties": {}}}, "$ref": "#/$defs/none"}),),
                tool_choice=REQUIRED,
            ),
            TIME,
            id="parameters-without-type",
        ),
        pytest.param(
            call_of("Hi", tools=(CLOCK,), tool_choice=ToolChoice(mode="none"), output=FORM),
            {'{"ok": true}'},
            id="form-without-tools",
        ),
        pytest.param(
            call_of("Hi", message_of("tool", ToolResult(call_id="1")), tools=(CLOCK,), output=FORM),
            {'{"ok": true}'},
            id="form-after-results",
        ),
        pytest.param(
            call_of("Hi", message_of("tool", ToolResult(call_id="1")), tools=(CLOCK,), tool_choice=REQUIRED),
            TIME,
            id="required-after-results",
        ),
    ],
)
def test_what_the_answer_may_be(call: Call, expected: set[str]) -> None:
    one = replace(call, request=replace(call.request, parallel_tool_calls=False))
    assert texts(held(one)) == expected
    assert list(call.losses) == []


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call_of("Hi"), id="nothing-said"),
        pytest.param(call_of("Hi", output=OutputFormat(kind="text")), id="text"),
        pytest.param(call_of("Hi", tools=(CLOCK,), tool_choice=ToolChoice(mode="none")), id="tools-forbidden"),
        pytest.param(
            call_of("Hi", message_of("tool", ToolResult(call_id="1")), tools=(CLOCK,)), id="words-after-results"
        ),
    ],
)
def test_any_words_will_do(call: Call) -> None:
    assert constrain(call.request, call.losses) is None


def test_branches_and_what_the_model_is_told() -> None:
    found = held(call_of("Hi", tools=(WEATHER, SHELL)))
    assert found.branches == (
        Branch('{"name": "weather", "arguments": ', "arguments", "weather"),
        Branch('{"name": "shell", "arguments": {"input": ', "input", "shell", foot="}}"),
        Branch('{"reply": ', "reply"),
    )
    assert found.instructions == (
        "You are a function calling assistant. You have these functions:\n"
        '{"name": "weather", "description": "The weather", "parameters": {"type": "object", "properties": '
        '{"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}}\n'
        '{"name": "shell", "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, '
        '"required": ["input"]}}\n'
        'Reply only with a JSON object {"name": <function name>, "arguments": <arguments object>}, '
        'or, if no function is of use, with {"reply": <your answer>}.'
    )


def test_every_branch_can_be_read_again() -> None:
    found = held(call_of("Hi", tools=(WEATHER, SHELL, Tool(name='odd "name"'))))
    begun = {
        text[: len(branch.prefix)]
        for text in texts(found)
        for branch in found.branches
        if text.startswith(branch.prefix)
    }
    assert begun == {branch.prefix for branch in found.branches}


@pytest.mark.parametrize(
    ("call", "param", "message"),
    [
        pytest.param(
            call_of("Hi", tool_choice=REQUIRED),
            "$.tool_choice",
            "tool_choice: a tool must be called, and there is none",
            id="required-without-tools",
        ),
        pytest.param(
            call_of("Hi", tools=(CLOCK,), tool_choice=ToolChoice(mode="auto", names=("x",))),
            "$.tool_choice",
            "tool_choice: `x` is not among the tools",
            id="unknown-name",
        ),
        pytest.param(
            call_of("Hi", tools=(CLOCK, Tool(name="f", parameters={"properties": {"a": {"type": "x"}}}))),
            "$.tools[1].parameters.properties.a.type",
            None,
            id="tool-schema",
        ),
        pytest.param(
            call_of("Hi", tools=(Tool(name="f", parameters={"type": "string"}),)),
            "$.tools[0].parameters.type",
            'the parameters of the tool `f`: type: found "string", expected `object`',
            id="tool-no-object",
        ),
        pytest.param(
            call_of("Hi", output=OutputFormat(kind="json_schema", schema={"type": "x"})),
            "$.response_format.type",
            None,
            id="output-schema",
        ),
        pytest.param(
            call_of("Hi", tools=(Tool(name="f", strict=True, parameters={"type": "object", "not": {}}),)),
            "$.tools[0].parameters.not",
            "the parameters of the tool `f`: not: the model cannot be held to `not`; "
            "leave it out, or say `strict: false`",
            id="strict-tool",
        ),
        pytest.param(
            call_of("Hi", output=OutputFormat(kind="json_schema", schema={"type": "object", "not": {}})),
            "$.response_format.not",
            None,
            id="output-that-cannot-be-held",
        ),
    ],
)
def test_what_is_impossible_is_refused_by_name(call: Call, param: str, message: str | None) -> None:
    with pytest.raises(FailureError) as raised:
        constrain(call.request, call.losses)
    failure = raised.value.failure
    assert (failure.kind, failure.param) == ("invalid_request", param)
    assert message in {None, failure.message}


def test_schemas_without_end_are_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"default": deep}
    for call, param in (
        (call_of("Hi", tools=(Tool(name="f", parameters=deep),)), "$.tools"),
        (call_of("Hi", output=OutputFormat(kind="json_schema", schema=deep)), "$.response_format"),
    ):
        with pytest.raises(FailureError) as raised:
            constrain(call.request, call.losses)
        assert raised.value.failure.param == param


def test_what_is_not_held_is_told() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    loose = Tool(name="f", parameters=schema)
    call = call_of(
        "Hi", tools=(loose, Tool(name="g", kind="custom", format={"type": "grammar"}), Opaque(dialect="x", data={}))
    )
    held(call)
    why = "the embedded model is not held to it"
    assert list(call.losses) == [
        Loss("$.tools[2]", "tool", "dropped", "only its provider runs it"),
        Loss("$.tools[0].parameters.properties.a.uniqueItems", "uniqueItems", "approximated", why),
        Loss("$.tools[1]", "format", "approximated", "the embedded model writes free text"),
    ]


HERMES = ModelTraits(tools=True, form=form_of(registry.get("hermes").calls[0]))
LLAMA = ModelTraits(tools=True, form=form_of(registry.get("json").calls[0]))
THINKING = ReasoningSyntax(open=("<think>",), close=("</think>",))
HELD_IN_OURS = ModelTraits(tools=True)
MUSING = replace(HERMES, thoughts=THINKING)
IN_THOUGHT = replace(HERMES, thoughts=replace(THINKING, implied=True))
CALL = '{"name": "clock", "arguments": {}}'
TAGGED = f"<tool_call>\n{CALL}\n</tool_call>"


def passes(manner: ModelTraits, text: str, **fields: object) -> bool:
    call = call_of("Hi", tools=(WEATHER, CLOCK), **fields)
    found = constrain(call.request, call.losses, manner)
    assert found is not None
    assert list(call.losses) == []
    return matches(found.grammar, text)


@pytest.mark.parametrize(
    ("manner", "fields", "text", "expected"),
    [
        pytest.param(HERMES, {}, f"Let me see.\n{TAGGED}", True, id="auto-words-then-a-call"),
        pytest.param(HERMES, {}, f"{TAGGED}\n{TAGGED}", True, id="auto-two-calls"),
        pytest.param(HERMES, {}, "\n".join([TAGGED] * MOST_CALLS), True, id="auto-as-many-as-may-be"),
        pytest.param(HERMES, {}, "\n".join([TAGGED] * (MOST_CALLS + 1)), False, id="auto-going-round-in-circles"),
        pytest.param(HERMES, {"parallel_tool_calls": False}, f"{TAGGED}\n{TAGGED}", False, id="auto-one-alone"),
        pytest.param(HERMES, {}, f"{TAGGED} Done.", False, id="auto-words-behind"),
        pytest.param(HERMES, {}, '<tool_call>\n{"name": "cloak"', False, id="auto-undeclared"),
        pytest.param(HERMES, {"tool_choice": REQUIRED}, f"Let me see.\n{TAGGED}", False, id="required-words"),
        pytest.param(HERMES, {"tool_choice": REQUIRED}, TAGGED, True, id="required"),
        pytest.param(HERMES, {"tool_choice": REQUIRED}, "", False, id="required-nothing"),
        pytest.param(HERMES, {"tool_choice": NAMED}, TAGGED, True, id="named"),
        pytest.param(HERMES, {"tool_choice": NAMED}, f"{TAGGED}\n{TAGGED}", False, id="named-twice"),
        pytest.param(
            HERMES,
            {"tool_choice": NAMED, "parallel_tool_calls": True},
            f"{TAGGED}\n{TAGGED}",
            True,
            id="named-several",
        ),
        pytest.param(HERMES, {"tool_choice": BOTH}, f"{TAGGED}\n{TAGGED}", True, id="several-names"),
        pytest.param(HERMES, {"output": FORM}, '{"ok": true}', True, id="form-instead"),
        pytest.param(HERMES, {"output": FORM}, TAGGED, True, id="call-instead-of-the-form"),
        pytest.param(HERMES, {"output": FORM}, "Hi", False, id="no-words-instead-of-the-form"),
        pytest.param(LLAMA, {}, CALL, True, id="bare-call"),
        pytest.param(LLAMA, {}, '{"name": "cloak"}', False, id="bare-undeclared"),
        pytest.param(LLAMA, {}, "Hi {}", True, id="bare-words"),
        pytest.param(LLAMA, {"output": FORM}, '{"reply": {"ok": true}}', True, id="bare-with-a-form-is-ours"),
        pytest.param(UNTAUGHT, {}, CALL, True, id="ours-one-call"),
        pytest.param(UNTAUGHT, {}, f"{CALL}\n{CALL}", False, id="ours-twice-where-nobody-asks-for-it"),
        pytest.param(UNTAUGHT, {"parallel_tool_calls": True}, f"{CALL}\n{CALL}", True, id="ours-two-calls"),
        pytest.param(
            UNTAUGHT,
            {"parallel_tool_calls": True},
            "\n".join([CALL] * (MOST_UNTAUGHT_CALLS + 1)),
            False,
            id="ours-in-circles",
        ),
        pytest.param(
            HELD_IN_OURS, {"tool_choice": REQUIRED}, f"{CALL}\n{CALL}", True, id="ours-of-one-that-knows-calls"
        ),
        pytest.param(UNTAUGHT, {}, f'{CALL}\n{{"reply": "Hi"}}', False, id="ours-call-and-reply"),
        pytest.param(MUSING, {}, f"<think>\nHm.\n</think>\n\nSo.\n{TAGGED}", True, id="mused"),
        pytest.param(MUSING, {}, f"So.\n{TAGGED}", True, id="not-mused"),
        pytest.param(
            MUSING,
            {},
            "<think>A <tool_call> is",
            True,
            id="a-marker-thought-of-is-a-thought",
        ),
        pytest.param(
            MUSING,
            {"tool_choice": REQUIRED},
            f"<think>\nHm.\n</think>\n\n{TAGGED}",
            True,
            id="required-mused",
        ),
        pytest.param(
            IN_THOUGHT,
            {"tool_choice": REQUIRED},
            f"Hm.\n</think>\n\n{TAGGED}",
            True,
            id="required-in-the-midst-of-a-thought",
        ),
        pytest.param(
            IN_THOUGHT,
            {"tool_choice": REQUIRED},
            TAGGED,
            False,
            id="required-thought-not-over",
        ),
    ],
)
def test_what_a_model_that_knows_calls_may_write(
    manner: ModelTraits, fields: dict[str, object], text: str, *, expected: bool
) -> None:
    assert passes(manner, text, **fields) is expected


def test_what_its_template_tells_is_not_told_again() -> None:
    found = held(call_of("Hi", tools=(WEATHER, SHELL)), HERMES)
    assert (found.told, found.instructions, found.branches) == ((WEATHER, SHELL), "", ())


def test_a_family_that_no_grammar_holds_is_told_of_tools_and_free() -> None:
    assert constrain(call_of("Hi", tools=(CLOCK,)).request, Losses(), ModelTraits(tools=True)) == Constraint(
        told=(CLOCK,)
    )
    call = call_of("Hi", tools=(CLOCK, replace(CLOCK, name="c", strict=True)), parallel_tool_calls=False)
    constrain(call.request, call.losses, ModelTraits(tools=True))
    why = "no grammar holds the calls of this family of models"
    assert list(call.losses) == [
        Loss("$", "parallel_tool_calls", "approximated", why),
        Loss("$.tools[1]", "strict", "approximated", why),
    ]
    forced = held(call_of("Hi", tools=(CLOCK,), tool_choice=NAMED), ModelTraits(tools=True))
    assert (forced.told, texts(forced)) == ((), TIME)


@pytest.mark.parametrize(
    ("syntax", "choice", "told"),
    [
        pytest.param("qwen25_coder", None, True, id="other-ways"),
        pytest.param("qwen25_coder", REQUIRED, False, id="other-ways-but-forced"),
        pytest.param("granite_fc", None, False, id="one-way"),
    ],
)
def test_a_family_that_calls_in_other_ways_too(syntax: str, choice: ToolChoice | None, *, told: bool) -> None:
    row = registry.get(syntax)
    manner = ModelTraits(tools=True, syntax=row, form=form_of(row.calls[0]))
    call = call_of("Hi", tools=(replace(CLOCK, strict=True),), tool_choice=choice, parallel_tool_calls=False)
    constrain(call.request, call.losses, manner)
    why = "no grammar holds the other ways in which this family of models calls"
    expected = [
        Loss("$", "parallel_tool_calls", "approximated", why),
        Loss("$.tools[0]", "strict", "approximated", why),
    ]
    assert list(call.losses) == (expected if told else [])
