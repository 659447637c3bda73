"""Functions of a prompt: what they are given, what is counted, where their turn ends, and how they fail."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.local_models.requests import call, events, lost, request_of, respond, response_of, turn
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.local_models.adapt import backend_of
from xenoglot.backends.local_models.prompt_function import Prompted, takes_prompt
from xenoglot.errors import LossError, WireError
from xenoglot.model.content import Image, Reasoning, Remote, Text, ToolCall, ToolResult
from xenoglot.model.events import TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.request import OutputFormat, Prompt, Request, Sampling, Thinking, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from xenoglot.backends.callable import Output


class Words:
    """A tokenizer for which each word is a token; it begins a text of its own with one more."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [*([0] if add_special_tokens else []), *(len(word) for word in text.split())]


class Letters:
    """A tokenizer that gives what the tokenizers library gives."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def encode(self, text: str) -> Letters:
        made = Letters()
        made.ids = [ord(letter) for letter in text]
        return made


def shout(prompt: str) -> str:
    return prompt.upper()


async def shout_later(prompt: str) -> str:
    return prompt.upper()


def shout_on(prompt: str) -> Iterator[str]:
    for word in prompt.split():
        yield word.upper() + " "


async def shout_on_later(prompt: str) -> AsyncIterator[str]:
    for word in shout_on(prompt):
        yield word


class Shouter:
    """A model that is an object."""

    def __call__(self, prompt: str) -> str:
        return prompt.upper()

    def speak(self, prompt: str) -> Iterator[str]:
        return shout_on(prompt)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param(shout, "ONE TWO", id="R1-function"),
        pytest.param(shout_later, "ONE TWO", id="coroutine"),
        pytest.param(shout_on, "ONE TWO ", id="generator"),
        pytest.param(shout_on_later, "ONE TWO ", id="async-generator"),
        pytest.param(Shouter(), "ONE TWO", id="object"),
        pytest.param(Shouter().speak, "ONE TWO ", id="returns-a-generator"),
        pytest.param(lambda prompt, **_more: shout_on_later(prompt), "ONE TWO ", id="returns-an-async-generator"),
        pytest.param(lambda prompt: iter(prompt.split()), "onetwo", id="returns-an-iterator"),
        pytest.param(lambda prompt, **_more: shout_later(prompt), "ONE TWO", id="returns-a-coroutine"),
    ],
)
async def test_every_kind_of_function(function: Callable[[str], object], text: str) -> None:
    """R-W8: what nobody counted is not said; no words are counted as tokens."""
    assert await respond(Prompted(function, "m"), request_of("one two")) == (
        response_of(text),
        ["$.messages turns emulated"],
    )


async def test_it_streams_as_it_speaks() -> None:
    """R-W1: each piece is out before the next is thought of, and pieces stay as they are (R-W8)."""
    made = await events(Prompted(shout_on, tokenizer=Words()), call(request_of("one two")))
    assert [event.text for event in made if isinstance(event, TextDelta)] == ["ONE ", "TWO "]


@pytest.mark.parametrize(
    ("messages", "prompt", "losses"),
    [
        pytest.param(("Hi",), "Hi", ["$.messages turns emulated"], id="a-lone-turn-is-the-prompt"),
        pytest.param(
            (turn("system", "Be brief."), "Rain?", turn("assistant", "No."), "Sure?"),
            "System: Be brief.\n\nUser: Rain?\n\nAssistant: No.\n\nUser: Sure?\n\nAssistant:",
            ["$.messages turns emulated"],
            id="R-S1-turns-are-a-transcript",
        ),
        pytest.param(
            (
                "Rain?",
                turn("assistant", ToolCall(id="1", name="look", arguments="{}")),
                turn("tool", ToolResult(call_id="1", content=(Text(text="dry"),))),
            ),
            "User: Rain?\n\nAssistant: [called look({})]\n\nTool: dry\n\nAssistant:",
            [
                "$.messages[1].content[0] tool call approximated",
                "$.messages[2].content[0] tool result approximated",
                "$.messages turns emulated",
            ],
            id="R-S1-calls-and-results",
        ),
        pytest.param(
            ("Hi", turn("assistant", Reasoning(text="hm"), "Well")),
            "User: Hi\n\nAssistant: Well",
            ["$.messages[1].content[0] reasoning dropped", "$.messages turns emulated"],
            id="an-answer-begun",
        ),
    ],
)
async def test_turns_become_a_prompt(messages: tuple[str], prompt: str, losses: list[str]) -> None:
    heard: list[str] = []

    def listen(text: str) -> str:
        heard.append(text)
        return "ok"

    answer, told = await respond(Prompted(listen, "m"), request_of(*messages))
    assert (answer, heard, told) == (response_of("ok"), [prompt], losses)


async def test_its_turn_ends_where_the_user_would_speak_next() -> None:
    def both(_prompt: str) -> str:
        return " Fine.\n\nUser: And you?"

    conversation = request_of("Hi", turn("assistant", "Hey"), "How are you?")
    assert (await respond(Prompted(both), conversation))[0] == response_of(" Fine.")
    assert (await respond(Prompted(both), request_of("Hi")))[0] == response_of(" Fine.\n\nUser: And you?")
    wanted = replace(conversation, sampling=Sampling(stop=("\n\nUser:",)))
    assert (await respond(Prompted(both), wanted))[0] == response_of(" Fine.", "stop_sequence", stop="\n\nUser:")


async def test_with_a_tokenizer_prompt_and_answer_are_counted() -> None:
    """R7, R-W8: the tokens of the model's own tokenizer; what a text of its own begins with is the prompt's alone."""
    backend = Prompted(shout_on, "m", tokenizer=Words())
    usage = Usage(input_tokens=4, output_tokens=3)
    assert (await respond(backend, request_of("one two three")))[0] == response_of("ONE TWO THREE ", usage=usage)
    assert await backend.count(call(request_of("one two three"))) == 4
    letters = Prompted(shout, tokenizer=Letters())
    assert (await respond(letters, request_of("abc")))[0] == response_of(
        "ABC", usage=Usage(input_tokens=3, output_tokens=3)
    )
    assert await Prompted(shout).count(call(request_of("one two three"))) is None


async def test_what_a_stop_string_cut_off_is_not_counted() -> None:
    backend = Prompted(shout_on, "m", tokenizer=Words())
    request = request_of("one two three", sampling=Sampling(stop=(" THR",)))
    usage = Usage(input_tokens=4, output_tokens=2)
    assert (await respond(backend, request))[0] == response_of("ONE TWO", "stop_sequence", stop=" THR", usage=usage)


async def test_where_calls_are_read_before_words_are_ended_the_count_is_an_estimate() -> None:
    """The pieces generated by then, each counted on its own: nobody hears what the model would have said next."""
    backend = backend_of(shout_on, tokenizer=Words(), text_syntax="auto")
    request = request_of("one two three four", sampling=Sampling(stop=(" THR",)))
    usage = Usage(input_tokens=5, output_tokens=3, estimated=True)
    assert (await respond(backend, request))[0] == response_of("ONE TWO", "stop_sequence", stop=" THR", usage=usage)
    whole = Usage(input_tokens=3, output_tokens=2)
    assert (await respond(backend, request_of("one two")))[0] == response_of("ONE TWO ", usage=whole)


async def test_a_function_that_counts_itself_is_believed() -> None:
    def counting(_prompt: str) -> Iterator[Output]:
        yield "word"
        yield Usage(output_tokens=9)

    backend = Prompted(counting, tokenizer=Words())
    assert (await respond(backend, request_of("Hi")))[0] == response_of(
        "word", usage=Usage(input_tokens=2, output_tokens=9)
    )


def ready(prompt: str, *, max_new_tokens: int = 9, temperature: float = 1.0) -> str:
    return f"{prompt} {max_new_tokens} {temperature}"


@pytest.mark.parametrize(
    ("function", "text", "losses"),
    [
        pytest.param(ready, "Hi 2 0.5", ["top_k", "logprobs"], id="R2-parameters-it-has"),
        pytest.param(
            lambda prompt, **told: f"{prompt} {told}",
            "Hi {'max_tokens': 2, 'temperature': 0.5, 'top_k': 7}",
            ["logprobs"],
            id="any-parameters",
        ),
        pytest.param(shout, "HI", ["max_tokens", "temperature", "top_k", "logprobs"], id="none"),
        pytest.param(
            functools.partial(ready, temperature=0.1), "Hi 2 0.5", ["top_k", "logprobs"], id="some-given-already"
        ),
    ],
)
async def test_settings_are_told_to_a_function_that_has_parameters_for_them(
    function: Callable[..., str], text: str, losses: list[str]
) -> None:
    """R-W6: what the request leaves open is the function's own to choose."""
    sampling = Sampling(max_tokens=2, temperature=0.5, top_k=7, logprobs=True)
    answer, told = await respond(Prompted(function, "m"), request_of("Hi", sampling=sampling))
    assert (answer, told) == (
        response_of(text),
        ["$.messages turns emulated", *(f"$.sampling {name} dropped" for name in losses)],
    )


async def test_as_many_tokens_as_were_allowed_is_the_length() -> None:
    """R-W4: but only where the function was told of the limit."""

    def wordy(_prompt: str, *, max_tokens: int = 9) -> str:
        return "word " * max_tokens

    request = request_of("Hi", sampling=Sampling(max_tokens=2))
    usage = Usage(input_tokens=2, output_tokens=2)
    backend = Prompted(wordy, tokenizer=Words())
    assert (await respond(backend, request))[0] == response_of("word word ", "length", usage=usage)
    deaf = Prompted(lambda prompt: prompt + " word", tokenizer=Words())
    assert (await respond(deaf, request))[0] == response_of("Hi word", usage=usage)


async def test_several_answers_and_several_texts_are_asked_for_one_by_one() -> None:
    backend = Prompted(shout, tokenizer=Words())
    request = Request(model="m", prompt=Prompt(texts=("a b", "c")), sampling=Sampling(n=2))
    answer, _ = await respond(backend, request)
    finish = Finish(reason="stop")
    assert answer == Response(
        candidates=tuple(Candidate(content=(Text(text=text),), finish=finish) for text in ("A B", "A B", "C", "C")),
        usage=Usage(input_tokens=10, output_tokens=6),
    )


async def test_a_text_behind_a_system_turn() -> None:
    request = Request(model="m", prompt=Prompt(texts=("Once",)), messages=(turn("system", "Rhyme."),))
    assert (await respond(Prompted(shout), request))[0] == response_of("SYSTEM: RHYME.\n\nONCE")


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        pytest.param(
            request_of(turn("user", Image(source=Remote(url="http://x")))), "$.messages[0].content[0]", id="image"
        ),
        pytest.param(Request(model="m", prompt=Prompt(texts=((1,),))), "$.prompt", id="tokens"),
        pytest.param(Request(model="m", prompt=Prompt(texts=("a",), suffix="b")), "$.suffix", id="suffix"),
        pytest.param(replace(request_of("Hi"), previous="r"), "$.previous", id="state"),
        pytest.param(
            replace(request_of("Hi"), tools=(Tool(name="t"),), tool_choice=ToolChoice(mode="required")),
            "$.tool_choice",
            id="a-call-demanded",
        ),
    ],
)
async def test_what_a_text_cannot_tell_is_refused(request_: Request, path: str) -> None:
    with pytest.raises(WireError) as error:
        await Prompted(shout).answer(call(request_))
    assert error.value.path == path


async def test_what_a_text_does_not_tell_is_a_loss() -> None:
    """R-W3: said, where the function was deaf before."""
    asking = call(
        replace(
            request_of("Hi"),
            tools=(Tool(name="t"),),
            output=OutputFormat(kind="json"),
            thinking=Thinking(effort="low"),
            verbosity="low",
        )
    )
    await Prompted(shout).answer(asking)
    assert lost(asking.losses) == [
        "$ output dropped",
        "$ verbosity dropped",
        "$.tools[0] tool dropped",
        "$ thinking dropped",
        "$.messages turns emulated",
    ]


async def test_whoever_accepts_no_loss_is_not_answered() -> None:
    asking = call(request_of("Hi"))
    asking.losses.strict = True
    with pytest.raises(LossError):
        await Prompted(shout).answer(asking)


async def test_a_failure_tells_clients_nothing_and_the_operator_where(caplog: pytest.LogCaptureFixture) -> None:
    """A-W9, R-W9."""

    def broken(prompt: str) -> Iterator[str]:
        yield "so far"
        raise KeyError(prompt)

    failure = Failure(kind="internal", message="internal error: the model function failed")
    assert (await respond(Prompted(broken, tokenizer=Words()), request_of("secret")))[0] == failure
    assert ", in broken\n" in caplog.text


async def test_a_client_that_leaves_closes_the_generator() -> None:
    """R-W1, A-W5: nothing goes on for nobody."""
    closed = threading.Event()

    def endless(_prompt: str) -> Iterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.set()

    answer = await Prompted(endless, tokenizer=Words()).answer(call(request_of("Hi")))
    assert isinstance(answer, EventAnswer)
    await anext(answer.batches)
    await anext(answer.batches)
    await answer.aclose()
    assert closed.wait(120)


def of_request(request: Request) -> str:
    return request.model


def bare(prompt):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  that it is not annotated is the point
    return prompt


def bare_other(question):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  the same
    return question


def named_so(prompt: Request) -> str:
    return prompt.model


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(shout, True, id="R1-annotated"),
        pytest.param(Shouter().__call__, True, id="method"),
        pytest.param(bare, True, id="named"),
        pytest.param(functools.partial(ready, temperature=1), True, id="partial"),
        pytest.param(of_request, False, id="of-a-request"),
        pytest.param(bare_other, False, id="neither"),
        pytest.param(named_so, False, id="the-annotation-stands-above-the-name"),
        pytest.param(lambda: "", False, id="takes-nothing"),
        pytest.param(print, False, id="takes-anything"),
    ],
)
def test_what_takes_a_prompt(function: Callable[..., object], expected: bool) -> None:  # noqa: FBT001  a case
    assert takes_prompt(function) is expected
