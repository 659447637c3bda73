"""The gateway without sockets: it answers, and what it answers wrongly is not measured."""

from __future__ import annotations

import pytest

from bench.inmemory import Load, asked, spent, streamed, whole
from bench.samples import answer, small, spoken, written
from xenoglot.dialect_registry import get


@pytest.mark.parametrize("stream", [False, True])
def test_it_answers_every_request(stream: bool) -> None:  # noqa: FBT001  a parameter
    said = spoken("chat", 5)
    ready = streamed(said.media_type, said.frames) if stream else whole(answer("chat").body)
    request = asked(get("messages").path, written("messages", small(stream=stream)))
    rounds = spent(Load("chat", request, ready, stream, connections=2), times=2, rounds=3)
    assert [seconds > 0 for seconds in rounds] == [True, True, True]


def test_what_is_no_answer_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match='status="400"'):
        spent(Load("chat", asked("/v1/messages", b"{}"), whole(b"{}"), connections=1), times=1, rounds=1)
