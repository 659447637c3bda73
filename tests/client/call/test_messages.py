"""Messages, tools and options as people write them, and what they are told of mistakes."""

from contextlib import suppress
from typing import Any

import pytest
from anthropic.types import TextBlock
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.chat import ChatCompletionMessage

from xenoglot.client.call.messages import messages_of
from xenoglot.client.call.options import Options, build_request
from xenoglot.client.call.tools import tool_choice_of, tools_of
from xenoglot.client.results.result import Reply
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Image, Inline, Reasoning, Remote, Text, ToolCall, ToolResult
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from xenoglot.model.response import Candidate, Response
from xenoglot.tools.tool import tool

HI = Message(role="user", content=(Text(text="Hi"),))
ADD = Tool(name="add", description="Adds.", parameters={"type": "object"})


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        pytest.param("Hi", (HI,), id="string"),
        pytest.param(HI, (HI,), id="message"),
        pytest.param(["Hi", HI], (HI, HI), id="list"),
        pytest.param({"role": "user", "content": "Hi"}, (HI,), id="dict"),
        pytest.param(Request(model="", messages=(HI,)), (HI,), id="request"),
        pytest.param(
            [Text(text="Hi"), {"role": "system", "content": "Be."}],
            (HI, Message(role="system", content=(Text(text="Be."),))),
            id="part-and-dict",
        ),
        pytest.param(
            [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": "3"},
            ],
            (
                Message(role="assistant", content=(ToolCall(id="c", name="f", arguments="{}"),)),
                Message(role="tool", content=(ToolResult(call_id="c", content=(Text(text="3"),)),)),
            ),
            id="chat-call",
        ),
        pytest.param(
            [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "3"}]},
            ],
            (
                Message(role="assistant", content=(ToolCall(id="c", name="f", arguments='{"a":1}'),)),
                Message(role="user", content=(ToolResult(call_id="c", content=(Text(text="3"),)),)),
            ),
            id="messages-call",
        ),
        pytest.param(
            [
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "3"},
                {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            ],
            (
                Message(role="assistant", content=(ToolCall(id="c", name="f", arguments="{}"),)),
                Message(role="tool", content=(ToolResult(call_id="c", content=(Text(text="3"),)),)),
                HI,
            ),
            id="responses",
        ),
        pytest.param(
            [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hi"}]}],
            (HI, Message(role="assistant", content=HI.content)),
            id="gemini",
        ),
        pytest.param(
            [{"role": "user", "content": "Hi", "images": [b"hi"]}],
            (Message(role="user", content=(Image(source=Inline("aGk=")), Text(text="Hi"))),),
            id="ollama",
        ),
        pytest.param(
            [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/b"}}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
                {"role": "tool", "tool_call_id": "c", "content": "3"},
            ],
            (
                Message(role="user", content=(Image(source=Remote("https://a/b")),)),
                Message(role="assistant", content=(ToolCall(id="c", name="f", arguments='{"a":1}'),)),
                Message(role="tool", content=(ToolResult(call_id="c", content=(Text(text="3"),)),)),
            ),
            id="each-turn-in-a-dialect-of-its-own",
        ),
        pytest.param([{"role": "user", "content": [Text(text="Hi")]}], (HI,), id="dict-with-parts"),
        pytest.param(
            [{"role": "user", "content": ("Hi", Text(text="Hi"))}],
            (Message(role="user", content=(*HI.content, *HI.content)),),
            id="dict-with-parts-and-texts",
        ),
        pytest.param([Message(role="user", content=[Text(text="Hi")])], (HI,), id="message-with-a-list"),  # type: ignore[arg-type]
        pytest.param(
            [Reply(response=Response(candidates=(Candidate(content=HI.content),)))],
            (Message(role="assistant", content=HI.content),),
            id="reply",
        ),
        pytest.param(
            ["Hi", ChatCompletionMessage(role="assistant", content="Hi")],
            (HI, Message(role="assistant", content=HI.content)),
            id="object-of-an-sdk",
        ),
        pytest.param(
            [{"role": "assistant", "content": [TextBlock(type="text", text="Hi")]}],
            (Message(role="assistant", content=HI.content),),
            id="objects-of-an-sdk-in-a-dict",
        ),
    ],
)
def test_messages(said: Any, turns: tuple[Message, ...]) -> None:  # noqa: ANN401  what people say
    found = messages_of(said)
    assert [(turn.role, [plain(part) for part in turn.content]) for turn in found] == [
        (turn.role, [plain(part) for part in turn.content]) for turn in turns
    ]


def plain(part: Any) -> Any:  # noqa: ANN401  a part
    """A part without how it was spelled."""
    match part:
        case ToolCall():
            return (part.id, part.name, part.arguments)
        case ToolResult():
            return (part.call_id, [plain(one) for one in part.content])
        case Text():
            return part.text
        case _:
            return part


def test_thoughts_and_pictures_of_messages_are_read() -> None:
    said = [
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}],
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]},
    ]
    first, second = messages_of(said)
    assert isinstance(first.content[0], Image)
    assert first.content[0].source == Inline("aGk=", "image/png")
    assert isinstance(second.content[0], Reasoning)
    assert second.content[0].signature == "s"


@pytest.mark.parametrize(
    ("said", "path"),
    [
        pytest.param([], "$.messages", id="none"),
        pytest.param(3, "$.messages", id="a-number"),
        pytest.param(b"Hi", "$.messages", id="bytes"),
        pytest.param(["Hi", 3], "$.messages[1]", id="a-number-in-a-list"),
        pytest.param(["Hi", {"role": "nobody", "content": "x"}], "$.messages[1].role", id="a-role"),
        pytest.param(["Hi", HI, {"role": "user", "content": 3}], "$.messages[2].content", id="content"),
        pytest.param([{"content": "x"}], "$.messages[0].role", id="no-role"),
        pytest.param(
            [{"role": "user", "content": [{"type": "tool_result"}]}],
            "$.messages[0].content[0].tool_use_id",
            id="a-block",
        ),
        pytest.param(["Hi", {"role": "user", "parts": ["Hi"]}], "$.messages[1].parts[0]", id="a-part-of-gemini"),
        pytest.param(
            ["Hi", {"type": "function_call_output", "output": "3"}], "$.messages[1].call_id", id="an-item-of-responses"
        ),
        pytest.param([Message(role="user", content="Hi")], "$.messages[0].content", id="a-message-with-a-string"),  # type: ignore[arg-type]
        pytest.param(
            [Message(role="user", content=("Hi",))],  # type: ignore[arg-type]
            "$.messages[0].content[0]",
            id="a-message-with-no-part",
        ),
        pytest.param([Message(role="robot")], "$.messages[0].role", id="a-message-of-nobody"),  # type: ignore[arg-type]
        pytest.param(
            [{"role": "tool", "tool_call_id": "c", "content": [Text(text="3")]}],
            "$.messages[0].tool_call_id",
            id="parts-where-there-is-json",
        ),
        pytest.param(["Hi", {"role": "user", "content": object()}], "$.messages[1]", id="an-object"),
    ],
)
def test_mistakes_in_messages_are_named(said: Any, path: str) -> None:  # noqa: ANN401  what people say
    with pytest.raises(WireError) as caught:
        messages_of(said)
    assert caught.value.path == path


@tool
def add(a: int) -> int:
    """Adds."""
    return a


@pytest.mark.parametrize(
    ("said", "name"),
    [
        pytest.param(ADD, "add", id="canonical"),
        pytest.param(add, "add", id="function"),
        pytest.param({"type": "function", "function": {"name": "add", "parameters": {}}}, "add", id="chat"),
        pytest.param({"type": "function", "name": "add", "parameters": {}}, "add", id="responses"),
        pytest.param({"name": "add", "input_schema": {"type": "object"}}, "add", id="messages"),
        pytest.param({"functionDeclarations": [{"name": "add"}]}, "add", id="gemini"),
        pytest.param({"name": "add", "parameters": {"type": "object"}}, "add", id="legacy-function"),
    ],
)
def test_tools(said: Any, name: str) -> None:  # noqa: ANN401  as above
    (found,) = tools_of([said], "chat")
    assert isinstance(found, Tool)
    assert found.name == name


def test_a_tool_of_the_provider_stays_its_own() -> None:
    (found,) = tools_of([{"type": "web_search_20250305", "name": "web_search"}], "messages")
    assert isinstance(found, HostedTool)
    assert found.kind == "web_search"


@pytest.mark.parametrize(
    ("said", "path"),
    [
        pytest.param("add", "$.tools", id="no-list"),
        pytest.param([ADD, 3], "$.tools[1]", id="a-number"),
        pytest.param([len], "$.tools[0]", id="a-bare-function"),
        pytest.param([ADD, {"type": "function", "function": {}}], "$.tools[1].function.name", id="nameless"),
    ],
)
def test_mistakes_in_tools_are_named(said: Any, path: str) -> None:  # noqa: ANN401  as above
    with pytest.raises(WireError) as caught:
        tools_of(said, "chat")
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("said", "mode", "chosen"),
    [
        pytest.param("auto", "auto", (), id="auto"),
        pytest.param("required", "required", (), id="required"),
        pytest.param("add", "required", ("add",), id="a-name"),
        pytest.param(ToolChoice(mode="none"), "none", (), id="canonical"),
        pytest.param({"type": "function", "function": {"name": "add"}}, "required", ("add",), id="chat"),
        pytest.param({"type": "tool", "name": "add"}, "required", ("add",), id="messages"),
        pytest.param({"type": "any"}, "required", (), id="messages-any"),
        pytest.param("any", "required", (), id="any"),
        pytest.param({"type": "function", "name": "add"}, "required", ("add",), id="responses"),
    ],
)
def test_the_choice_of_a_tool(said: Any, mode: str, chosen: tuple[str, ...]) -> None:  # noqa: ANN401  as above
    found = tool_choice_of(said)
    assert (found.mode, found.names) == (mode, chosen)


def request_of(**options: Any) -> Request:  # noqa: ANN401  those of a call
    """The request that these options make."""
    return build_request("Hi", options, model="m", dialect="chat", stream=False).request  # type: ignore[arg-type]


def test_options_make_a_request() -> None:
    found = request_of(
        system="Be.",
        tools=[ADD],
        tool_choice="add",
        temperature=1,
        stop="x",
        n=2,
        output="json",
        thinking="high",
        extra={"a": 1},
        user="u",
        logit_bias={"3": 1},
        max_tokens=None,
    )
    assert [message.role for message in found.messages] == ["system", "user"]
    assert (found.sampling.temperature, found.sampling.stop, found.sampling.n) == (1.0, ("x",), 2)
    assert (found.output, found.thinking) == (OutputFormat(kind="json"), Thinking(effort="high"))
    assert (found.user, found.model) == ("u", "m")
    assert found.extra is not None
    assert (found.extra.dialect, found.extra.fields) == ("chat", {"a": 1})


@pytest.mark.parametrize("dialect", names())
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_extra_field_changes_nothing_beside_itself(dialect: str, *, stream: bool) -> None:
    def written(extra: dict[str, Any] | None) -> dict[str, Any]:
        told: Options = {"stop": "a", "system": "Be.", "temperature": 1, "extra": extra}
        made = build_request("Hi", told, model="m", dialect=dialect, stream=stream).request
        return get(dialect).encode_request(made, Losses(), Target())

    assert written({"own": 1}) == written(None) | {"own": 1}


def test_an_extra_field_is_added_to_those_of_a_request() -> None:
    request = get("chat").decode_request({"messages": [{"role": "user", "content": "Hi"}], "model": "m", "b": 2})
    found = build_request(request, {"extra": {"a": 1}}, model="m", dialect="chat", stream=False).request
    assert found.extra == Extra(
        dialect="chat", fields={"a": 1, "b": 2}, form=request.extra.form if request.extra else {}
    )


SCHEMA = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("options", "field", "found"),
    [
        pytest.param(
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "thinking",
            Thinking(mode="enabled", budget_tokens=1024),
            id="thinking-of-messages",
        ),
        pytest.param({"thinking": {"effort": "low"}}, "thinking", Thinking(effort="low"), id="reasoning-of-responses"),
        pytest.param({"output": {"type": "json_object"}}, "output", OutputFormat(kind="json"), id="json-object"),
        pytest.param({"output": {"type": "text"}}, "output", OutputFormat(kind="text"), id="text"),
        pytest.param(
            {"output": SCHEMA}, "output", OutputFormat(kind="json_schema", schema=SCHEMA, name="answer"), id="schema"
        ),
        pytest.param(
            {"output": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
            "output",
            OutputFormat(kind="json_schema", schema=SCHEMA, name="a"),
            id="response-format-of-chat",
        ),
        pytest.param(
            {"output": {"type": "json_schema", "schema": SCHEMA}},
            "output",
            OutputFormat(kind="json_schema", schema=SCHEMA, name="answer"),
            id="format-of-messages",
        ),
        pytest.param({"logit_bias": {50256: -100}}, "sampling", Sampling(logit_bias={"50256": -100}), id="token-ids"),
    ],
)
def test_options_as_other_libraries_have_them(options: dict[str, Any], field: str, found: object) -> None:
    said = getattr(request_of(**options), field)
    assert (replace(said, extra=None) if hasattr(said, "extra") else said) == found


def test_the_system_may_be_in_blocks() -> None:
    said = request_of(system=[{"type": "text", "text": "Be.", "cache_control": {"type": "ephemeral"}}]).messages[0]
    assert (said.role, [plain(part) for part in said.content]) == ("system", ["Be."])


def test_options_are_added_to_a_request() -> None:
    request = Request(model="own", messages=(HI,), user="u")
    found = build_request(request, {"temperature": 0.5}, model="m", dialect="chat", stream=True).request
    assert (found.model, found.user, found.sampling.temperature, found.stream) == ("own", "u", 0.5, True)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        pytest.param({"temperature": "hot"}, "$.temperature", id="temperature"),
        pytest.param({"temperature": float("nan")}, "$.temperature", id="nan"),
        pytest.param({"max_tokens": 1.5}, "$.max_tokens", id="max-tokens"),
        pytest.param({"stop": [3]}, "$.stop[0]", id="stop"),
        pytest.param({"system": 3}, "$.system", id="system"),
        pytest.param({"thinking": "a lot"}, "$.thinking", id="thinking"),
        pytest.param({"output": "yaml"}, "$.output", id="output"),
        pytest.param({"tool_choice": 3}, "$.tool_choice", id="tool-choice"),
        pytest.param({"timeout": 0}, "$.timeout", id="no-time"),
        pytest.param({"timeout": "long"}, "$.timeout", id="timeout"),
        pytest.param({"headers": {"host": "x"}}, "$.headers['host']", id="header-of-the-connection"),
        pytest.param({"headers": {"content-length": "3"}}, "$.headers['content-length']", id="header-of-the-length"),
        pytest.param({"headers": {"x-a": "b\r\nx-b: c"}}, "$.headers['x-a']", id="header-with-a-line"),
        pytest.param({"headers": {"x a": "b"}}, "$.headers['x a']", id="header-with-a-blank"),
        pytest.param({"metadata": 3}, "$.metadata", id="metadata"),
        pytest.param({"user": 3}, "$.user", id="user"),
        pytest.param({"extra": [1]}, "$.extra", id="extra"),
        pytest.param({"extra": {1: 1}}, "$.extra", id="extra-without-names"),
        pytest.param({"thinking": {"type": "maybe"}}, "$.thinking", id="thinking-of-no-kind"),
        pytest.param({"output": {"type": "json_schema", "json_schema": 3}}, "$.output", id="output-without-a-schema"),
    ],
)
def test_mistakes_in_options_are_named(options: dict[str, Any], path: str) -> None:
    with pytest.raises(WireError) as caught:
        request_of(**options)
    assert caught.value.path == path
    assert "x-b" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        pytest.param("temperatur", "`temperature`", id="typo"),
        pytest.param("stream", "the call `stream`", id="stream"),
        pytest.param("response_format", "`output`", id="response-format"),
        pytest.param("max_completion_tokens", "`max_tokens`", id="limit"),
    ],
)
def test_there_is_no_such_option(name: str, near: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}`; did you mean {near}"):
        request_of(**{name: 1})


@pytest.mark.parametrize("dialect", names())
def test_what_is_asked_can_be_written_in_every_dialect(dialect: str) -> None:
    body = get(dialect).encode_request(request_of(system="Be.", max_tokens=3), Losses(), Target())
    assert body


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["", "a", "user", "tool", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "source", "tool_calls", "function", "name", "input_schema"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_garbage_is_read_or_refused(said: Any) -> None:  # noqa: ANN401  whatever it is
    for read in (messages_of, lambda tools: tools_of(tools, "chat"), tool_choice_of):
        with suppress(WireError):
            assert read(said) is not None


OPTIONS = sorted(Options.__optional_keys__ - {"output"})


@given(st.dictionaries(st.sampled_from(OPTIONS), JSON, max_size=4))
def test_garbage_in_options_is_taken_or_refused(options: dict[str, Any]) -> None:
    with suppress(WireError):
        assert isinstance(request_of(**options), Request)
