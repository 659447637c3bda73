"""The embedded model goes on with texts as they stand: its real weights, its real process."""

import pytest
from msgspec.structs import replace

from tests.engine.shared_engine import assert_valid
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.prompt_echo import marked
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.engine.backend import Engine
from xenoglot.engine.text_completion import best
from xenoglot.errors import FailureError
from xenoglot.model.content import Logprob, Text
from xenoglot.model.fold import fold, unfold
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Prompt, Request, Sampling
from xenoglot.model.response import Candidate, Finish, Response, Usage

FRANCE = "The capital of France is"
TOKENS = [504, 3575, 282, 4649, 314]
COMPLETIONS = get("completions")


def continued(*texts: str | tuple[int, ...], sampling: Sampling | None = None, **prompt: object) -> Call:
    wanted = sampling or Sampling(max_tokens=1)
    request = Request(model="any", prompt=Prompt(texts=texts, **prompt), sampling=wanted)  # type: ignore[arg-type]
    return Call(request=request, losses=Losses())


async def answered(engine: Engine, call: Call) -> Response:
    answer = await engine.answer(call)
    assert isinstance(answer, EventAnswer)
    try:
        batches = [batch async for batch in answer.batches]
    finally:
        await answer.aclose()
    response = fold(assert_valid([event for batch in batches for event in batch]))
    assert isinstance(response, Response), response
    return response


def texts_of(response: Response) -> list[str]:
    return ["".join(part.text for part in one.content if isinstance(part, Text)) for one in response.candidates]


async def posted(engine: Engine, body: JSONObject) -> JSONObject:
    """Ask as a client of the legacy API does, and check that a stream says the same."""
    request = COMPLETIONS.decode_request(body)
    response = await answered(engine, Call(request=request, losses=Losses(), dialect="completions"))
    assert response.extra is not None
    assert [*response.extra.fields] == ["system_fingerprint"]
    whole = COMPLETIONS.encode_response(response, request, Losses())
    chunks = through(unfold(response), COMPLETIONS.stream_encoder(request, Losses()))
    choices: dict[int, JSONObject] = {}
    for chunk in chunks:
        said: JSON = {"choices": []} if chunk.data == b"[DONE]" else decode_json(chunk.data)
        for choice in said["choices"]:
            grown = choices.setdefault(choice["index"], {"text": "", "logprobs": {}})
            grown["text"] += choice["text"]
            for key, column in (choice["logprobs"] or {}).items():
                grown["logprobs"].setdefault(key, []).extend(column)
    for choice in whole["choices"]:
        streamed = choices[choice["index"]]
        assert (streamed["text"], streamed["logprobs"] or None) == (choice["text"], choice["logprobs"])
    return whole


async def refusal(engine: Engine, call: Call) -> tuple[str, str | None]:
    with pytest.raises(FailureError) as raised:
        await engine.answer(call)
    return raised.value.failure.message, raised.value.failure.param


async def test_a_text_is_continued_without_a_template(engine: Engine) -> None:
    response = await answered(engine, continued(FRANCE))
    assert texts_of(response) == [" Paris"]
    assert response.candidates[0].finish == Finish(reason="length")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (len(TOKENS), 1)


async def test_tokens_are_continued_as_they_are(engine: Engine) -> None:
    assert texts_of(await answered(engine, continued(tuple(TOKENS)))) == [" Paris"]


async def test_control_tokens_in_a_text_are_control_tokens(engine: Engine) -> None:
    assert await engine.count(continued("<|im_start|>user\nHi<|im_end|>\n")) == 6
    assert await engine.count(continued(FRANCE, "The")) == len(TOKENS) + 1


async def test_system_turns_before_a_text_need_the_template(engine: Engine) -> None:
    call = continued("What is the capital of France?", sampling=Sampling(max_tokens=16))
    system = Message(role="system", content=(Text(text="You are a helpful AI assistant."),))
    response = await answered(engine, replace(call, request=replace(call.request, messages=(system,))))
    assert "Paris" in texts_of(response)[0]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (continued((1, 49152)), ("$.prompt", "found 49152, expected the number of a token of this model, 0 to 49151")),
        (
            continued("a", suffix="b"),
            ("$.suffix", "the embedded model continues a text, and cannot fill in text before a suffix"),
        ),
        (
            continued(""),
            ("$.prompt", "there is nothing in it, and the embedded model has no token to begin with"),
        ),
        (continued("a", best_of=9), ("$.best_of", "found 9, expected at most 4")),
        (
            continued("a", sampling=Sampling(max_tokens=0)),
            ("$.max_tokens", "found 0, expected 1 to 9007199254740992"),
        ),
    ],
    ids=["token", "suffix", "empty", "best-of", "nothing-wanted"],
)
async def test_what_cannot_be(engine: Engine, call: Call, expected: tuple[str, str]) -> None:
    failure = refused(*expected).failure
    assert await refusal(engine, call) == (failure.message, failure.param)


async def test_too_long_a_text(engine: Engine) -> None:
    with pytest.raises(FailureError) as raised:
        await engine.answer(continued("x" * 100_000))
    assert raised.value.failure.kind == "context_overflow"


async def test_several_texts_are_several_jobs(engine: Engine) -> None:
    texts = [FRANCE, "1, 2, 3, 4,", FRANCE, "A, B, C,", "Monday, Tuesday,", FRANCE, "one two three", "x = 1 +", FRANCE]
    response = await answered(engine, continued(*texts))
    found = texts_of(response)
    assert [found[place] for place, text in enumerate(texts) if text == FRANCE] == [" Paris"] * 4
    alone = [texts_of(await answered(engine, continued(text)))[0] for text in texts]
    assert found == alone
    counts = [await engine.count(continued(text)) or 0 for text in texts]
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (sum(counts), len(texts))


async def test_the_text_again(engine: Engine) -> None:
    for prompt in (FRANCE, TOKENS):
        answer = await posted(engine, {"model": "m", "prompt": prompt, "max_tokens": 1, "echo": True})
        assert [choice["text"] for choice in answer["choices"]] == [f"{FRANCE} Paris"]


async def test_nothing_but_the_text(engine: Engine) -> None:
    body = {"model": "m", "prompt": FRANCE, "max_tokens": 0, "echo": True, "logprobs": 0}
    answer = await posted(engine, body)
    (choice,) = answer["choices"]
    assert (choice["text"], choice["finish_reason"]) == (FRANCE, "length")
    assert choice["logprobs"]["tokens"] == ["The", " capital", " of", " France", " is"]
    assert choice["logprobs"]["token_logprobs"][0] is None
    assert answer["usage"] == {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}


async def test_what_an_evaluation_asks(engine: Engine) -> None:
    """lm-evaluation-harness: tokens, weighed; it reads `token_logprobs[ctxlen:-1]` and the best of `top_logprobs`."""
    body = {"model": "m", "prompt": [[*TOKENS, 7042, 30]], "max_tokens": 1, "logprobs": 1, "echo": True, "seed": 1234}
    (choice,) = (await posted(engine, {**body, "temperature": 0}))["choices"]
    logprobs = choice["logprobs"]
    assert logprobs["tokens"][:-1] == ["The", " capital", " of", " France", " is", " Paris", "."]
    assert {len(column) for column in logprobs.values()} == {8}
    assert logprobs["token_logprobs"][0] is None
    assert logprobs["top_logprobs"][0] is None
    assert [len(top) for top in logprobs["top_logprobs"][1:]] == [1] * 7
    assert logprobs["text_offset"] == [0, 3, 11, 14, 21, 24, 30, 31]
    continuation = list(zip(logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True))[5:-1]
    assert [token == max(top.values()) for token, top in continuation] == [True, True]


async def test_weighed_or_written_a_token_is_as_likely(engine: Engine) -> None:
    wanted = Sampling(max_tokens=6, logprobs=True, top_logprobs=2)
    (written,) = (await answered(engine, continued(FRANCE, sampling=wanted))).candidates
    (part,) = written.content
    assert isinstance(part, Text)
    again = replace(wanted, max_tokens=1)
    (weighed,) = (await answered(engine, continued(FRANCE + part.text, sampling=again, echo=True))).candidates
    read = weighed.content[0]
    assert isinstance(read, Text)
    tail = read.logprobs[-len(part.logprobs) :]
    assert [one.token for one in tail] == [one.token for one in part.logprobs]
    assert [one.logprob for one in tail] == pytest.approx([one.logprob for one in part.logprobs], abs=1e-2)


async def test_half_a_character_and_the_end_of_a_text_can_be_weighed(engine: Engine) -> None:
    body = {"model": "m", "prompt": "日本 😀<|endoftext|>a", "max_tokens": 0, "echo": True, "logprobs": 1}
    (choice,) = (await posted(engine, body))["choices"]
    tokens, likely = choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"]
    assert len(tokens) == len(likely) == await engine.count(continued("日本 😀<|endoftext|>a"))
    assert likely[0] is None
    assert all(one < 0 for one in likely[1:])


async def test_the_best_of_several(engine: Engine) -> None:
    sampling = Sampling(max_tokens=4, n=2, temperature=1.5, seed=3)
    response = await answered(engine, continued(FRANCE, sampling=sampling, best_of=4, echo=True))
    assert [candidate.finish for candidate in response.candidates] == [Finish(reason="length")] * 2
    assert response.usage is not None
    assert response.usage.output_tokens == 16
    assert all(not part.logprobs for one in response.candidates for part in one.content if isinstance(part, Text))


def test_the_likeliest_on_average_is_the_best() -> None:
    def said(*likely: float) -> Candidate:
        logprobs = tuple(Logprob(token="x", logprob=one) for one in likely)
        return Candidate(content=(Text(text="x" * len(likely), logprobs=logprobs),))

    response = Response(candidates=(said(-3.0), said(-1.0, -1.0), said(-1.5)), usage=Usage(output_tokens=4))
    chosen = best(response, Sampling(n=2, logprobs=True))
    assert chosen == replace(response, candidates=(said(-1.0, -1.0), said(-1.5)))
    (bare,) = best(response, Sampling()).candidates
    assert bare == Candidate(content=(Text(text="xx"),))


def test_an_unlikely_prompt_does_not_favour_the_longest() -> None:
    prompt = marked(Text(text="p", logprobs=(Logprob(token="p", logprob=-9.0),)), "engine")

    def behind(*likely: float) -> Candidate:
        return Candidate(
            content=(prompt, Text(text="x", logprobs=tuple(Logprob(token="x", logprob=one) for one in likely)))
        )

    response = Response(candidates=(behind(-1.2, -1.2, -1.2), behind(-1.0)))
    assert best(response, Sampling(logprobs=True)).candidates == (behind(-1.0),)
