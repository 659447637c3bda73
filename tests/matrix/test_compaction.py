"""Official SDKs compact conversations and clear old parts through the gateway, over an upstream of every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from tests.matrix.all_dialects_gateway import AllDialectsGateway
from xenoglot import dialect_registry as dialects
from xenoglot.codec.requests.compacted_history import HEADING
from xenoglot.model.content import Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.policy.context_edits import CLEARED, INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request

UPSTREAMS = [name for name in dialects.names() if name != "ollama_generate"]
"""Those whose models take a conversation."""

SUMMARY = "The user wants a parser; the lexer is done."
SAID: list[JSON] = [
    {"type": "message", "role": "user", "content": "Write a parser."},
    {"type": "message", "role": "assistant", "content": "The lexer is done."},
    {"type": "message", "role": "user", "content": "Go on."},
]
CALLED: list[JSON] = [
    SAID[0],
    {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command": "ls"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "lexer.py"},
    SAID[1],
]
SHELL: JSON = {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}, "strict": False}


def told(*parts: Part, reason: str = "stop", tokens: int = 100) -> Response:
    """Return an answer of `parts`."""
    finish = Finish(reason=reason)  # type: ignore[arg-type]
    usage = Usage(input_tokens=tokens, output_tokens=tokens // 10)
    return Response(
        id="answer-1", created=1_795_000_000, candidates=(Candidate(content=parts, finish=finish),), usage=usage
    )


WRITTEN = told(Reasoning(text="What matters?"), Text(text=SUMMARY))
DONE = told(Text(text="The parser is done."), tokens=40)


def texts(request: Request) -> list[tuple[str, str]]:
    """Return the roles and words of the turns of a request."""
    return [
        (message.role, part.text) for message in request.messages for part in message.content if isinstance(part, Text)
    ]


def read(request: Request) -> str:
    """Return all words of a request."""
    words = [text for _, text in texts(request)]
    return "\n".join([*words, *(str(text) for text in (request.prompt.texts if request.prompt else ()))])


@pytest.fixture(scope="module")
def gateway() -> Generator[AllDialectsGateway]:
    """Give a gateway with servers of all dialects."""
    with AllDialectsGateway() as running:
        yield running


@pytest.fixture(scope="module")
def codex(gateway: AllDialectsGateway) -> Generator[openai.OpenAI]:
    """Give a client of Responses."""
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="-", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(gateway: AllDialectsGateway) -> Generator[anthropic.Anthropic]:
    """Give a client of Messages."""
    with anthropic.Anthropic(base_url=gateway.url, api_key="-", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("name", UPSTREAMS)
def test_responses_compact_returns_what_the_user_said_and_one_summary(
    gateway: AllDialectsGateway, codex: openai.OpenAI, lines: AccessLines, name: str
) -> None:
    """Codex installs the output as its history, and sends it back with the next turn."""
    speaker = gateway.speakers[name]
    speaker.script(WRITTEN, DONE)
    compacted = codex.responses.compact(model=f"{name}-m", input=SAID, instructions="Be brief.")
    line = lines.next()
    assert (compacted.object, [item.type for item in compacted.output]) == (
        "response.compaction",
        ["message", "message", "compaction"],
    )
    assert (compacted.usage.input_tokens, compacted.usage.output_tokens) == (100, 10)
    assert (line["route"], line["usage"]["input_tokens"]) == ("/v1/responses/compact", 100)
    assert INSTRUCTIONS in read(speaker.requests[0])
    again = [item.to_dict(warnings=False) for item in compacted.output]
    answer = codex.responses.create(model=f"{name}-m", input=[*again, {"role": "user", "content": "And now?"}])  # type: ignore[list-item]
    assert answer.output_text == "The parser is done."
    asked = read(speaker.requests[1])
    assert f"{HEADING}{SUMMARY}" in asked
    assert "The lexer is done." not in asked.replace(SUMMARY, "")
    assert "Write a parser." in asked


@pytest.mark.parametrize("name", UPSTREAMS)
def test_a_trigger_is_answered_by_exactly_one_compaction_item(
    gateway: AllDialectsGateway, codex: openai.OpenAI, name: str
) -> None:
    """Codex streams it, and fails with "expected exactly one compaction output item" for anything else."""
    speaker = gateway.speakers[name]
    speaker.script(WRITTEN, WRITTEN)
    asked = {"model": f"{name}-m", "input": [*CALLED, {"type": "compaction_trigger"}], "tools": [SHELL], "store": False}
    events = list(codex.responses.create(**asked, stream=True))  # type: ignore[call-overload]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    whole = codex.responses.create(**asked)  # type: ignore[call-overload]
    assert [item.type for item in done] == ["compaction"]
    assert [event.type for event in events].count("response.compaction.compacting") == 1
    assert [item.type for item in events[-1].response.output] == ["compaction"]
    assert (events[-1].type, events[-1].response.usage.input_tokens) == ("response.completed", 100)
    assert [item.type for item in whole.output] == ["compaction"]
    assert whole.output[0].encrypted_content == done[0].encrypted_content


def test_the_model_summarises_the_conversation_as_it_was_and_can_call_nothing(
    gateway: AllDialectsGateway, codex: openai.OpenAI
) -> None:
    """Turns and tools stay: a server that caches prompts has read them already."""
    gateway.speakers["chat"].script(WRITTEN)
    body = [*CALLED, {"type": "compaction_trigger"}]
    codex.responses.create(model="chat-m", input=body, tools=[SHELL], instructions="Be brief.")
    (asked,) = gateway.speakers["chat"].requests
    assert texts(asked) == [
        ("system", "Be brief."),
        ("user", "Write a parser."),
        ("assistant", "The lexer is done."),
        ("user", INSTRUCTIONS),
    ]
    assert [part.name for message in asked.messages for part in message.content if isinstance(part, ToolCall)] == [
        "shell"
    ]
    assert [tool.name for tool in asked.tools] == ["shell"]  # type: ignore[union-attr]
    assert asked.tool_choice is not None
    assert asked.tool_choice.mode == "none"


def test_a_compaction_from_a_number_of_tokens_on(gateway: AllDialectsGateway, codex: openai.OpenAI) -> None:
    """The answer begins with the summary; the model had the last turn beside it. Both calls are in the usage."""
    speaker = gateway.speakers["chat"]
    speaker.script(WRITTEN, DONE)
    wish: JSON = [{"type": "compaction", "compact_threshold": 5}]
    answer = codex.responses.create(model="chat-m", input=SAID, context_management=wish)
    assert [item.type for item in answer.output] == ["compaction", "message"]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (140, 14)
    assert texts(speaker.requests[1]) == [("user", f"{HEADING}{SUMMARY}"), ("user", "Go on.")]


def test_below_the_number_nothing_is_compacted(gateway: AllDialectsGateway, codex: openai.OpenAI) -> None:
    speaker = gateway.speakers["chat"]
    speaker.script(DONE)
    wish: JSON = [{"type": "compaction", "compact_threshold": 50_000}]
    answer = codex.responses.create(model="chat-m", input=SAID, context_management=wish)
    assert [item.type for item in answer.output] == ["message"]
    assert len(speaker.requests) == 1


def test_a_stored_conversation_is_compacted_and_continued(gateway: AllDialectsGateway, codex: openai.OpenAI) -> None:
    """`previous_response_id` names what is compacted, and then what is continued."""
    speaker = gateway.speakers["chat"]
    speaker.script(DONE, WRITTEN, WRITTEN, DONE)
    first = codex.responses.create(model="chat-m", input="Write a parser.")
    compacted = codex.responses.compact(model="chat-m", previous_response_id=first.id)
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    trigger: JSON = [{"type": "compaction_trigger"}]
    shorter = codex.responses.create(model="chat-m", input=trigger, previous_response_id=first.id)
    codex.responses.create(model="chat-m", input="And now?", previous_response_id=shorter.id)
    assert texts(speaker.requests[3]) == [
        ("user", "Write a parser."),
        ("user", f"{HEADING}{SUMMARY}"),
        ("user", "And now?"),
    ]


def test_a_model_that_writes_no_summary_is_a_failure_and_a_seal_that_is_none_a_400(
    gateway: AllDialectsGateway, codex: openai.OpenAI
) -> None:
    gateway.speakers["chat"].script(*[told(Text(text=" "))] * 9)
    with pytest.raises(openai.APIStatusError, match="wrote no summary") as failed:
        codex.responses.compact(model="chat-m", input=SAID)
    assert failed.value.status_code == 502
    for content in ("gAAAAABq", "xenoglot:summary:AAAA"):
        with pytest.raises(openai.BadRequestError, match=r"only the server that compacted|is damaged"):
            codex.responses.create(
                model="chat-m",
                input=[{"type": "compaction", "encrypted_content": content}, SAID[2]],
            )


def test_a_body_that_is_no_request_is_refused_in_the_words_of_the_dialect(codex: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="model"):
        codex.post("/responses/compact", body={"input": "Hi"}, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="input"):
        codex.post("/responses/compact", body={"model": "chat-m", "input": 3}, cast_to=object)


HISTORY: list[JSON] = [
    {"role": "user", "content": "List the files."},
    *(
        turn
        for number in range(4)
        for turn in (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Which?", "signature": "s"},
                    {"type": "tool_use", "id": f"t{number}", "name": "ls", "input": {"path": f"/{number}"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "a.py b.py " * 50}],
            },
        )
    ),
]
LS: JSON = {"name": "ls", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def results(request: Request) -> list[str]:
    """Return what the tools returned, shortened."""
    return [
        inner.text[:25]
        for message in request.messages
        for part in message.content
        if isinstance(part, ToolResult)
        for inner in part.content
        if isinstance(inner, Text)
    ]


@pytest.mark.parametrize("name", ["chat", "messages", "responses", "gemini", "ollama"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_old_tool_results_and_reasoning_are_cleared(
    gateway: AllDialectsGateway, claude: anthropic.Anthropic, name: str, *, stream: bool
) -> None:
    """`applied_edits` say so at the end of the answer."""
    speaker = gateway.speakers[name]
    speaker.script(DONE)
    edits: JSON = [
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "tool_uses", "value": 3},
            "keep": {"type": "tool_uses", "value": 1},
            "exclude_tools": ["rm"],
        },
    ]
    asked = {"model": f"{name}-m", "max_tokens": 99, "messages": HISTORY, "tools": [LS]}
    asked |= {"context_management": {"edits": edits}, "betas": ["context-management-2025-06-27"]}
    if stream:
        with claude.beta.messages.stream(**asked) as streamed:  # type: ignore[arg-type]
            message = streamed.get_final_message()
    else:
        message = claude.beta.messages.create(**asked)  # type: ignore[call-overload]
    assert message.context_management is not None
    thinking, tools = message.context_management.applied_edits
    assert (thinking.type, thinking.cleared_thinking_turns) == ("clear_thinking_20251015", 3)  # type: ignore[union-attr]
    assert (tools.type, tools.cleared_tool_uses) == ("clear_tool_uses_20250919", 3)  # type: ignore[union-attr]
    assert tools.cleared_input_tokens > 100
    (request,) = speaker.requests
    assert results(request) == [CLEARED, CLEARED, CLEARED, "a.py b.py a.py b.py a.py "]


@pytest.mark.parametrize("name", ["chat", "messages", "gemini", "ollama"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_claude_compacts_and_goes_on_from_the_block(
    gateway: AllDialectsGateway, claude: anthropic.Anthropic, name: str, *, stream: bool
) -> None:
    speaker = gateway.speakers[name]
    speaker.script(WRITTEN, DONE, DONE)
    edit: JSON = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50}}
    asked = {"model": f"{name}-m", "max_tokens": 99, "tools": [LS], "betas": ["compact-2026-01-12"]}
    asked |= {"messages": HISTORY, "context_management": {"edits": [edit]}}
    if stream:
        with claude.beta.messages.stream(**asked) as streamed:  # type: ignore[arg-type]
            message = streamed.get_final_message()
    else:
        message = claude.beta.messages.create(**asked)  # type: ignore[call-overload]
    assert [block.type for block in message.content] == ["compaction", "text"]
    assert message.content[0].content == SUMMARY  # type: ignore[union-attr]
    assert results(speaker.requests[1]) == ["a.py b.py a.py b.py a.py "]
    turns = [*HISTORY, {"role": "assistant", "content": message.content}, {"role": "user", "content": "And now?"}]
    claude.beta.messages.create(**asked | {"messages": turns, "context_management": {"edits": []}})  # type: ignore[call-overload]
    assert texts(speaker.requests[2]) == [
        ("user", f"{HEADING}{SUMMARY}"),
        ("assistant", "The parser is done."),
        ("user", "And now?"),
    ]


def test_claude_pauses_after_a_compaction_and_asks_for_one_alone(
    gateway: AllDialectsGateway, claude: anthropic.Anthropic
) -> None:
    """With `pause_after_compaction`, and with `compaction`, the summary is the whole answer."""
    speaker = gateway.speakers["chat"]
    speaker.script(WRITTEN, WRITTEN)
    edit = {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 50},
        "pause_after_compaction": True,
    }
    asked = {"model": "chat-m", "max_tokens": 99, "messages": HISTORY, "betas": ["compact-2026-01-12"]}
    paused = claude.beta.messages.create(**asked, context_management={"edits": [edit]})  # type: ignore[call-overload]
    wish = {"type": "summarize", "instructions": "In one line."}
    alone = claude.beta.messages.create(**asked, compaction=wish)  # type: ignore[call-overload]
    for message in (paused, alone):
        assert (message.stop_reason, [block.type for block in message.content]) == ("compaction", ["compaction"])
    assert texts(speaker.requests[1])[-1] == ("user", "In one line.")


def test_a_server_that_compacts_itself_gets_the_wishes_as_they_came() -> None:
    """`target.compaction`: the fact of the providers' own hosts."""
    with AllDialectsGateway(target={"compaction": True}) as running:
        for name in ("responses", "messages"):
            running.speakers[name].script(DONE, DONE)
        with openai.OpenAI(base_url=f"{running.url}/v1", api_key="-", max_retries=0) as client:
            wish: JSON = [{"type": "compaction", "compact_threshold": 1000}]
            client.responses.create(model="responses-m", input=SAID, context_management=wish, store=False)
            client.responses.create(model="messages-m", input=SAID, context_management=wish, store=False)
        for name in ("responses", "messages"):
            (request,) = running.speakers[name].requests
            assert request.context_management is not None
            (edit,) = request.context_management.edits
            assert edit.trigger_tokens == 1000  # type: ignore[union-attr]
            assert len(request.messages) == 3
