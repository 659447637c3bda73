"""What a request asks for, and the conditions made of it."""

from __future__ import annotations

import msgspec
import pytest

from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Reasoning,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.request import Message, OutputFormat, Prompt, Request, Sampling, Thinking, Tool
from xenoglot.policy.capabilities import NEEDS, Need, RequestCondition, matches_when, needs_of

IMAGE = Image(source=Inline("AA==", "image/png"))
AUDIO = Audio(source=Inline("AA=="), format="wav")
FILE = File(source=Remote("https://files.example/a.pdf"))


def request_with(*parts: Part) -> Request:
    return Request(model="m", messages=(Message(role="user", content=parts),))


@pytest.mark.parametrize(
    ("request_", "needs"),
    [
        pytest.param(request_with(Text(text="hi")), set(), id="words"),
        pytest.param(request_with(Reasoning(text="hm"), Opaque(dialect="chat", data={})), set(), id="its-own-words"),
        pytest.param(Request(model="m", tools=(Tool(name="t"),)), {"tools"}, id="tools"),
        pytest.param(Request(model="m", tools=(Opaque(dialect="chat", data={}),)), {"tools"}, id="a-server-tool"),
        pytest.param(request_with(ToolCall(id="1", name="t")), {"tools"}, id="a-call-of-long-ago"),
        pytest.param(
            request_with(ToolResult(call_id="1", content=(IMAGE,))), {"tools", "images"}, id="image-in-a-result"
        ),
        pytest.param(request_with(IMAGE), {"images"}, id="images"),
        pytest.param(request_with(AUDIO), {"audio"}, id="audio"),
        pytest.param(request_with(FILE, IMAGE), {"files", "images"}, id="files-and-images"),
        pytest.param(request_with(File(source=Nested((IMAGE,)))), {"files", "images"}, id="image-in-a-file"),
        pytest.param(Request(model="m", thinking=Thinking(mode="enabled")), {"reasoning"}, id="thinking"),
        pytest.param(Request(model="m", thinking=Thinking(effort="low")), {"reasoning"}, id="effort"),
        pytest.param(Request(model="m", thinking=Thinking(budget_tokens=9)), {"reasoning"}, id="budget"),
        pytest.param(Request(model="m", thinking=Thinking(mode="disabled", budget_tokens=9)), set(), id="no-thinking"),
        pytest.param(Request(model="m", thinking=Thinking(effort="none")), set(), id="no-effort"),
        pytest.param(Request(model="m", thinking=Thinking(display="omitted")), set(), id="only-how-it-is-shown"),
        pytest.param(Request(model="m", output=OutputFormat(kind="json_schema")), {"structured"}, id="schema"),
        pytest.param(Request(model="m", output=OutputFormat(kind="json")), {"structured"}, id="json"),
        pytest.param(Request(model="m", output=OutputFormat(kind="text")), set(), id="text"),
        pytest.param(Request(model="m", sampling=Sampling(logprobs=True)), {"logprobs"}, id="logprobs"),
        pytest.param(Request(model="m", sampling=Sampling(top_logprobs=1)), {"logprobs"}, id="top-logprobs"),
        pytest.param(Request(model="m", sampling=Sampling(logprobs=False, top_logprobs=0)), set(), id="no-logprobs"),
        pytest.param(Request(model="m", sampling=Sampling(n=2)), {"candidates"}, id="candidates"),
        pytest.param(Request(model="m", sampling=Sampling(n=1)), set(), id="one-candidate"),
        pytest.param(Request(model="m", prompt=Prompt(texts=("a",))), {"completion"}, id="completion"),
    ],
)
def test_needs(request_: Request, needs: set[Need]) -> None:
    assert needs_of(request_) == needs


def test_every_need_is_known_by_name() -> None:
    assert set(NEEDS) == {
        "tools",
        "images",
        "audio",
        "files",
        "reasoning",
        "structured",
        "logprobs",
        "candidates",
        "completion",
    }


SEEING = Request(model="m", messages=(Message(role="user", content=(IMAGE,)),), tools=(Tool(name="t"),), stream=True)


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        pytest.param(RequestCondition(), True, id="always"),
        pytest.param(RequestCondition(needs=("images",)), True, id="one-of-its-needs"),
        pytest.param(RequestCondition(needs=("images", "tools")), True, id="all-its-needs"),
        pytest.param(RequestCondition(needs=("images", "audio")), False, id="a-need-too-many"),
        pytest.param(RequestCondition(lacks=("audio",)), True, id="lacks"),
        pytest.param(RequestCondition(lacks=("audio", "images")), False, id="lacks-not"),
        pytest.param(RequestCondition(needs=("images",), lacks=("tools",)), False, id="both"),
        pytest.param(RequestCondition(stream=True), True, id="stream"),
        pytest.param(RequestCondition(stream=False), False, id="no-stream"),
        pytest.param(RequestCondition(min_input_tokens=1000), True, id="just-long-enough"),
        pytest.param(RequestCondition(min_input_tokens=1001), False, id="too-short"),
        pytest.param(RequestCondition(max_input_tokens=1000), True, id="just-short-enough"),
        pytest.param(RequestCondition(max_input_tokens=999), False, id="too-long"),
        pytest.param(RequestCondition(min_input_tokens=1000, max_input_tokens=1000), True, id="exactly"),
        pytest.param(RequestCondition(min_input_tokens=1001, needs=("images",)), False, id="size-before-needs"),
    ],
)
def test_conditions(when: RequestCondition, matches: bool) -> None:  # noqa: FBT001 (a case)
    assert matches_when(when, SEEING, 1000) is matches


def test_a_prompt_of_nothing_is_short() -> None:
    assert matches_when(RequestCondition(max_input_tokens=1), request_with(), 0)


def test_which_conditions_need_a_count() -> None:
    assert [
        when.counts
        for when in (
            RequestCondition(),
            RequestCondition(stream=True),
            RequestCondition(min_input_tokens=1),
            RequestCondition(max_input_tokens=1),
        )
    ] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("field", ["min_input_tokens", "max_input_tokens"])
def test_r50_a_prompt_has_a_token_at_least(field: str) -> None:
    assert getattr(msgspec.convert({field: 1}, RequestCondition), field) == 1
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert({field: 0}, RequestCondition)
