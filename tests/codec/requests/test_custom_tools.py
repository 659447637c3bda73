"""Free-text tools come back as what they were."""

from __future__ import annotations

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.custom_tools import PARAMETERS, UnwrapCustom, as_function
from xenoglot.codec.stage import through
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, Event, TextDelta
from xenoglot.model.request import Request, Tool

REQUEST = Request(model="m", tools=(Tool(name="patch", kind="custom"), Tool(name="look")))
PATCH = BlockStarted(part=ToolCall(id="1", name="patch"))
CUSTOM = BlockStarted(part=ToolCall(id="1", name="patch", kind="custom"))
LOOK = BlockStarted(part=ToolCall(id="2", name="look"))


def text_events(*texts: str) -> list[Event]:
    return [ArgumentsDelta(text=text) for text in texts]


@pytest.mark.parametrize(
    ("events", "made"),
    [
        pytest.param(
            [PATCH, *text_events('{"inp', 'ut": "a\\n', '\\"b\\""}'), BlockEnded()],
            [CUSTOM, *text_events('a\n"b"'), BlockEnded()],
            id="pitfall-62-wrapped",
        ),
        pytest.param(
            [PATCH, *text_events("*** raw"), BlockEnded()], [CUSTOM, *text_events("*** raw"), BlockEnded()], id="raw"
        ),
        pytest.param(
            [PATCH, *text_events('{"input":"a","b":1}'), BlockEnded()],
            [CUSTOM, *text_events('{"input":"a","b":1}'), BlockEnded()],
            id="more-than-the-wrapping",
        ),
        pytest.param(
            [PATCH, *text_events('{"input":1}'), BlockEnded()],
            [CUSTOM, *text_events('{"input":1}'), BlockEnded()],
            id="no-text",
        ),
        pytest.param(
            [PATCH, BlockEnded(part=ToolCall(id="1", name="patch", arguments='{"input":"x"}'))],
            [CUSTOM, BlockEnded(part=ToolCall(id="1", name="patch", arguments="x", kind="custom"))],
            id="told-whole-at-the-end",
        ),
        pytest.param(
            [LOOK, *text_events("{", "}"), BlockEnded()],
            [LOOK, *text_events("{", "}"), BlockEnded()],
            id="another-function",
        ),
        pytest.param(
            [CUSTOM, *text_events("{", "}"), BlockEnded()],
            [CUSTOM, *text_events("{", "}"), BlockEnded()],
            id="custom-already",
        ),
        pytest.param(
            [BlockStarted(part=Text(text="")), TextDelta(text="x"), BlockEnded()],
            [BlockStarted(part=Text(text="")), TextDelta(text="x"), BlockEnded()],
            id="no-call",
        ),
    ],
)
def test_unwrap(events: list[Event], made: list[Event]) -> None:
    assert list(through(events, UnwrapCustom(REQUEST))) == made


@pytest.mark.parametrize(("request_", "any_"), [(REQUEST, True), (Request(model="m"), False)], ids=["some", "none"])
def test_there_may_be_nothing_to_do(request_: Request, any_: bool) -> None:  # noqa: FBT001  the expected value
    assert bool(UnwrapCustom(request_)) is any_


LARK = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}}
TOLD = "The argument `input` is plain text, and follows this lark grammar:\nstart: /a/"


@pytest.mark.parametrize(
    ("description", "told"), [pytest.param(None, TOLD, id="alone"), pytest.param("D", f"D\n\n{TOLD}", id="behind")]
)
def test_pitfall_62_a_grammar_is_told_in_words(description: str | None, told: str) -> None:
    """Codex's `apply_patch` says nowhere else what a patch looks like."""
    losses = Losses()
    made = as_function(Tool(name="f", description=description, kind="custom", format=LARK), "$.tools[0]", losses)
    assert made == Tool(name="f", description=told, parameters=PARAMETERS)
    assert [str(loss) for loss in losses] == [
        "$.tools[0] kind emulated (a custom tool is written as a function of one string)",
        "$.tools[0] description emulated (the grammar of the tool's text is described in it)",
        "$.tools[0] format approximated (described in the description, and not enforced)",
    ]
