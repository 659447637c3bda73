"""Housekeeping requests through the gateway: answered without the upstream where the configuration says so."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import anthropic
import pytest

from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.shortcuts import switched
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.config.load import check
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from xenoglot.gateway.relay.push_driver import PushRelay
    from xenoglot.model.json import JSON

LOCAL: dict[str, JSON] = {"messages": {"local_answers": ["quota_probe", "suggestion"]}}
QUOTA: list[anthropic.types.MessageParam] = [{"role": "user", "content": "quota"}]


@pytest.mark.parametrize("clients", [LOCAL, {}], ids=["on", "off"])
def test_f_s7_a_quota_probe_does_not_reach_the_upstream(
    clients: dict[str, JSON], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "xenoglot.access")
    with (
        Upstream(*answers("chat", text="Hello.").rules()) as upstream,
        DialectGateway(upstream, clients=clients) as gateway,
        anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client,
    ):
        message = client.messages.create(model="m", max_tokens=1, messages=QUOTA)
        with client.messages.stream(model="m", max_tokens=1, messages=QUOTA) as stream:
            streamed = stream.get_final_message()
        client.messages.create(model="m", max_tokens=9, messages=QUOTA)
    texts = ["".join(block.text for block in one.content if block.type == "text") for one in (message, streamed)]
    expected = "Quota check passed." if clients else "Hello."
    assert (texts, len(upstream.requests)) == ([expected] * 2, 1 if clients else 3)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "xenoglot.access"]
    targets = [f"{line['backend']}/{line['target']}" for line in lines]
    assert targets == (["local/quota_probe"] * 2 if clients else ["up/m"] * 2) + ["up/m"]


def test_the_answer_says_that_no_model_was_called() -> None:
    with (
        Upstream(*answers("chat", text="Hello.").rules()) as upstream,
        DialectGateway(upstream, clients=LOCAL) as gateway,
        anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client,
    ):
        found = [
            client.messages.with_raw_response.create(model="m", max_tokens=size, messages=QUOTA, stream=stream)
            for size in (1, 9)
            for stream in (False, True)
        ]
    assert [one.headers["x-xenoglot-target"] for one in found] == ["local/quota_probe"] * 2 + ["up/m"] * 2


def test_whatever_is_no_housekeeping_needs_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    passage = FastPath.passage

    def noted(*arguments: object) -> PushRelay | None:
        found = passage(*arguments)  # type: ignore[arg-type]  # as it was called
        made.append(found is not None)
        return found

    monkeypatch.setattr(FastPath, "passage", noted)
    long: list[anthropic.types.MessageParam] = [{"role": "user", "content": "quota " * 4000}]
    with (
        switched(on=True),
        Upstream(*answers("chat", text="Hello.").rules()) as upstream,
        DialectGateway(upstream, clients=LOCAL) as gateway,
        anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client,
    ):
        for size, messages in ((1, QUOTA), (9, QUOTA), (1, long)):
            client.messages.create(model="m", max_tokens=size, messages=messages)
    assert made == [False, True, True]


def test_an_empty_answer_is_whole() -> None:
    with (
        Upstream(*answers("chat").rules()) as upstream,
        DialectGateway(upstream, clients=LOCAL) as gateway,
        anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client,
    ):
        turns: list[anthropic.types.MessageParam] = [{"role": "user", "content": "[SUGGESTION MODE: what next?]"}]
        message = client.messages.create(model="m", max_tokens=99, messages=turns)
        with client.messages.stream(model="m", max_tokens=99, messages=turns) as stream:
            streamed = stream.get_final_message()
    assert [(one.content, one.stop_reason) for one in (message, streamed)] == [([], "end_turn")] * 2
    assert upstream.requests == []


def test_a_kind_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match=r"clients.messages.local_answers: found a list"):
        check({"clients": {"messages": {"local_answers": ["everything"]}}}, {}, "the tests")
