"""`timings_per_token`: what models of one's own say of tokens and time, in the form of llama-server."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from tests.backends.local_models import tiny
from tests.backends.local_models.engines import ChatTokenizer, Engine
from tests.backends.local_models.requests import call, events, lost, request_of, turn
from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.local_models.adapt import backend_of
from xenoglot.backends.local_models.async_engine import Templated
from xenoglot.backends.local_models.prompt_function import Prompted
from xenoglot.backends.local_models.transformers import Transformers
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.timings import timed
from xenoglot.codec.stage import through
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Failed,
    Finished,
    OpaqueDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.request import Sampling
from xenoglot.model.response import Finish, Response, Usage

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend, Call
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject

KEYS: Final = {
    "cache_n",
    *(f"{what}_{kind}" for what in ("prompt", "predicted") for kind in ("n", "ms", "per_token_ms", "per_second")),
}
SPOKEN: Final[tuple[Event, ...]] = (
    Started(),
    UsageReported(usage=Usage(input_tokens=4)),
    BlockStarted(part=Text(text="")),
    UsageReported(usage=Usage(output_tokens=1)),
    TextDelta(text="a"),
    UsageReported(usage=Usage(output_tokens=3)),
    TextDelta(text="bc"),
    BlockEnded(),
    Finished(finish=Finish(reason="stop")),
)


def asking(wanted: JSON, *, stream: bool, dialect: str = "chat", sampling: Sampling | None = None) -> Call:
    """A call that says `wanted` of timings."""
    request = request_of(turn("user", "abc"), sampling=sampling)
    extra = Extra(dialect=dialect, fields={"timings_per_token": wanted})
    return replace(call(replace(request, stream=stream, extra=extra)), dialect=dialect)


def told(found: list[Event]) -> list[JSONObject]:
    """The timings in a stream."""
    return [event.data["timings"] for event in found if isinstance(event, OpaqueDelta)]


async def measured(*said: Event, stream: bool) -> list[Event]:
    """The events of an answer that says `said`, by a clock of which each look is half a second later."""
    clock = count(0, 0.5)
    answer = await timed(asking(wanted=True, stream=stream), Scripted(said).answer, lambda: next(clock))
    assert isinstance(answer, EventAnswer)
    return [event async for batch in answer.batches for event in batch]


def rates(name: str, tokens: int, milliseconds: float) -> JSONObject:
    """One half of the timings."""
    return {
        f"{name}_n": tokens,
        f"{name}_ms": milliseconds,
        f"{name}_per_token_ms": milliseconds / tokens,
        f"{name}_per_second": 1000 * tokens / milliseconds if milliseconds else 0.0,
    }


async def test_findings_f_a_stream_tells_after_each_piece() -> None:
    found = await measured(*SPOKEN, stream=True)
    prompt = {"cache_n": 0, **rates("prompt", 4, 500.0)}
    assert told(found) == [
        {**prompt, **rates("predicted", 1, 0.0)},
        {**prompt, **rates("predicted", 3, 500.0)},
        {**prompt, **rates("predicted", 3, 1000.0)},
    ]
    assert [event for event in found if not isinstance(event, OpaqueDelta)] == [*SPOKEN]


async def test_findings_f_a_whole_answer_tells_once() -> None:
    found = await measured(*SPOKEN, stream=False)
    assert told(found) == []
    answer = fold(found)
    assert isinstance(answer, Response)
    assert answer.extra is not None
    assert answer.extra.fields["timings"] == {
        "cache_n": 0,
        **rates("prompt", 4, 500.0),
        **rates("predicted", 3, 1000.0),
    }
    assert answer == replace(fold(SPOKEN), extra=answer.extra)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failed_answer_fails(*, stream: bool) -> None:
    failed = Failed(failure=Failure(kind="internal", message="m"))
    assert (await measured(Started(), failed, stream=stream))[-1] == failed


def backends() -> dict[str, Backend]:
    """Models of one's own that count their tokens."""
    return {
        "engine": Templated(Engine()),
        "prompted": Prompted(lambda prompt: prompt[-3:], "p", tokenizer=ChatTokenizer()),
        "transformers": Transformers(tiny.model(), tiny.tokenizer(), "tiny"),
        "text": backend_of(Engine(), text_syntax="hermes"),
    }


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ["chat", "completions"])
@pytest.mark.parametrize("name", ["engine", "prompted", "transformers", "text"])
async def test_findings_f_models_of_ones_own_tell(name: str, dialect: str, *, stream: bool) -> None:
    backend = backends()[name]
    made = asking(wanted=True, stream=stream, dialect=dialect, sampling=Sampling(max_tokens=3, n=2))
    found = await events(backend, made)
    await backend.aclose()
    answer = fold(found)
    assert isinstance(answer, Response)
    assert answer.usage is not None
    if stream:
        timings = told(found)[-1]
    else:
        assert answer.extra is not None
        timings = answer.extra.fields["timings"]
    assert timings.keys() == KEYS
    assert timings["prompt_n"] == answer.usage.input_tokens
    assert timings["predicted_n"] == answer.usage.output_tokens
    assert not any("timings" in loss for loss in lost(made.losses))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wanted", [False, None])
async def test_findings_f_timings_are_told_on_request_alone(wanted: JSON, *, stream: bool) -> None:
    made = asking(wanted, stream=stream)
    found = await events(Templated(Engine()), made)
    answer = fold(found)
    assert told(found) == []
    assert isinstance(answer, Response)
    assert answer.extra is None
    assert lost(made.losses) == []


@pytest.mark.parametrize(
    ("backend", "dialect"),
    [
        pytest.param(Prompted(lambda prompt: prompt, "p"), "chat", id="a model that counts nothing"),
        pytest.param(
            Prompted(lambda prompt: prompt, "p", tokenizer=ChatTokenizer()), "messages", id="no field for them"
        ),
    ],
)
async def test_where_there_are_none_a_loss_says_so(backend: Backend, dialect: str) -> None:
    made = asking(wanted=True, stream=True, dialect=dialect)
    assert told(await events(backend, made)) == []
    assert [loss for loss in lost(made.losses) if "timings" in loss] == ["$ timings_per_token dropped"]


async def test_what_is_neither_yes_nor_no_is_refused() -> None:
    with pytest.raises(WireError, match="timings_per_token: expected true or false"):
        await events(Templated(Engine()), asking(1, stream=True))


async def test_chat_has_them_in_its_chunks() -> None:
    """What a client reads: chunks without choices in a stream, one field of a whole answer."""
    chat = dialects.get("chat")
    made = asking(wanted=True, stream=True, sampling=Sampling(max_tokens=2))
    encoder = chat.stream_encoder(made.request, made.losses)
    sent = b"".join(event.data for event in through(await events(Templated(Engine()), made), encoder))
    assert sent.count(b'"timings":{"cache_n":0,"prompt_n":') == 3
