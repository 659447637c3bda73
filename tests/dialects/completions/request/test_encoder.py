"""Requests of other dialects, written as texts to be continued."""

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSONObject
from xenoglot.model.request import (
    Message,
    OutputFormat,
    Prompt,
    Request,
    Role,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

COMPLETIONS, CHAT = get("completions"), get("chat")
LIMIT = {"max_tokens": 4096}
UNSAID = Loss("$.sampling", "max_tokens", "approximated", "the dialect's own is 16; 4096 is written")
NEXT = "\n\nUser:"


def turn(role: Role, *parts: Part | str, name: str | None = None) -> Message:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, content=content, name=name)


def written(request: Request, target: Target | None = None) -> tuple[JSONObject, list[Loss]]:
    losses = Losses()
    return COMPLETIONS.encode_request(request, losses, target or Target()), list(losses)


def text_of(*messages: Message) -> str:
    text: str = written(Request(model="m", messages=messages))[0]["prompt"]
    return text


def test_the_one_turn_of_a_user_is_the_prompt() -> None:
    body, losses = written(Request(model="m", messages=(turn("user", "Hello", "there"),)))
    assert body == {"model": "m", "prompt": "Hello\nthere", **LIMIT}
    assert losses == [Loss("$.messages", "turns", "emulated", "the one turn of the user is the prompt"), UNSAID]


@pytest.mark.parametrize("text", ["Say this is a test", "", " a\n"], ids=repr)
def test_by_way_of_chat_a_text_comes_back(text: str) -> None:
    body = {"model": "m", "prompt": text, "max_tokens": 5}
    request = COMPLETIONS.decode_request(body)
    if not text:
        with pytest.raises(WireError, match="the prompt is empty"):
            CHAT.encode_request(request, Losses(), Target())
        return
    away = CHAT.encode_request(request, Losses(), Target())
    assert away == {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 5}
    assert COMPLETIONS.encode_request(CHAT.decode_request(away), Losses(), Target()) == body


def test_a_conversation_is_a_transcript() -> None:
    messages = (
        turn("system", "Be brief."),
        turn("user", "Hi"),
        turn("assistant", "Hello!"),
        turn("user", "Bye", name="ann"),
    )
    body, losses = written(Request(model="m", messages=messages, sampling=Sampling(stop=("END",))))
    assert body["prompt"] == "System: Be brief.\n\nUser: Hi\n\nAssistant: Hello!\n\nUser (ann): Bye\n\nAssistant:"
    assert body["stop"] == ["END", NEXT]
    assert losses == [
        Loss("$.messages[3]", "name", "emulated", "written after the speaker's role"),
        Loss("$.messages", "turns", "emulated", "written as a transcript"),
        Loss("$.sampling", "stop", "emulated", "the model's turn ends where the user would speak next"),
        UNSAID,
    ]


def test_a_last_turn_of_the_assistant_is_continued() -> None:
    assert text_of(turn("user", "Count"), turn("assistant", "1, 2,")) == "User: Count\n\nAssistant: 1, 2,"


def test_stop_strings_that_leave_no_room_are_left_alone() -> None:
    stops = ("a", "b", "c", "d")
    messages = (turn("system", "x"), turn("user", "y"))
    body, losses = written(Request(model="m", messages=messages, sampling=Sampling(stop=stops)))
    assert body["stop"] == list(stops)
    assert [loss.what for loss in losses] == ["turns", "max_tokens"]
    with pytest.raises(WireError, match="at most 3 stop strings"):
        written(Request(model="m", messages=messages, sampling=Sampling(stop=stops)), Target(stop_limit=3))


def test_tools_are_told_in_words() -> None:
    messages = (
        turn("user", "Rain?"),
        turn("assistant", Reasoning(text="hm"), ToolCall(id="1", name="weather", arguments="{}")),
        turn("tool", ToolResult(call_id="1", content=(Text(text="no"),))),
        turn("user", ToolResult(call_id="2", content=(Text(text="gone"),), is_error=True), "So?"),
    )
    assert text_of(*messages) == (
        "User: Rain?\n\nAssistant: [called weather({})]\n\nTool: no\n\n"
        "Tool: [tool error] gone\n\nUser: So?\n\nAssistant:"
    )


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Refusal(text="no"), "no"),
        (File(source=Plain(text="a file")), "a file"),
        (File(source=Nested(parts=(Text(text="a"), Text(text="b")))), "a\nb"),
        (Audio(transcript="spoken"), "spoken"),
        (Opaque(dialect="x", data={}, text="new"), "new"),
    ],
    ids=["refusal", "plain", "nested", "audio", "opaque"],
)
def test_what_has_words(part: Part, words: str) -> None:
    assert text_of(turn("user", part)) == words


@pytest.mark.parametrize(
    "part",
    [Image(source=Remote(url="u")), Audio(source=Inline(data="YQ==")), File(source=Inline(data="YQ=="))],
    ids=["image", "audio", "file"],
)
def test_what_has_none_makes_another_question(part: Part) -> None:
    with pytest.raises(WireError) as caught:
        text_of(turn("user", "Look:", part))
    assert caught.value.path == "$.messages[0].content[1]"
    body, losses = written(Request(model="m", messages=(turn("user", "a"), turn("assistant", part, "b"))))
    assert body["prompt"] == "User: a\n\nAssistant: b"
    assert (
        Loss("$.messages[1].content[0]", type(part).__name__.lower(), "dropped", "the dialect holds text only")
        in losses
    )


def test_what_the_dialect_has_no_field_for() -> None:
    request = Request(
        model="m",
        messages=(turn("user", "a"),),
        tools=(Tool(name="t"),),
        tool_choice=ToolChoice(mode="auto"),
        thinking=Thinking(effort="low"),
        output=OutputFormat(kind="json_schema", schema={}),
        sampling=Sampling(top_k=3, top_logprobs=2),
        metadata={"a": "b"},
        store=True,
    )
    body, losses = written(request)
    assert body == {"model": "m", "prompt": "a", **LIMIT}
    assert [(loss.where, loss.what, loss.how) for loss in losses] == [
        ("$.tools[0]", "tool", "dropped"),
        ("$", "tool_choice", "dropped"),
        ("$", "output", "dropped"),
        ("$.messages", "turns", "emulated"),
        ("$.sampling", "max_tokens", "approximated"),
        ("$.sampling", "top_k", "dropped"),
        ("$.sampling", "top_logprobs", "dropped"),
        ("$", "thinking", "dropped"),
        ("$", "metadata", "dropped"),
        ("$", "store", "dropped"),
    ]


def test_a_call_that_is_demanded_cannot_be_had() -> None:
    request = Request(model="m", messages=(turn("user", "a"),), tools=(Tool(name="t"),))
    with pytest.raises(WireError) as caught:
        written(replace(request, tool_choice=ToolChoice(mode="required")))
    assert caught.value.path == "$.tool_choice"


def test_a_conversation_that_was_not_sent_cannot_be_gone_on_with() -> None:
    """pitfall-59: without what came before, it is another question."""
    with pytest.raises(WireError, match=r"\$.previous: this model keeps no conversation"):
        written(Request(model="m", messages=(turn("user", "a"),), previous="p"))


def test_what_a_server_is_known_to_take() -> None:
    request = Request(model="m", messages=(turn("user", "a"),), sampling=Sampling(top_k=3, max_tokens=100))
    body, _ = written(request, Target(extended_sampling=True, max_tokens_limit=50))
    assert body == {"model": "m", "prompt": "a", "top_k": 3, "max_tokens": 50}


def test_likelihoods_and_usage_are_asked_for_in_its_own_way() -> None:
    request = Request(model="m", messages=(turn("user", "a"),), sampling=Sampling(logprobs=True), stream=True)
    body, _ = written(request)
    assert body == {
        "model": "m",
        "prompt": "a",
        "logprobs": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **LIMIT,
    }


def test_a_prompt_with_system_turns() -> None:
    request = Request(model="m", messages=(turn("system", "Be brief."),), prompt=Prompt(texts=("Hi", "Ho"), echo=True))
    body, _ = written(request)
    assert body == {
        "model": "m",
        "prompt": ["System: Be brief.\n\nHi", "System: Be brief.\n\nHo"],
        "echo": True,
        **LIMIT,
    }
    with pytest.raises(WireError, match="tokens cannot follow"):
        written(replace(request, prompt=Prompt(texts=((1,),))))


@pytest.mark.parametrize(
    ("prompt", "sampling", "path"),
    [
        (Prompt(texts=("a",), echo=True), Sampling(logprobs=True), "$.echo"),
        (Prompt(texts=("a",), best_of=3), Sampling(n=2), "$.best_of"),
        (Prompt(texts=("a",)), Sampling(max_tokens=0), "$.max_tokens"),
        (Prompt(texts=("a",), suffix="b"), Sampling(), "$.suffix"),
        (Prompt(texts=((1, 2),)), Sampling(), "$.prompt"),
        (Prompt(texts=("a", "b")), Sampling(), "$.prompt"),
        (Prompt(texts=()), Sampling(), "$.prompt"),
    ],
    ids=["echo-weighed", "best-of", "nothing", "suffix", "tokens", "several", "none"],
)
def test_what_turns_cannot_say(prompt: Prompt, sampling: Sampling, path: str) -> None:
    with pytest.raises(WireError) as caught:
        CHAT.encode_request(Request(model="m", prompt=prompt, sampling=sampling), Losses(), Target())
    assert caught.value.path == path
