"""The text of a prompt at the head of an answer: who put it there, and what is missing."""

import pytest

from xenoglot.codec.requests.prompt_echo import head_of, is_marked, marked, missing_echo
from xenoglot.model.content import Extra, Logprob, Refusal, Text
from xenoglot.model.request import Prompt, Request, Sampling

PROMPT = Prompt(texts=("a", (1, 2)), echo=True)


def test_what_is_marked_is_known_again() -> None:
    weighed = Text(text="ab", logprobs=(Logprob(token="b", logprob=-1.0),))
    part = marked(weighed, "x", "a")
    assert (part.text, part.logprobs) == (weighed.text, weighed.logprobs)
    assert (is_marked(part), head_of(part)) == (True, "a")
    assert (is_marked(marked(weighed, "x")), head_of(marked(weighed, "x"))) == (True, None)


@pytest.mark.parametrize(
    "part",
    [None, Text(text="a"), Refusal(text="a"), Text(text="a", extra=Extra(dialect="x", fields={"echo": {"head": "a"}}))],
    ids=["none", "text", "refusal", "fields"],
)
def test_anything_else_is_not(part: Text | None) -> None:
    assert (is_marked(part), head_of(part)) == (False, None)


@pytest.mark.parametrize(
    ("prompt", "count", "candidate", "text"),
    [
        (PROMPT, 1, 0, "a"),
        (PROMPT, 1, 1, (1, 2)),
        (PROMPT, 2, 1, "a"),
        (PROMPT, 2, 2, (1, 2)),
        (PROMPT, None, 9, (1, 2)),
        (Prompt(texts=("a",)), 1, 0, None),
        (Prompt(texts=(), echo=True), 1, 0, None),
        (None, 1, 0, None),
    ],
)
def test_what_an_answer_has_to_begin_with(
    prompt: Prompt | None, count: int | None, candidate: int, text: str | tuple[int, ...] | None
) -> None:
    request = Request(model="m", prompt=prompt, sampling=Sampling(n=count))
    assert missing_echo(request, candidate) == text
