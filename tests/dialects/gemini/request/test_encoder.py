"""Writing a stranger's request: what servers of the dialect demand, and what it costs."""

import pytest
from msgspec.structs import replace

from tests.dialects.gemini.wire import written
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.dialects.gemini import GEMINI
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Image, Inline, Opaque, Origin, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.json import JSON, JSONObject
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

HI = Message(role="user", content=(Text(text="Hi"),))
SIGNED = Extra(dialect="gemini", fields={"thoughtSignature": "CiQB"})


def message_of(role: Role, text: str) -> Message:
    return Message(role=role, content=(Text(text=text),))


def contents(*messages: Message, target: Target | None = None) -> list[JSON]:
    found: list[JSON] = written(*messages, target=target)[0]["contents"]
    return found


def turn(role: str, *parts: JSONObject) -> JSONObject:
    return {"role": role, "parts": list(parts)}


def test_system_turns_at_the_head_are_hoisted() -> None:
    """pitfall-35: and those between the others are the user's, behind the results of tools (pitfall-3, pitfall-4)."""
    body, losses = written(
        message_of("system", "Be brief."),
        message_of("developer", "And kind."),
        HI,
        Message(role="assistant", content=(ToolCall(id="a", name="f", extra=SIGNED),)),
        message_of("system", "Hurry."),
        Message(role="tool", content=(ToolResult(call_id="a", content=(Text(text="ok"),)),)),
    )
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "And kind."}]}
    assert body["contents"] == [
        turn("user", {"text": "Hi"}),
        turn("model", {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": "CiQB"}),
        turn("user", {"functionResponse": {"id": "a", "name": "f", "response": {"output": "ok"}}}, {"text": "Hurry."}),
    ]
    assert losses == [
        "$.messages[1] role approximated (`developer` is written as `system`)",
        "$.messages[4] role approximated (a system turn among the others is written as the user's)",
    ]


def test_turns_alternate_and_the_user_begins() -> None:
    """pitfall-36, pitfall-37."""
    assert contents(
        message_of("assistant", "a"), message_of("assistant", "b"), message_of("user", "c"), message_of("user", "d")
    ) == [
        turn("user", {"text": "(The conversation begins.)"}),
        turn("model", {"text": "a"}, {"text": "b"}),
        turn("user", {"text": "c"}, {"text": "d"}),
    ]


def test_every_call_has_one_result_in_order() -> None:
    """pitfall-44."""
    calls = tuple(ToolCall(id=name, name=name, arguments="{}", extra=SIGNED) for name in "abc")
    results = tuple(ToolResult(call_id=name, content=(Text(text=name),)) for name in "xca")
    body, losses = written(HI, Message(role="assistant", content=calls), Message(role="user", content=results))
    parts = body["contents"][2]["parts"]
    assert [part.get("functionResponse", part) for part in parts] == [
        {"id": "a", "name": "a", "response": {"output": "a"}},
        {"id": "b", "name": "b", "response": {"error": "The tool gave no result."}},
        {"id": "c", "name": "c", "response": {"output": "c"}},
        {"text": 'Result of the tool call x:\n{"output":"x"}'},
    ]
    assert losses == [
        "$.messages[2] tool_result approximated (no call of the turn before matches it; written as text)",
        "$.messages[1] tool_result emulated (a call without a result gets a placeholder)",
    ]


def test_calls_of_this_turn_that_nobody_signed_get_the_stand_in() -> None:
    """pitfall-52: the first of each step since the user last said something, and no other."""
    step = (
        Message(role="assistant", content=(ToolCall(id="a", name="f"), ToolCall(id="b", name="f"))),
        Message(role="tool", content=(ToolResult(call_id="a"), ToolResult(call_id="b"))),
    )
    done = message_of("assistant", "Done.")
    signatures = [
        [part.get("thoughtSignature") for part in content["parts"]]
        for content in contents(HI, *step, done, HI, *step, *step)
    ]
    stand_in = "skip_thought_signature_validator"
    assert signatures == [
        [None],
        [None, None],
        [None, None],
        [None],
        [None],
        [stand_in, None],
        [None, None],
        [stand_in, None],
        [None, None],
    ]


def test_a_signature_of_the_dialect_stays_with_its_call() -> None:
    """pitfall-52: whatever dialect the conversation came in."""
    body, losses = written(HI, Message(role="assistant", content=(ToolCall(id="a", name="f", extra=SIGNED),)))
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "CiQB"
    assert losses == ["$.messages[1] tool_result emulated (a call without a result gets a placeholder)"]


def test_a_signature_in_the_words_of_another_face_of_google_is_taken() -> None:
    """pitfall-52: https://ai.google.dev/gemini-api/docs/thought-signatures#openai."""
    extra = Extra(dialect="chat", fields={"extra_content": {"google": {"thought_signature": "CiQB"}}})
    body, losses = written(HI, Message(role="assistant", content=(ToolCall(id="a", name="f", extra=extra),)))
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "CiQB"
    assert "$.messages[1].content[0] extra_content emulated (written as `thoughtSignature`)" in losses


@pytest.mark.parametrize(
    ("part", "wire"),
    [
        (Reasoning(text="Hm.", signature="CiQB", origin=Origin(dialect="gemini")), "CiQB"),
        (Reasoning(text="Hm.", encrypted="CiQC", origin=Origin(dialect="gemini")), "CiQC"),
        (Reasoning(text="Hm.", signature="CiQB", origin=Origin(dialect="gemini", provider="other")), None),
        (Reasoning(text="Hm.", signature="x", origin=Origin(dialect="messages")), None),
        (Reasoning(text="Hm."), None),
        (Reasoning(text="Hm.", signature="no bytes!", origin=Origin(dialect="gemini")), None),
    ],
)
def test_only_what_the_server_sealed_goes_back(part: Reasoning, wire: str | None) -> None:
    """pitfall-10, pitfall-51."""
    parts = contents(
        HI, Message(role="assistant", content=(part, Text(text="Yes."))), target=Target(provider="google")
    )[1]
    thought = [] if wire is None else [{"text": "Hm.", "thought": True, "thoughtSignature": wire}]
    assert parts == {"role": "model", "parts": [*thought, {"text": "Yes."}]}


@pytest.mark.parametrize("stays", [True, False])
def test_pictures_in_results(*, stays: bool) -> None:
    """pitfall-7."""
    result = ToolResult(call_id="a", content=(Image(source=Inline(data="eA==", media_type="image/png")),))
    call = ToolCall(id="a", name="f", extra=SIGNED)
    messages = (HI, Message(role="assistant", content=(call,)), Message(role="tool", content=(result,)))
    picture = {"inlineData": {"mimeType": "image/png", "data": "eA=="}}
    response = {"id": "a", "name": "f", "response": {"output": ""}}
    parts = contents(*messages, target=Target(tool_result_media=stays))[2]["parts"]
    expected = (
        [{"functionResponse": {**response, "parts": [picture]}}] if stays else [{"functionResponse": response}, picture]
    )
    assert parts == expected


def test_arguments_that_are_no_object() -> None:
    """pitfall-40: they come back as they were."""
    call = ToolCall(id="a", name="f", arguments="not JSON", extra=SIGNED)
    body, _ = written(HI, Message(role="assistant", content=(call,)))
    assert body["contents"][1]["parts"][0]["functionCall"]["args"] == {"_raw": "not JSON"}
    (again,) = GEMINI.decode_request(body).messages[1].content
    assert isinstance(again, ToolCall)
    assert again.arguments == "not JSON"


@pytest.mark.parametrize(
    ("thinking", "target", "config"),
    [
        (Thinking(effort="low"), Target(), {"thinkingLevel": "LOW"}),
        (Thinking(effort="max"), Target(), {"thinkingLevel": "XHIGH"}),
        (Thinking(effort="xhigh"), Target(efforts=("low", "high")), {"thinkingLevel": "HIGH"}),
        (Thinking(effort="medium"), Target(thinking="budget"), {"thinkingBudget": 8192}),
        (Thinking(effort="none"), Target(), {"thinkingBudget": 0}),
        (Thinking(mode="disabled"), Target(), {"thinkingBudget": 0}),
        (Thinking(mode="enabled", budget_tokens=2000), Target(), {"thinkingBudget": 2000, "includeThoughts": True}),
        (Thinking(mode="adaptive"), Target(), {"thinkingBudget": -1, "includeThoughts": True}),
        (Thinking(mode="adaptive", effort="high"), Target(), {"thinkingLevel": "HIGH", "includeThoughts": True}),
        (Thinking(effort="high", summary="auto"), Target(), {"thinkingLevel": "HIGH", "includeThoughts": True}),
        (Thinking(effort="high", display="omitted"), Target(), {"thinkingLevel": "HIGH", "includeThoughts": False}),
    ],
)
def test_how_much_to_think(thinking: Thinking, target: Target, config: JSONObject) -> None:
    """pitfall-25, pitfall-26, pitfall-27."""
    assert written(HI, thinking=thinking, target=target)[0]["generationConfig"] == {"thinkingConfig": config}


def test_a_server_that_is_not_told_how_to_think() -> None:
    body, losses = written(HI, thinking=Thinking(effort="high"), target=Target(thinking="none"))
    assert "generationConfig" not in body
    assert losses == ["$.thinking thinking dropped (the server takes no settings for thinking)"]


def test_how_the_answer_is_drawn() -> None:
    """pitfall-20, pitfall-21: a seed has 32 bits, and the limit of stop strings is 5."""
    sampling = Sampling(max_tokens=9, top_k=0, seed=2**32 + 5, stop=("a", "b", "c", "d", "e"), min_p=0.1, n=2)
    body, losses = written(HI, sampling=sampling, target=Target(max_tokens_limit=8))
    assert body["generationConfig"] == {
        "candidateCount": 2,
        "maxOutputTokens": 8,
        "seed": 5,
        "stopSequences": ["a", "b", "c", "d", "e"],
    }
    assert losses == [
        "$.sampling max_tokens approximated (lowered to 8, the most of the server)",
        "$.sampling seed approximated (seeds have 32 bits: its remainder is written)",
        "$.sampling min_p dropped (the dialect has no such field)",
    ]


def test_tools_and_a_choice_among_them() -> None:
    """pitfall-14, pitfall-43, pitfall-62."""
    tools = (
        Tool(name="f", parameters={"type": "object", "properties": {}}, strict=True),
        Tool(name="free text", kind="custom"),
        Opaque(dialect="messages", data={"type": "web_search"}),
    )
    body, losses = written(HI, tools=tools, tool_choice=ToolChoice(mode="auto", names=("f",)))
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "parametersJsonSchema": {"type": "object", "properties": {}}},
                {
                    "name": "free_text_a327bf80",
                    "parametersJsonSchema": {
                        "type": "object",
                        "properties": {"input": {"type": "string"}},
                        "required": ["input"],
                    },
                },
            ]
        }
    ]
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}}
    assert losses == [
        "$.tools[0] strict dropped (the dialect has no such field)",
        "$.tools[1] kind emulated (a custom tool is written as a function of one string)",
        "$.tools[1] name emulated (shortened to what the server allows; the answer has it back)",
        "$.tools[2] web_search dropped (a tool that only a server of messages runs)",
        "$.tool_choice mode approximated (calls among some of the tools are held to their schemas too)",
    ]


def test_the_form_of_the_answer() -> None:
    """pitfall-28: the schema is written as it is."""
    output = OutputFormat(kind="json_schema", schema={"type": "object"}, name="x", strict=True)
    body, losses = written(HI, output=output)
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
    }
    assert losses == [
        "$.output name dropped (the dialect gives a schema none)",
        "$.output strict dropped (the dialect gives a schema none)",
    ]


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (Request(model="m", previous="resp_1"), "$.previous"),
        (Request(model="m", messages=(HI,), sampling=Sampling(stop=tuple("abcdef"))), "$.stop"),
        (Request(model="m", prompt=Prompt(texts=("a", "b"))), "$.prompt"),
    ],
)
def test_what_cannot_be_asked_is_refused(request_: Request, path: str) -> None:
    with pytest.raises(WireError) as caught:
        GEMINI.encode_request(request_, Losses(), Target())
    assert caught.value.path == path


def test_the_full_name_of_a_model_is_in_the_path_already() -> None:
    body = GEMINI.encode_request(Request(model="models/m", messages=(HI,)), Losses(), Target())
    assert body["model"] == "m"
    assert GEMINI.encode_count_request is not None
    asked = GEMINI.encode_count_request(Request(model="m", messages=(HI,), stream=True), Losses(), Target())
    contents: JSON = [turn("user", {"text": "Hi"})]
    assert asked == {"model": "m", "generateContentRequest": {"model": "models/m", "contents": contents}}


def test_a_call_that_came_without_an_id_has_one_when_its_result_comes_from_elsewhere() -> None:
    """pitfall-52: the gateway puts back what the dialect said of the call; the result was never the dialect's."""
    call = ToolCall(id="c", name="f", arguments="{}", extra=replace(SIGNED, form={"id": "derived"}))
    body, losses = written(
        HI,
        Message(role="assistant", content=(call,)),
        Message(role="tool", content=(ToolResult(call_id="c", content=(Text(text="ok"),)),)),
    )
    assert body["contents"][1:] == [
        {
            "role": "model",
            "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}, **SIGNED.fields}],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "ok"}}}],
        },
    ]
    assert losses == []


@pytest.mark.parametrize("data", [{"functionCall": 5}, {"functionCall": {}}, {"functionResponse": []}])
def test_calls_and_results_that_nobody_understood(data: JSONObject) -> None:
    body, _ = written(HI, Message(role="assistant", content=(Opaque(dialect="gemini", data=data),)))
    assert body["contents"][1]["parts"][0].items() >= data.items()


def test_texts_without_words_are_left_out() -> None:
    call = ToolCall(id="a", name="f", extra=SIGNED)
    body, losses = written(HI, Message(role="assistant", content=(Text(text=""), call)))
    assert [list(part) for part in body["contents"][1]["parts"]] == [["functionCall", *SIGNED.fields]]
    assert losses == ["$.messages[1] tool_result emulated (a call without a result gets a placeholder)"]


def test_the_beginning_of_a_prompt_that_a_server_keeps_is_known_to_it_alone() -> None:
    """Left out, it would be another request."""
    body = {
        "model": "m",
        "contents": [{"role": "user", "parts": [{"text": "Go on"}]}],
        "cachedContent": "cachedContents/1",
    }
    request = GEMINI.decode_request(body)
    assert GEMINI.encode_request(request, Losses(), Target()) == body
    with pytest.raises(WireError, match=r"^\$.cachedContent: "):
        get("messages").encode_request(request, Losses(), Target())
