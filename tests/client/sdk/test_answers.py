"""Answers as the objects of the official SDKs: given by their own clients to us, and by us as they give them."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import anthropic.types
import ollama
import openai
import pytest
from google.genai import types as gemini
from msgspec.structs import replace
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse

from tests.laws.vectors import Case, each
from tests.oracles import gemini_sdk, ollama_sdk
from tests.oracles.wire import ANTHROPIC, OPENAI, WIRE
from xenoglot import testing
from xenoglot.client.sdk import answers, objects
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError, FailureError, LossError, WireError
from xenoglot.model.content import Citation, Extra, Origin, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.events import Failed, Started
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, Request, Sampling, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from xenoglot.client.sdk.objects import Sdk
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject

BY_DIALECT: dict[str, Sdk] = {row.dialect: sdk for sdk, row in objects.SDKS.items()}
ASK: Any = {"model": "m", "messages": []}

CLIENTS: dict[Sdk, Callable[..., Any]] = {
    "openai": lambda **how: OPENAI.chat.completions.create(**ASK, **how),
    "openai_responses": lambda **how: OPENAI.responses.create(model="m", input="Hi", **how),
    "openai_completions": lambda **how: OPENAI.completions.create(model="m", prompt="Hi", **how),
    "anthropic": lambda **how: ANTHROPIC.messages.create(**ASK, max_tokens=1, **how),
    "gemini": lambda stream=False: (
        gemini_sdk.GEMINI.models.generate_content_stream(model="m", contents="Hi")
        if stream
        else gemini_sdk.GEMINI.models.generate_content(model="m", contents="Hi")
    ),
    "ollama": lambda **how: ollama_sdk.OLLAMA.chat(**ASK, **how),
}
WIRES: dict[Sdk, Any] = {"ollama": ollama_sdk.WIRE}

POOR: dict[str, str] = {
    "ollama/answer-images": "takes pictures to be its own objects",
    "ollama/odd-answer": "wants a role",
    "ollama/debug": "knows no such field",
    "ollama/logprobs": "knows no bytes",
    "ollama/logprobs-call": "knows no bytes",
    "ollama/tools": "knows no ids of calls",
    "ollama/tools-no-arguments": "knows no ids of calls",
    "ollama/tools-parallel": "knows no ids of calls",
    "ollama/unknown-fields": "knows them neither",
    "ollama/error-in-stream": "raises it",
    "ollama/silent-pieces": "wants a message",
    "gemini/citations": "calls them by their later name",
    "openai/after-done": "reads on",
}
"""What the classes of an SDK, or its client, make other than what came."""


@pytest.fixture(autouse=True)
def _new_words() -> Iterator[None]:
    """Let words pass that Google's SDK does not know yet: it takes them, with a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is not a valid ", UserWarning)
        yield


CLIENTS_TELL_LESS = {
    "gemini/finish-malformed-function-call",  # the client leaves the explanation out
    "gemini/finish-message",  # the same
    "gemini/partial-arguments",  # the client leaves `willContinue` and `partialArgs` out
    "gemini/function-call-id",
    "gemini/crlf-and-bom",  # the client does not read it
    "messages/after-the-end",  # the client hears an error behind the end
    "ollama/unicode",  # the client cuts lines where JSON has none
}


def known(case: Case) -> bool:
    """Whether there is an SDK whose classes can hold it."""
    name = f"{case.folder.parent.name}/{case.folder.name}"
    return case.folder.parent.name in BY_DIALECT and name not in POOR


def given(sdk: Sdk, body: JSON) -> Any:  # noqa: ANN401  the objects of several SDKs
    """What the SDK's own client makes of an answer."""
    WIRES.get(sdk, WIRE).whole(body, 200)
    return CLIENTS[sdk]()


def dumped(found: Any) -> JSONObject:  # noqa: ANN401  the same
    """All that an object holds, without what was never said."""
    made: JSONObject = found.model_dump(mode="json", exclude_unset=True, exclude_none=True, warnings=False)
    for name in ("sdk_http_response", "automatic_function_calling_history", "_request_id"):
        made.pop(name, None)
    return made


def is_complete(case: Case) -> bool:
    return known(case) and f"{case.folder.parent.name}/{case.folder.name}" not in CLIENTS_TELL_LESS


def ordered(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with the keys of all arguments sorted: an SDK has an order of its own."""
    return [replace(one, content=tuple(map(_ordered, one.content))) for one in candidates]


def _ordered(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    try:
        return replace(part, arguments=json.dumps(json.loads(part.arguments), sort_keys=True))
    except ValueError:
        return part


@each("response.json", where=is_complete)
def test_what_a_client_gives_is_what_came(case: Case) -> None:
    sdk = BY_DIALECT[case.dialect.name]
    wanted = case.dialect.decode_response(case.response)
    read = answers.from_sdk(given(sdk, case.response))
    assert (ordered(read.candidates), read.usage) == (ordered(wanted.candidates), wanted.usage)


@each("response.json", where=known)
def test_an_answer_becomes_what_a_client_would_give(case: Case) -> None:
    sdk, losses = BY_DIALECT[case.dialect.name], Losses()
    made = answers.to_sdk(case.dialect.decode_response(case.response), sdk, losses)
    again = answers.from_sdk(made)
    wanted = case.dialect.decode_response(case.response)
    assert (ordered(again.candidates), again.usage) == (ordered(wanted.candidates), wanted.usage)
    assert type(made) is type(given(sdk, case.response))
    assert not losses or sdk == "ollama"


def frames(case: Case) -> list[ServerSentEvent]:
    return [one for one in through([case.stream], case.dialect.framing.decoder()) if one.data]


def is_read_to_the_end(case: Case) -> bool:
    """Whether a stream is one of an SDK that its client reads to the end."""
    if not known(case) or not case.has("stream.*"):
        return False
    try:
        answer = fold(through(frames(case), case.dialect.stream_decoder()))
    except WireError:
        return False
    # An assumed finish is one of `[DONE]` alone, which an SDK does not show.
    return isinstance(answer, Response) and not any(one.finish and one.finish.assumed for one in answer.candidates)


def streamed(sdk: Sdk, events: list[ServerSentEvent]) -> list[Any]:
    """The chunks that the SDK's own client gives."""
    WIRES.get(sdk, WIRE).stream(events)
    return list(CLIENTS[sdk](stream=True))


@each("stream.*", where=lambda case: is_read_to_the_end(case) and is_complete(case))
def test_chunks_of_a_client_fold_to_what_was_streamed(case: Case) -> None:
    wanted = fold(through(frames(case), case.dialect.stream_decoder()))
    read = fold(answers.events_from_sdk(streamed(BY_DIALECT[case.dialect.name], frames(case))))
    assert isinstance(read, Response)
    assert isinstance(wanted, Response)
    assert (read.candidates, read.usage) == (wanted.candidates, wanted.usage)


@each("stream.*", where=is_read_to_the_end)
def test_chunks_of_ours_say_the_same(case: Case) -> None:
    sdk = BY_DIALECT[case.dialect.name]
    wanted = fold(through(frames(case), case.dialect.stream_decoder()))
    chunks = list(answers.chunks_for_sdk(through(frames(case), case.dialect.stream_decoder()), sdk))
    read = fold(answers.events_from_sdk(chunks))
    assert isinstance(read, Response)
    assert isinstance(wanted, Response)
    assert read.candidates == wanted.candidates


RICH = Response(
    model="m",
    candidates=(
        Candidate(
            content=(
                Reasoning(text="Hm.", signature="c2VhbA==", origin=Origin(dialect="messages")),
                Text(text="See there.", citations=(Citation(kind="url_citation", url="https://a.test", title="A"),)),
                ToolCall(id="call_1", name="look", arguments='{"at":"sky"}'),
            ),
            finish=Finish(reason="tool_calls"),
        ),
    ),
    usage=Usage(input_tokens=10, output_tokens=5, cache_read=4, reasoning=2),
)


def test_one_answer_in_the_words_of_each() -> None:
    chat = answers.to_openai(RICH)
    assert isinstance(chat, ChatCompletion)
    [call] = chat.choices[0].message.tool_calls or []
    assert (call.type, call.id) == ("function", "call_1")
    assert chat.choices[0].finish_reason == "tool_calls"
    assert chat.usage is not None
    assert (chat.usage.prompt_tokens, chat.usage.total_tokens) == (10, 15)
    assert chat.usage.prompt_tokens_details is not None
    assert chat.usage.prompt_tokens_details.cached_tokens == 4
    assert chat.id.startswith("chatcmpl-")
    assert chat.created > 1_700_000_000

    response = answers.to_openai_response(RICH)
    assert isinstance(response, OpenAIResponse)
    assert response.output_text == "See there."
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]

    message = answers.to_anthropic(RICH)
    assert isinstance(message, anthropic.types.Message)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (6, 4)
    assert message.stop_reason == "tool_use"

    given_by_google = answers.to_gemini(RICH)
    assert isinstance(given_by_google, gemini.GenerateContentResponse)
    assert given_by_google.function_calls is not None
    assert given_by_google.function_calls[0].args == {"at": "sky"}

    told = answers.to_ollama(RICH, losses := Losses())
    assert isinstance(told, ollama.ChatResponse)
    assert (told.message.content, told.message.thinking) == ("See there.", "Hm.")
    assert losses

    completion = answers.to_openai_completion(Response(candidates=(Candidate(content=(Text(text="Hi"),)),)))
    assert completion.choices[0].text == "Hi"


@pytest.mark.parametrize("sdk", ["openai", "openai_responses", "anthropic"])
def test_calls_thoughts_and_counts_come_back(sdk: Sdk) -> None:
    again = answers.from_sdk(answers.to_sdk(RICH, sdk))
    [candidate] = again.candidates
    calls = [(part.name, part.arguments) for part in candidate.content if isinstance(part, ToolCall)]
    assert calls == [("look", '{"at":"sky"}')]
    assert [part.text or part.summary for part in candidate.content if isinstance(part, Reasoning)] != []
    assert again.usage is not None
    assert (again.usage.input_tokens, again.usage.output_tokens, again.usage.cache_read) == (10, 5, 4)


def test_strict_losses_refuse() -> None:
    with pytest.raises(LossError):
        answers.to_ollama(RICH, Losses(strict=True))


def test_what_only_its_dialect_knows_goes_along() -> None:
    extra = Extra(dialect="chat", fields={"system_fingerprint": "fp", "x_new": {"a": 1}})
    chat = answers.to_openai(Response(id="1", model="m", candidates=(Candidate(),), extra=extra))
    assert (chat.system_fingerprint, chat.x_new) == ("fp", {"a": 1})  # type: ignore[attr-defined]  # the SDK keeps it
    assert answers.from_sdk(chat).extra == extra


CHAT = testing.answers("chat", text=("Hel", "lo"))


async def later(events: Iterable[Event]) -> AsyncIterator[Event]:
    for event in events:
        yield event


async def test_streams_of_asynchronous_clients() -> None:
    async with (
        testing.Upstream(*CHAT.rules()) as upstream,
        AsyncOpenAI(api_key="k", base_url=f"{upstream.url}/v1", max_retries=0) as client,
    ):
        chunks = await client.chat.completions.create(model="m", messages=[], stream=True)
        events = [event async for event in answers.events_from_async_sdk(chunks)]
    read = fold(events)
    assert isinstance(read, Response)
    assert read.candidates[0].content == (Text(text="Hello"),)
    again = [chunk async for chunk in answers.chunks_for_async_sdk(later(events), "anthropic")]
    assert [getattr(chunk, "type", None) for chunk in again][::5] == ["message_start", "message_delta"]


def test_helpers_that_accumulate_are_read_once() -> None:
    events = list(sdks_frames("anthropic"))
    WIRE.stream(events)
    with ANTHROPIC.messages.stream(model="m", messages=[], max_tokens=1) as stream:
        assert text_of(answers.events_from_sdk(stream)) == "See there."
    WIRE.stream(list(sdks_frames("openai")))
    with OPENAI.chat.completions.stream(model="m", messages=[]) as helped:
        assert text_of(answers.events_from_sdk(helped)) == "See there."
    WIRE.stream(list(sdks_frames("openai_responses")))
    with OPENAI.responses.stream(model="m", input="Hi") as helped_too:
        assert text_of(answers.events_from_sdk(helped_too)) == "See there."


def sdks_frames(sdk: Sdk) -> Sequence[ServerSentEvent]:
    """The stream of an answer, as a server of the dialect sends it."""
    said = Response(
        id="1",
        model="m",
        created=1,
        candidates=(Candidate(content=(Text(text="See there."),), finish=Finish(reason="stop")),),
        usage=Usage(input_tokens=1, output_tokens=1),
    )
    dialect = get(objects.SDKS[sdk].dialect)
    return list(through(unfold(said), dialect.stream_encoder(Request(model="m", stream=True), Losses())))


def text_of(events: Iterable[Event]) -> str:
    read = fold(events)
    assert isinstance(read, Response)
    return "".join(part.text for part in read.candidates[0].content if isinstance(part, Text))


def test_a_stream_that_fails_raises() -> None:
    events: list[Event] = [Started(), Failed(failure=Failure(kind="overloaded", message="later"))]
    with pytest.raises(FailureError, match="later"):
        list(answers.chunks_for_sdk(events, "openai"))


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    chunks = streamed("openai", list(sdks_frames("openai"))[:2])
    assert isinstance(fold(answers.events_from_sdk(chunks)), Failure)


def test_a_stream_without_chunks_has_no_events() -> None:
    assert list(answers.events_from_sdk([])) == []


@pytest.mark.parametrize("stranger", [None, {}, "text", gemini_sdk, Text(text="x")], ids=lambda one: type(one).__name__)
def test_strangers_are_no_answers(stranger: object) -> None:
    with pytest.raises(TypeError, match="no answer of an SDK"):
        answers.from_sdk(stranger)
    with pytest.raises(TypeError, match="no chunk of an SDK"):
        list(answers.events_from_sdk([stranger]))


def test_an_object_that_is_no_answer_says_where() -> None:
    with pytest.raises(WireError, match=r"\$\.choices"):
        answers.from_sdk(ChatCompletion.construct(choices=3))


def test_an_sdk_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(objects, "import_module", nothing)
    for sdk, package in (
        ("openai", "openai"),
        ("anthropic", "anthropic"),
        ("gemini", "google-genai"),
        ("ollama", "ollama"),
    ):
        with pytest.raises(ConfigurationError, match=f"`pip install {package}`"):
            answers.to_sdk(RICH, sdk)  # type: ignore[arg-type]  # one of them


def test_arguments_of_a_client_are_a_request() -> None:
    reply = answers.to_openai(RICH).choices[0].message
    asked = answers.request_from_sdk(
        "openai",
        model="gpt-5",
        messages=[{"role": "user", "content": "Hi"}, reply],
        temperature=0.5,
        stop=openai.NOT_GIVEN,
        user=openai.omit,
        extra_body={"top_k": 3},
        extra_headers={"x-a": "b"},
        timeout=3,
    )
    assert (asked.model, asked.sampling.temperature, asked.sampling.top_k) == ("gpt-5", 0.5, 3)
    assert (asked.sampling.stop, asked.user) == (None, None)
    assert asked.extra is None or asked.extra.fields == {}
    assert [message.role for message in asked.messages] == ["user", "assistant"]
    assert any(isinstance(part, ToolCall) for part in asked.messages[1].content)


def test_blocks_of_a_message_are_part_of_a_request() -> None:
    message = answers.to_anthropic(RICH)
    asked = answers.request_from_sdk(
        "anthropic",
        model="claude",
        max_tokens=10,
        messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": message.content}],
    )
    assert [type(part).__name__ for part in asked.messages[1].content] == ["Reasoning", "Text", "ToolCall"]


QUESTION = Request(
    model="m",
    messages=(
        Message(role="system", content=(Text(text="Be brief."),)),
        Message(role="user", content=(Text(text="Look."),)),
        Message(role="assistant", content=(ToolCall(id="call_1", name="look", arguments='{"at":"sky"}'),)),
        Message(role="tool", content=(ToolResult(call_id="call_1", content=(Text(text="Blue."),), name="look"),)),
    ),
    tools=(Tool(name="look", parameters={"type": "object", "properties": {"at": {"type": "string"}}}),),
    sampling=Sampling(max_tokens=100, temperature=0.5, top_k=3, stop=("END",)),
)


@pytest.mark.parametrize("sdk", ["openai", "openai_responses", "anthropic", "gemini", "ollama"])
def test_a_request_becomes_arguments_and_comes_back(sdk: Sdk) -> None:
    arguments = answers.arguments_for_sdk(sdk, QUESTION)
    WIRES.get(sdk, WIRE).whole({}, 500)
    with pytest.raises(Exception, match=r"500|Internal") as caught:
        SENDERS[sdk](**arguments)
    assert not isinstance(caught.value, TypeError)
    again = answers.request_from_sdk(sdk, **arguments)
    assert again.model == "m"
    assert [part.text for part in again.messages[0].content if isinstance(part, Text)] == ["Be brief."]
    calls = [part for message in again.messages for part in message.content if isinstance(part, ToolCall)]
    assert [(call.name, decode_json(call.arguments)) for call in calls] == [("look", {"at": "sky"})]
    assert [tool.name for tool in again.tools if isinstance(tool, Tool)] == ["look"]
    assert (again.sampling.max_tokens, again.sampling.temperature) == (100, 0.5)


SENDERS: dict[Sdk, Callable[..., Any]] = {
    "openai": OPENAI.chat.completions.create,
    "openai_responses": OPENAI.responses.create,
    "anthropic": ANTHROPIC.messages.create,
    "gemini": gemini_sdk.GEMINI.models.generate_content,
    "ollama": ollama_sdk.OLLAMA.chat,
}


def test_what_a_call_has_no_argument_for_goes_along() -> None:
    extra = Extra(dialect="chat", fields={"x_new": 1})
    arguments = answers.arguments_for_sdk("openai", replace(QUESTION, extra=extra))
    assert arguments["extra_body"]["x_new"] == 1
    losses = Losses()
    answers.arguments_for_sdk("ollama", replace(QUESTION, extra=Extra(dialect="ollama", fields={"x_new": 1})), losses)
    assert [loss.what for loss in losses if "argument" in loss.why] == ["x_new"]


GOOGLE = [
    pytest.param("Hi", [("user", "Hi")], id="text"),
    pytest.param(["Hi", "there"], [("user", "Hithere")], id="texts"),
    pytest.param(gemini.Part(text="Hi"), [("user", "Hi")], id="part"),
    pytest.param(
        [
            gemini.Content(role="user", parts=[gemini.Part(text="Hi")]),
            {"role": "model", "parts": [{"text": "Yes"}]},
            "So",
        ],
        [("user", "Hi"), ("assistant", "Yes"), ("user", "So")],
        id="turns-and-a-text",
    ),
    pytest.param(
        ["Look", gemini.Content(role="model", parts=[])], [("user", "Look"), ("assistant", "")], id="text-first"
    ),
]


@pytest.mark.parametrize(("contents", "expected"), GOOGLE)
def test_google_takes_turns_in_many_forms(contents: Any, expected: list[tuple[str, str]]) -> None:  # noqa: ANN401  many
    asked = answers.request_from_sdk("gemini", model="m", contents=contents)
    said = [
        (message.role, "".join(part.text for part in message.content if isinstance(part, Text)))
        for message in asked.messages
    ]
    assert said == expected


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            gemini.GenerateContentConfig(
                system_instruction="Be brief.",
                max_output_tokens=5,
                http_options=gemini.HttpOptions(timeout=3),
                thinking_config=gemini.ThinkingConfig(thinking_budget=0),
            ),
            id="object",
        ),
        pytest.param(
            {"system_instruction": ["Be brief."], "max_output_tokens": 5, "thinking_config": {"thinking_budget": 0}},
            id="dict",
        ),
        pytest.param(
            {
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "maxOutputTokens": 5,
                "thinkingConfig": {"thinkingBudget": 0},
            },
            id="wire",
        ),
    ],
)
def test_the_configuration_of_google_is_parted(config: Any) -> None:  # noqa: ANN401  an object or a dict
    asked = answers.request_from_sdk("gemini", model="m", contents="Hi", config=config)
    assert asked.messages[0] == Message(role="system", content=(Text(text="Be brief."),), extra=asked.messages[0].extra)
    assert asked.sampling.max_tokens == 5
    assert asked.thinking is not None
    assert asked.thinking.budget_tokens == 0 or asked.thinking.mode == "disabled"
    assert asked.extra is None or asked.extra.fields == {}


def test_functions_are_no_json() -> None:
    with pytest.raises(TypeError, match="nothing that an SDK sends"):
        answers.request_from_sdk("gemini", model="m", contents="Hi", config={"tools": [len]})


def test_arguments_that_are_none_say_where() -> None:
    with pytest.raises(WireError, match=r"\$\.messages"):
        answers.request_from_sdk("openai", model="m", messages=3)
    with pytest.raises(TypeError, match="nothing that an SDK sends"):
        answers.request_from_sdk("openai", model="m", messages=[object()])


def test_bytes_are_base64_on_the_wire() -> None:
    data = bytes(range(256))
    blob = gemini.Blob(data=data, mime_type="image/png")
    given_by_google = gemini.GenerateContentResponse(
        candidates=[gemini.Candidate(content=gemini.Content(role="model", parts=[gemini.Part(inline_data=blob)]))]
    )
    again = answers.to_gemini(answers.from_sdk(given_by_google))
    assert again.parts is not None
    assert again.parts[0].inline_data is not None
    assert again.parts[0].inline_data.data == data


def test_chunks_have_the_classes_of_the_sdk() -> None:
    events = list(unfold(Response(candidates=(Candidate(content=(Text(text="x"),), finish=Finish(reason="stop")),))))
    assert {type(one) for one in answers.chunks_for_sdk(events, "openai")} == {ChatCompletionChunk}
    kinds = [type(one).__name__ for one in answers.chunks_for_sdk(events, "anthropic")]
    assert kinds[0] == "RawMessageStartEvent"
    assert kinds[-1] == "RawMessageStopEvent"
    made = [type(one).__name__ for one in answers.chunks_for_sdk(events, "openai_responses")]
    assert (made[0], made[-1]) == ("ResponseCreatedEvent", "ResponseCompletedEvent")
