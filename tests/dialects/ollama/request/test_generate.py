"""Requests of `/api/generate`: a prompt is a turn, unless it is to be continued as it stands."""

import pytest

from tests.dialects.ollama.wire import decoded_request, encoded, message_of
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.ollama import OLLAMA, OLLAMA_GENERATE
from xenoglot.errors import WireError
from xenoglot.model.content import Image, Inline, Text, ToolCall
from xenoglot.model.json import JSON
from xenoglot.model.request import Message, Prompt, Request, Sampling, Tool

PICTURE = Image(source=Inline(data="iVBORw0KGgoAAAAN", media_type="image/png"))


def decoded(**fields: JSON) -> Request:
    return OLLAMA_GENERATE.decode_request({"model": "m", **fields})


def test_a_prompt_is_put_into_the_template_so_it_is_a_turn() -> None:
    request = decoded(prompt="What?", system="Be brief.", images=["iVBORw0KGgoAAAAN"])
    assert (request.prompt, request.messages) == (
        None,
        (message_of("system", "Be brief."), message_of("user", PICTURE, "What?")),
    )


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({"prompt": "a", "raw": True}, Prompt(texts=("a",))),
        ({"prompt": "a", "suffix": "b"}, Prompt(texts=("a",), suffix="b")),
        ({"prompt": "a", "raw": False, "suffix": ""}, None),
        ({"raw": True}, None),
    ],
)
def test_only_raw_or_before_a_suffix_it_is_continued(fields: dict[str, JSON], prompt: Prompt | None) -> None:
    assert decoded(**fields).prompt == prompt


def test_a_prompt_of_a_completion_stays_raw() -> None:
    request = Request(model="m", prompt=Prompt(texts=("a",), echo=True))
    assert encoded(request, dialect=OLLAMA_GENERATE) == (
        {"model": "m", "prompt": "a", "raw": True, "stream": False},
        ["$.prompt echo emulated (the encoder of the answer begins it with the text)"],
    )


def test_beside_a_system_turn_there_is_no_raw() -> None:
    request = Request(model="m", prompt=Prompt(texts=("a",)), messages=(message_of("system", "b"),))
    assert encoded(request, dialect=OLLAMA_GENERATE) == (
        {"model": "m", "system": "b", "prompt": "a", "stream": False},
        ["$.prompt texts approximated (put into the model's template, for there is a system turn)"],
    )


def test_one_turn_is_a_prompt() -> None:
    request = decoded_request(message_of("system", "a"), message_of("developer", "b"), message_of("user", PICTURE, "c"))
    assert encoded(request, dialect=OLLAMA_GENERATE) == (
        {"model": "m", "system": "a\n\nb", "prompt": "c", "images": ["iVBORw0KGgoAAAAN"], "stream": False},
        [
            "$.messages[1] role approximated (`developer` is written as `system`)",
            "$.messages system approximated (its turns are joined)",
        ],
    )


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (decoded_request(message_of("user", "a"), message_of("assistant", "b"), message_of("user", "c")), "$.messages"),
        (decoded_request(message_of("user", ToolCall(id="c", name="f"))), "$.messages"),
        (decoded_request(message_of("user", "")), "$.messages[0]"),
        (decoded_request(message_of("user", "a"), tools=(Tool(name="f"),)), "$.tools"),
        (Request(model="m", prompt=Prompt(texts=("a", "b"))), "$.prompt"),
        (Request(model="m", prompt=Prompt(texts=((1, 2),))), "$.prompt"),
        (Request(model="m", prompt=Prompt(texts=("",))), "$.prompt"),
        (Request(model="m", prompt=Prompt(texts=("a",), echo=True), sampling=Sampling(logprobs=True)), "$.echo"),
        (Request(model="m", prompt=Prompt(texts=("a",), best_of=2)), "$.best_of"),
    ],
)
def test_what_is_no_single_prompt_is_refused(request_: Request, path: str) -> None:
    with pytest.raises(WireError) as caught:
        encoded(request_, dialect=OLLAMA_GENERATE)
    assert caught.value.path == path


def test_towards_the_other_endpoint_nothing_is_lost_but_what_it_does_not_know() -> None:
    request = decoded(prompt="a", keep_alive=0, context=[1], template="t", options={"num_ctx": 1})
    losses = Losses()
    assert OLLAMA.encode_request(request, losses, Target()) == {
        "model": "m",
        "messages": [{"role": "user", "content": "a"}],
        "keep_alive": 0,
        "options": {"num_ctx": 1},
        "stream": True,
    }
    assert sorted(map(str, losses)) == [
        "$ context dropped (only ollama_generate has it)",
        "$ template dropped (only ollama_generate has it)",
    ]


def test_what_a_turn_says_beyond_words_is_lost_by_name() -> None:
    request = OLLAMA.decode_request({"model": "m", "messages": [{"role": "user", "content": "a", "x": 1}]})
    losses = Losses()
    OLLAMA_GENERATE.encode_request(request, losses, Target())
    assert list(map(str, losses)) == ["$.messages[0] x dropped (only ollama has it)"]


def test_a_request_that_only_loads_has_no_turns() -> None:
    assert (decoded().messages, decoded().prompt) == ((), None)
    assert decoded(system="a").messages == (Message(role="system", content=(Text(text="a"),)),)
