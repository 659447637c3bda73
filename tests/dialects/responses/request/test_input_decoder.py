"""The items of the input as turns: which belong together, and what is kept of each."""

import pytest

from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.loss import Losses
from xenoglot.dialects.responses import RESPONSES
from xenoglot.model.content import (
    Extra,
    HostedCall,
    HostedResult,
    Image,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message

CALL: JSONObject = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
CALLED = ToolCall(id="c1", name="f", arguments="{}", extra=Extra(dialect="responses", form={"item": {"type": True}}))


def turns(*items: JSON) -> tuple[Message, ...]:
    return RESPONSES.decode_request({"model": "m", "input": list(items)}).messages


def shape(*items: JSON) -> list[tuple[str, list[str]]]:
    """Return the roles of the turns, and of each part its kind and its words."""
    return [(turn.role, [_shape(part) for part in turn.content]) for turn in turns(*items)]


def _shape(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall(id=name) | ToolResult(call_id=name):
            return f"{type(part).__name__} {name}"
        case _:
            return type(part).__name__


def input_text(text: str) -> JSONObject:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(call_id: str) -> JSONObject:
    return {**CALL, "call_id": call_id}


def output(call_id: str) -> JSONObject:
    return {"type": "function_call_output", "call_id": call_id, "output": "r"}


THOUGHT = {"type": "reasoning", "summary": []}
USER = {"role": "user", "content": "u"}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(
            [USER, THOUGHT, input_text("a"), call("1"), call("2"), output("1"), output("2"), input_text("b")],
            [
                ("user", ["u"]),
                ("assistant", ["Reasoning", "a", "ToolCall 1", "ToolCall 2"]),
                ("tool", ["ToolResult 1"]),
                ("tool", ["ToolResult 2"]),
                ("assistant", ["b"]),
            ],
            id="pitfall-57-calls-are-one-turn",
        ),
        pytest.param(
            [input_text("a"), input_text("b"), THOUGHT, input_text("c")],
            [("assistant", ["a"]), ("assistant", ["b"]), ("assistant", ["Reasoning", "c"])],
            id="words-behind-words-are-another-turn",
        ),
        pytest.param(
            [input_text("a"), call("1"), input_text("b"), call("2"), output("1")],
            [("assistant", ["a", "ToolCall 1", "b", "ToolCall 2"]), ("tool", ["ToolResult 1"])],
            id="words-between-calls",
        ),
        pytest.param(
            [call("1"), {"type": "x_new"}, USER],
            [("assistant", ["ToolCall 1", "Opaque"]), ("user", ["u"])],
            id="unknown-items-are-the-models",
        ),
        pytest.param(
            [{"type": "shell_call_output", "call_id": "1", "output": []}, {"id": "msg_1"}],
            [("tool", ["ToolResult 1"]), ("user", ["Opaque"])],
            id="pitfall-59-items-of-the-client",
        ),
        pytest.param(
            [{"role": "assistant", "content": ""}, {"role": "assistant"}],
            [("assistant", [""]), ("assistant", [""])],
            id="pitfall-39-nothing-said",
        ),
    ],
)
def test_turns(items: list[JSON], expected: JSON) -> None:
    assert shape(*items) == expected


def test_a_result() -> None:
    """pitfall-9, pitfall-56: of parts, and failed."""
    (turn,) = turns(
        {
            "type": "custom_tool_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "[tool error] no"},
                {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "original"},
            ],
        }
    )
    parts = (Text(text="no"), Image(source=Remote(url="https://example.com/a.png"), detail="original"))
    form = {"item": {"type": True}, "output": "list"}
    extra = Extra(dialect="responses", form=form)
    result = ToolResult(call_id="c1", content=parts, is_error=True, kind="custom", extra=extra)
    assert turn == Message(role="tool", content=(result,))


def test_a_result_belongs_to_the_last_call_of_its_name() -> None:
    other = {**call("2"), "name": "g"}
    messages = turns(call("1"), other, {"type": "function_call_output", "name": "f", "output": "r"})
    (result,) = messages[-1].content
    assert isinstance(result, ToolResult)
    assert result.call_id == "1"


def test_calls() -> None:
    """pitfall-63, pitfall-74: two ids, and a namespace."""
    (turn,) = turns({**CALL, "id": "fc_1", "namespace": "n"}, {**CALL, "type": "custom_tool_call", "input": "x"})
    first, second = turn.content
    assert first == ToolCall(id="c1", name="f", arguments="{}", item_id="fc_1", namespace="n", extra=CALLED.extra)
    extra = Extra(dialect="responses", fields={"arguments": "{}"}, form={"item": {"type": True}})
    assert second == ToolCall(id="c1", name="f", arguments="x", kind="custom", extra=extra)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"encrypted_content": "e", "summary": []}, Reasoning(encrypted="e", redacted=True, summary=())),
        (
            {"encrypted_content": "e", "summary": [{"type": "summary_text", "text": "s"}]},
            Reasoning(encrypted="e", summary=("s",)),
        ),
        ({"content": [{"type": "reasoning_text", "text": "t"}]}, Reasoning(text="t")),
        (
            {"content": [{"type": "reasoning_text", "text": "t"}, {"type": "reasoning_text", "text": "u"}]},
            Reasoning(text="t\n\nu"),
        ),
        (
            {"encrypted_content": "xenoglot:sealed:WyJtZXNzYWdlcyIsImFjbWUiLCJzIixudWxsXQ=="},
            Reasoning(signature="s", origin=Origin(dialect="messages", provider="acme")),
        ),
        ({"encrypted_content": "xenoglot:sealed:broken"}, Reasoning(encrypted="xenoglot:sealed:broken", redacted=True)),
    ],
)
def test_thoughts(item: JSONObject, expected: Reasoning) -> None:
    """pitfall-58: what is sealed says by whom."""
    (turn,) = turns({"type": "reasoning", "id": "rs_1", **item})
    (thought,) = turn.content
    assert isinstance(thought, Reasoning)
    said = (thought.text, thought.summary, thought.signature, thought.encrypted, thought.redacted, thought.id)
    assert said == (*_reasoning_item(expected), "rs_1")
    ours = Origin(dialect="responses") if expected.encrypted is not None else None
    assert thought.origin == (expected.origin or ours)


def _reasoning_item(part: Reasoning) -> tuple[JSON, ...]:
    return part.text, part.summary, part.signature, part.encrypted, part.redacted


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, 'Command run: ["ls"]\n'),
        ({"type": "shell_call_output", "output": [{"stdout": "a", "stderr": "b"}]}, "a\nb"),
        ({"type": "agent_message", "author": "/root", "content": [{"text": "Done."}]}, "From /root:\nDone."),
        (
            {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
            "Patch (delete_file) of a\n",
        ),
        ({"type": "mcp_approval_response", "approve": False}, "Not approved."),
        ({"type": "x_new", "x": 1}, None),
    ],
)
def test_what_others_can_read_of_an_item(item: JSONObject, text: str | None) -> None:
    """pitfall-64: an item that only this dialect has is carried whole, beside what it says."""
    (turn,) = turns(item)
    assert turn.content == (Opaque(dialect="responses", data=item, text=text),)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "web_search_call", "action": {"type": "search", "query": "rain"}}, "Searched for: rain\n"),
        (
            {"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.b"}},
            "Page opened: https://a.b\n",
        ),
        (
            {"type": "file_search_call", "queries": ["a"], "results": [{"text": "It rains."}]},
            "Searched for: a\nIt rains.\n",
        ),
        (
            {"type": "code_interpreter_call", "code": "1", "outputs": [{"type": "logs", "logs": "2"}]},
            "Code run:\n1\n2\n",
        ),
        ({"type": "mcp_call", "name": "f", "arguments": "{}", "output": "r", "error": None}, "Tool called: f {}\nr\n"),
        ({"type": "image_generation_call", "result": "AA=="}, ""),
    ],
)
def test_what_others_can_read_of_a_tool_of_the_server(item: JSONObject, text: str) -> None:
    (turn,) = turns(item)
    assert all(isinstance(part, HostedCall | HostedResult) for part in turn.content)
    said = [hosted_words(part, "$", Losses()) for part in turn.content if isinstance(part, HostedCall | HostedResult)]
    assert "".join(words.text for words in said if words is not None) == text
