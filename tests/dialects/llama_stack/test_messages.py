"""Messages of a request, both ways."""

import pytest

from tests.dialects.llama_stack.wire import decoded_request, encoded, message_of
from xenoglot.codec.target import Target
from xenoglot.dialects.llama_stack.parts import media_type
from xenoglot.dialects.llama_stack.request.message_encoder import MISSING_RESULT
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CacheMark,
    Citation,
    Extra,
    File,
    Image,
    Inline,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Prompt, Request, Sampling

PNG = "iVBORw0KGgoAAAA"


def content(value: JSON) -> tuple[Part, ...]:
    return decoded_request(messages=[{"role": "user", "content": value}]).messages[0].content


def sent(*messages: Message, target: Target | None = None) -> tuple[JSON, list[str]]:
    body, losses = encoded(Request(model="m", messages=messages), target)
    return body["messages"], losses


def sent_after_calls(*messages: Message, target: Target | None = None) -> tuple[JSON, list[str]]:
    """Return what is sent behind the calls `1` and `2`."""
    calls = message_of("assistant", ToolCall(id="1", name="t"), ToolCall(id="2", name="t"))
    written, losses = sent(calls, *messages, target=target)
    assert isinstance(written, list)
    return written[1:], losses


def test_l3_l4_content() -> None:
    """L3, L4: a text, one item, or a list; what is empty says nothing."""
    image = {"type": "image", "image": {"url": {"uri": "https://example.com/i.png"}}}
    assert content("Hi") == (Text(text="Hi"),)
    assert content({"type": "text", "text": "Hi"}) == (Text(text="Hi"),)
    assert content([image, {"type": "text", "text": "?"}]) == (
        Image(source=Remote(url="https://example.com/i.png")),
        Text(text="?"),
    )
    assert content("") == ()


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"content": "Hi"}, r"\$.messages\[0\].role: required, expected str"),
        (
            {"role": "developer", "content": "Hi"},
            r"\$.messages\[0\].role: expected one of system, user, assistant, tool",
        ),
        ({"role": "user"}, r"\$.messages\[0\].content: required"),
        ({"role": "user", "content": 5}, r"\$.messages\[0\].content: expected str, object or list, got int"),
        ({"role": "tool", "content": "x"}, r"\$.messages\[0\].call_id: required, expected str"),
        (
            {"role": "assistant", "content": "", "tool_calls": [{"tool_name": "t", "arguments": {}}]},
            r"\$.messages\[0\].tool_calls\[0\].call_id: required, expected str",
        ),
    ],
)
def test_l4_what_a_message_must_have(message: JSONObject, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        decoded_request(messages=[message])


def test_l5_images() -> None:
    """L5: of base64 alone the kind is seen from its beginning; inline bytes of a known kind are written as a URL."""
    (image,) = content([{"type": "image", "image": {"data": PNG}}])
    assert image == Image(source=Inline(PNG, "image/png"), extra=Extra(dialect="llama_stack", form={"data": True}))
    messages, losses = sent(message_of("user", Image(source=Inline("QUJD", "image/gif")), Image(source=Inline("QUJD"))))
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "image", "image": {"url": {"uri": "data:image/gif;base64,QUJD"}}},
                {"type": "image", "image": {"data": "QUJD"}},
            ],
        }
    ]
    assert losses == []


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("/9j/4AAQ", "image/jpeg"),
        ("R0lGODlh", "image/gif"),
        ("UklGRiQAAABXRUJQVlA4", "image/webp"),
        ("UklGRiQAAABXQVZFZm10", None),
        ("QUJD", None),
    ],
)
def test_l5_kinds_of_images(data: str, kind: str | None) -> None:
    assert media_type(data) == kind


def test_w14_nothing_is_fetched() -> None:
    """L-W14: a URL is passed on as it stands, whatever it points to; a media type in capitals or with more is kept."""
    for url in ("http://169.254.169.254/latest", "file:///etc/passwd", "data:IMAGE/PNG;x=1;base64,QUJD"):
        item = {"type": "image", "image": {"url": {"uri": url}}}
        (image,) = content([item])
        messages, losses = sent(message_of("user", image))
        assert (messages, losses) == ([{"role": "user", "content": [item]}], [])


CALL = ToolCall(id="c1", name="f", arguments="{}")
CALLED = {
    "role": "assistant",
    "content": "",
    "stop_reason": "end_of_message",
    "tool_calls": [{"call_id": "c1", "tool_name": "f", "arguments": {}, "arguments_json": "{}"}],
}
TOLD = "$.messages tool result approximated (no call before it has its id; written as text)"


def test_a_result_that_is_missing() -> None:
    """pitfall-44: behind the results that are there comes an error for each that is not."""
    other = {"call_id": "c2", "tool_name": "f", "arguments": {}, "arguments_json": "{}"}
    calls = message_of("assistant", CALL, ToolCall(id="c2", name="f", arguments="{}"))
    messages, losses = sent(calls, message_of("tool", ToolResult(call_id="c2")), message_of("user", "Hi"))
    assert messages == [
        {**CALLED, "tool_calls": [*CALLED["tool_calls"], other]},
        {"role": "tool", "call_id": "c2", "content": ""},
        {"role": "tool", "call_id": "c1", "content": MISSING_RESULT},
        {"role": "user", "content": "Hi"},
    ]
    assert losses == ["$.messages tool result emulated (an error stands for a result that is missing)"]


def test_a_result_of_no_call() -> None:
    """pitfall-44: a result that no call asked for, or a second one, is told by the user behind the others."""
    results = (
        ToolResult(call_id="c9", content=(Text(text="who?"),)),
        ToolResult(call_id="c1", content=(Text(text="a"),)),
        ToolResult(call_id="c1", content=(Text(text="b"), Text(text="c"))),
    )
    messages, losses = sent(message_of("assistant", CALL), message_of("user", *results, "more"))
    assert messages == [
        CALLED,
        {"role": "tool", "call_id": "c1", "content": "a"},
        {"role": "user", "content": "Result of the tool call c9:\nwho?"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Result of the tool call c1:"},
                {"type": "text", "text": "b"},
                {"type": "text", "text": "c"},
            ],
        },
        {"role": "user", "content": "more"},
    ]
    assert losses == [TOLD]


def test_at_home_a_history_is_what_it_was() -> None:
    """pitfall-44: what a client of the dialect sends is its own."""
    result = {"role": "tool", "call_id": "c9", "content": "x"}
    empty = {**CALLED, "stop_reason": ""}
    body, losses = encoded(decoded_request(messages=[CALLED, result, empty]))
    assert (body["messages"], losses) == ([CALLED, result, empty], [])


def test_l4_calls() -> None:
    """L4: arguments are an object beside their text; what is no object, or nests too deep for one, is text alone."""
    calls = (
        ToolCall(id="1", name="a", arguments='{"x": 1.0}'),
        ToolCall(id="2", name="b", arguments='{"x":[{"y":1}]}'),
        ToolCall(id="3", name="c", arguments="not JSON"),
        ToolCall(id="4", name="d"),
        ToolCall(id="5", name="e", arguments="free", kind="custom"),
    )
    results = message_of("tool", *(ToolResult(call_id=call.id) for call in calls))
    messages, losses = sent(message_of("user", "Hi"), message_of("assistant", *calls), results)
    assert messages[1] == {
        "role": "assistant",
        "content": "",
        "stop_reason": "end_of_message",
        "tool_calls": [
            {"call_id": "1", "tool_name": "a", "arguments": {"x": 1.0}, "arguments_json": '{"x": 1.0}'},
            {"call_id": "2", "tool_name": "b", "arguments": '{"x":[{"y":1}]}', "arguments_json": '{"x":[{"y":1}]}'},
            {"call_id": "3", "tool_name": "c", "arguments": "not JSON", "arguments_json": "not JSON"},
            {"call_id": "4", "tool_name": "d", "arguments": {}, "arguments_json": "{}"},
            {"call_id": "5", "tool_name": "e", "arguments": {"input": "free"}, "arguments_json": '{"input":"free"}'},
        ],
    }
    assert losses == [
        "$.messages[1].content[4] kind emulated (a custom tool is written as a function of one string)",
    ]
    read = decoded_request(messages=messages).messages[1].content
    assert [call.arguments for call in read if isinstance(call, ToolCall)] == [
        '{"x": 1.0}',
        '{"x":[{"y":1}]}',
        "not JSON",
        "{}",
        '{"input":"free"}',
    ]


def test_w15_errors_of_tools() -> None:
    """L-W15: that a tool failed is told, and read again."""
    result = ToolResult(call_id="1", content=(Text(text="no city"),), is_error=True, name="weather")
    silent = ToolResult(call_id="2", is_error=True)
    messages, losses = sent_after_calls(message_of("tool", result, silent))
    assert messages == [
        {"role": "tool", "call_id": "1", "tool_name": "weather", "content": "[tool error] no city"},
        {"role": "tool", "call_id": "2", "content": "[tool error] "},
    ]
    assert losses == [
        f"$.messages[1].content[{place}] is_error emulated (the text begins with `[tool error]`)" for place in (0, 1)
    ]
    assert decoded_request(messages=messages).messages[0].content == (result,)
    quoted = ToolResult(call_id="1", content=(Text(text="[tool error] quoted"),))
    assert sent_after_calls(message_of("tool", quoted, ToolResult(call_id="2")))[1] == [
        "$.messages[1].content[0] content approximated (a text that begins with `[tool error]` is an error)"
    ]


def test_results_come_first_and_images_behind_them() -> None:
    """pitfall-4, pitfall-6: each result is a message of its own; only users may show images (L-T)."""
    image = Image(source=Remote(url="https://example.com/i.png"))
    shown, plain = ToolResult(call_id="1", content=(image,)), ToolResult(call_id="2")
    item = {"type": "image", "image": {"url": {"uri": "https://example.com/i.png"}}}
    messages, losses = sent_after_calls(message_of("user", "Look", shown, plain))
    assert messages == [
        {"role": "tool", "call_id": "1", "content": "[image: in the next user message]"},
        {"role": "tool", "call_id": "2", "content": ""},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[image from the result of 1]"},
                item,
                {"type": "text", "text": "Look"},
            ],
        },
    ]
    assert losses == [
        "$.messages[1].content[1] order approximated (the results of tools come first)",
        "$.messages[1].content[1].content[0] image emulated (moved to the user turn after the results of tools)",
        "$.messages[1].content[2] order approximated (the results of tools come first)",
    ]
    messages, _ = sent_after_calls(message_of("user", shown, plain), target=Target(tool_result_media=True))
    assert messages == [
        {"role": "tool", "call_id": "1", "content": [item]},
        {"role": "tool", "call_id": "2", "content": ""},
    ]
    messages, _ = sent_after_calls(message_of("user", plain, shown), message_of("assistant", "Ah"))
    assert [message["role"] for message in messages] == ["tool", "tool", "user", "assistant"]


def test_what_has_no_place() -> None:
    """L-W12: thoughts are not sent; a refusal, a document and a transcript are words."""
    messages, losses = sent(
        Message(role="developer", content=(Text(text="Be brief."),), name="boss"),
        message_of(
            "user",
            Audio(transcript="hello"),
            Audio(source=Inline("QUJD")),
            File(source=Plain(text="page"), name="a.txt"),
            Image(source=Stored(id="f"), detail="low"),
            Opaque(dialect="chat", data={}, text="x"),
            Opaque(dialect="chat", data={}),
            Text(text="y", cache=CacheMark(), citations=(Citation(kind="url_citation"),)),
        ),
        message_of("assistant", ToolCall(id="1", name="t"), Reasoning(text="hm"), Refusal(text="no")),
        message_of("tool", ToolResult(call_id="1")),
    )
    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("hello", "a.txt\npage", "x", "y")]},
        {
            "role": "assistant",
            "content": "no",
            "stop_reason": "end_of_message",
            "tool_calls": [{"call_id": "1", "tool_name": "t", "arguments": {}, "arguments_json": "{}"}],
        },
        {"role": "tool", "call_id": "1", "content": ""},
    ]
    assert losses == [
        "$.messages[0] name dropped (a message has none)",
        "$.messages[0] role approximated (`developer` is written as `system`)",
        "$.messages[1].content[0] audio approximated (written as text)",
        "$.messages[1].content[1] audio dropped (the dialect holds texts and images only)",
        "$.messages[1].content[2] name emulated (stands in the line before its text)",
        "$.messages[1].content[2] file approximated (written as text)",
        "$.messages[1].content[3] detail dropped (an image of the dialect has no such field)",
        "$.messages[1].content[3] image dropped (only a URL or inline data can be written)",
        "$.messages[1].content[4] part approximated (written as text)",
        "$.messages[1].content[5] part dropped (the dialect holds texts and images only)",
        "$.messages[1].content[6] cache dropped (the server decides what it caches)",
        "$.messages[1].content[6] citations dropped (the dialect cites nothing)",
        "$.messages[2] order approximated (calls come last)",
        "$.messages[2].content[1] reasoning dropped (the dialect holds texts and images only)",
        "$.messages[2].content[2] refusal approximated (written as text)",
    ]


def test_a_server_that_takes_no_lists_of_texts() -> None:
    messages, losses = sent(message_of("user", "a", "b"), target=Target(text_parts=False))
    assert messages == [{"role": "user", "content": "a\n\nb"}]
    assert losses == ["$.messages[0] content approximated (its texts are joined)"]


def test_s2_context() -> None:
    """L-S2: what was retrieved for a question stands behind it for whoever answers, and goes home beside it."""
    request = decoded_request(messages=[{"role": "user", "content": "Q", "context": [{"type": "text", "text": "C"}]}])
    assert request.messages[0].content == (Text(text="Q"), Text(text="C"))
    assert encoded(request)[0]["messages"] == [
        {"role": "user", "content": "Q", "context": [{"type": "text", "text": "C"}]},
    ]


def test_a_prompt_is_a_turn_of_the_user() -> None:
    body, losses = encoded(Request(model="m", prompt=Prompt(texts=("Once",))))
    assert body["messages"] == [{"role": "user", "content": "Once"}]
    assert losses == ["$.prompt prompt emulated (written as a turn of the user)"]


def test_what_would_be_another_request() -> None:
    request = Request(model="m", messages=(message_of("user", "Hi"),), previous="r")
    with pytest.raises(WireError, match=r"\$.previous: this model keeps no conversation"):
        encoded(request)
    with pytest.raises(WireError, match=r"\$.n: this model gives one answer per request"):
        encoded(Request(model="m", sampling=Sampling(n=2)))


def test_fields_that_the_dialect_does_not_have() -> None:
    request = Request(model="m", user="u", metadata={"a": 1}, store=True, parallel_tool_calls=False, verbosity="low")
    assert encoded(request)[1] == [
        f"$ {field} dropped (the dialect has no such field)"
        for field in ("parallel_tool_calls", "verbosity", "user", "metadata", "store")
    ]
