"""What the chat template and the name of a model tell of how it speaks."""

import pytest

from tests.engine.prompting.chat_templates import CHATML, HERMES, MISTRAL, MUSING, UNHEARD
from xenoglot.engine.prompting.call_formats import PLAIN
from xenoglot.engine.server.model_traits import UNTAUGHT, ChatTemplate, ModelTraits, has_thoughts, thinks, traits_of
from xenoglot.errors import ConfigurationError
from xenoglot.text import registry
from xenoglot.text.syntax import ReasoningSyntax

THINK = ReasoningSyntax(open=("<think>",), close=("</think>",), calls=True, line=True)


def shown_traits(manner: ModelTraits) -> tuple[bool, str | None, str | None, ReasoningSyntax | None]:
    """Whether it takes tools, its family, the marker of its calls, the tags of its thoughts."""
    family = manner.syntax.name if manner.syntax else None
    return manner.tools, family, manner.form.marker if manner.form else None, manner.thoughts


@pytest.mark.parametrize(
    ("template", "model", "policy", "expected"),
    [
        pytest.param(CHATML, "smollm2-135m-instruct", "auto", (False, None, None, None), id="knows-no-tools"),
        pytest.param(HERMES, "my-model", "auto", (True, "hermes", "<tool_call>", None), id="by-the-template"),
        pytest.param(HERMES, "qwen2.5-7b", "auto", (True, "hermes", "<tool_call>", None), id="by-the-name"),
        pytest.param(HERMES, "org/Qwen3-8B-Q4_K_M", "auto", (True, "hermes", "<tool_call>", None), id="file-name"),
        pytest.param(HERMES, "x", "longcat", (True, "longcat", "<longcat_tool_call>", None), id="as-it-is-set"),
        pytest.param(HERMES, "x", "qwen3_coder", (True, "qwen3_coder", None, None), id="no-form-that-can-be-held"),
        pytest.param(HERMES, "x", "gpt_oss", (True, "gpt_oss", None, None), id="a-parser-of-its-own"),
        pytest.param(HERMES, "x", "off", (False, None, None, None), id="off"),
        pytest.param(MISTRAL, "x", "auto", (True, "mistral", "[TOOL_CALLS]", None), id="another-template"),
        pytest.param(UNHEARD, "x", "auto", (True, "auto", None, None), id="nobody-knows"),
        pytest.param(MUSING, "x", "auto", (False, None, None, THINK), id="thinks-and-knows-no-tools"),
    ],
)
def test_what_is_known_of_weights(
    template: ChatTemplate,
    model: str,
    policy: str,
    expected: tuple[bool, str | None, str | None, ReasoningSyntax | None],
) -> None:
    assert shown_traits(traits_of(template, model, policy)) == expected


def test_a_syntax_that_nobody_knows() -> None:
    with pytest.raises(ConfigurationError, match="no text syntax `herm`"):
        traits_of(HERMES, "x", "herm")


@pytest.mark.parametrize(("wanted", "implied"), [(None, False), (True, True), (False, False)])
def test_where_a_thought_begins(*, wanted: bool | None, implied: bool) -> None:
    tags = thinks(traits_of(MUSING, "x"), MUSING, wanted=wanted)
    assert tags is not None
    assert tags.implied is implied


def test_who_does_not_think() -> None:
    assert thinks(UNTAUGHT, CHATML, wanted=True) is None
    assert [has_thoughts(template.text) for template in (CHATML, HERMES, MUSING)] == [False, False, True]


def test_every_family_that_can_be_held_is_found_by_its_own_calls() -> None:
    """A template that has nothing but a family's calls in it tells a family with the same calls."""
    for name in registry.names():
        row = registry.get(name)
        form = traits_of(ChatTemplate(tools=True), "x", name).form
        if form is None or not form.marker or row.own is not None:
            continue
        head, foot = form.spell("a_function")
        text = " ".join([*form.lead, head, '{"an_argument": "a value"}', foot, *form.joint, *form.tail])
        found = traits_of(ChatTemplate(text=text, tools=True), "x").form
        assert found is not None, name
        assert found.marker == form.marker
    assert PLAIN.marker == ""
