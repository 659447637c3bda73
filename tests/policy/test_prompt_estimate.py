"""The estimate of a prompt's tokens, part by part."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bench import samples
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
from xenoglot.model.request import Message, Prompt, Request, Tool
from xenoglot.policy import token_estimate
from xenoglot.policy.token_estimate import estimate

FRAME = 4


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        pytest.param(Text(text=""), 0, id="nothing"),
        pytest.param(Text(text="four"), 1, id="text"),
        pytest.param(Text(text="elephantine"), 3, id="text-rounded"),
        pytest.param(Text(text="日本語"), 4, id="text-of-three-bytes-a-letter"),
        pytest.param(Text(text="\ud83d"), 1, id="C12-lone-surrogate"),
        pytest.param(Refusal(text="no" * 4), 2, id="refusal"),
        pytest.param(Reasoning(text="x" * 40, summary=("y" * 8,), encrypted="z" * 12), 16, id="pitfall-124-thinking"),
        pytest.param(ToolCall(id="1", name="read", arguments="x" * 400), 123, id="pitfall-124-tool-call"),
        pytest.param(
            ToolResult(call_id="1", content=(Text(text="x" * 400), Image(source=Remote(url="http://x")))),
            1722,
            id="pitfall-124-tool-result",
        ),
        pytest.param(Image(source=Inline(data="x" * 10**6)), 1600, id="pitfall-124-image"),
        pytest.param(File(source=Inline(data="x" * 3200)), 100, id="file"),
        pytest.param(File(source=Remote(url="http://x")), 1600, id="file-elsewhere"),
        pytest.param(File(source=Plain(text="x" * 400)), 114, id="file-of-text"),
        pytest.param(File(source=Nested(parts=(Text(text="x" * 400),))), 114, id="file-of-parts"),
        pytest.param(Audio(source=Inline(data="x" * 3200)), 100, id="audio"),
        pytest.param(Audio(transcript="x" * 400), 114, id="spoken"),
        pytest.param(Opaque(dialect="chat", data={"a": "x" * 392}), 116, id="opaque"),
    ],
)
def test_parts(part: Part, tokens: int) -> None:
    assert estimate(Request(model="m", messages=(Message(role="user", content=(part,)),))) == FRAME + tokens


def test_tools_count() -> None:
    tool = Tool(name="read", description="x" * 40, parameters={"type": "object"})
    request = Request(model="m", tools=(tool, Opaque(dialect="messages", data={"type": "web"})))
    assert estimate(request) == (8 + 1 + 11 + 7) + (8 + 6)


def test_texts_to_be_continued_count_with_what_is_to_follow_them() -> None:
    prompt = Prompt(texts=("four", (1, 2, 3), "four four"), suffix="four")
    assert estimate(Request(model="m", prompt=prompt)) == 1 + 3 + 2 + 1


def test_an_empty_prompt_is_one_token() -> None:
    assert estimate(Request(model="m")) == 1


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the texts whose characters are counted; no text was seen before."""
    sizes: list[int] = []
    tokens = token_estimate._tokens

    def noted(data: bytes) -> float:
        sizes.append(len(data))
        return tokens(data)

    monkeypatch.setattr(token_estimate, "_tokens", noted)
    monkeypatch.setattr(token_estimate, "_known", {})
    return sizes


@pytest.mark.parametrize("calls", [4, 24, 400])
def test_a_long_prompt_costs_no_more_than_its_samples(counted: list[int], calls: int) -> None:
    """Counted bytes: what is new is counted up to a bound and sampled beyond it, and what was seen is looked up."""
    request = replace(samples.agent(calls=calls), tools=())
    whole = FRAME * len(request.messages) + sum(
        token_estimate.estimate_part(part) for message in request.messages for part in message.content
    )
    costs = []
    for _ in range(200):
        counted.clear()
        assert estimate(request) == pytest.approx(whole, rel=0.1)
        costs.append(sum(counted))
    assert max(costs) <= 3 * 12_288
    assert costs[-1] == 0


def test_a_prompt_of_one_long_text_is_sampled(counted: list[int]) -> None:
    text = "word " * 10**6
    assert estimate(Request(model="m", prompt=Prompt(texts=(text,)))) == pytest.approx(10**6, rel=0.2)
    assert counted == [12_288]


def test_a_short_prompt_is_counted_text_by_text(counted: list[int]) -> None:
    texts = ("one", "and another", "and a third", "one")
    request = Request(model="m", prompt=Prompt(texts=texts))
    first = estimate(request)
    assert counted == [len(text) for text in texts[:3]]
    assert first == sum(map(token_estimate.text_tokens, texts))
    counted.clear()
    assert (estimate(request), counted) == (first, [])


def test_what_is_known_has_a_bound(counted: list[int]) -> None:
    texts = tuple(f"text {number}" for number in range(20_000))
    estimate(Request(model="m", prompt=Prompt(texts=texts)))
    for text in texts:
        estimate(Request(model="m", prompt=Prompt(texts=(text,))))
    assert len(token_estimate._known) <= 16_384
    assert counted
