"""Redaction: what is replaced, that answers have the values again however they are cut, and what upstreams see."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.test_runner import ask, text
from xenoglot.hooks.hook import HookContext, HookSettings
from xenoglot.hooks.placeholders import Placeholders, Restorer
from xenoglot.hooks.redact import Redact
from xenoglot.hooks.texts import request_texts
from xenoglot.model.content import File, Nested, Plain, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, Event, Finished, Started, TextDelta
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Prompt, Request
from xenoglot.model.response import Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.content import Part

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def context() -> HookContext:
    return HookContext(request_id="req_1", dialect="chat", model="m", stream=True)


def redacted(words: str, **options: object) -> str:
    request = Request(model="m", messages=(Message(role="user", content=(Text(text=words),)),))
    hook = Redact(**options)  # type: ignore[arg-type]
    return request_texts(hook.before_request(request, context()))[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(f"use {KEY}.", "use <API_KEY_1>.", id="key"),
        pytest.param("ghp_" + "a1" * 18, "<API_KEY_1>", id="github"),
        pytest.param("AKIAIOSFODNN7EXAMPLE", "<API_KEY_1>", id="aws"),
        pytest.param("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4", "<TOKEN_1>", id="jwt"),
        pytest.param("postgres://me:s3cret@db/x", "postgres://<PASSWORD_IN_URL_1>@db/x", id="password-in-a-url"),
        pytest.param(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "<PRIVATE_KEY_1>", id="private-key"
        ),
        pytest.param(
            "-----BEGIN PRIVATE KEY-----A-----BEGIN PRIVATE KEY-----B-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----A<PRIVATE_KEY_1>",
            id="a-key-ends-before-the-next-begins",
        ),
        pytest.param("Mail ada@example.com!", "Mail <EMAIL_ADDRESS_1>!", id="email"),
        pytest.param("Card 4111 1111 1111 1111", "Card <CREDIT_CARD_1>", id="card"),
        pytest.param("Order 4111 1111 1111 1112", "Order 4111 1111 1111 1112", id="no-card"),
        pytest.param("DE89 3704 0044 0532 0130 00", "<IBAN_CODE_1>", id="iban"),
        pytest.param("DE88 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00", id="no-iban"),
        pytest.param("SSN 078-05-1120", "SSN <US_SSN_1>", id="ssn"),
        pytest.param("Call +49 30 1234567 or (212) 555-0100", "Call <PHONE_NUMBER_1> or <PHONE_NUMBER_2>", id="phone"),
        pytest.param("from 192.168.0.17", "from <IP_ADDRESS_1>", id="address"),
        pytest.param("a@x.org b@x.org a@x.org", "<EMAIL_ADDRESS_1> <EMAIL_ADDRESS_2> <EMAIL_ADDRESS_1>", id="again"),
        pytest.param("<EMAIL_ADDRESS_1> a@x.org", "<EMAIL_ADDRESS_1> <EMAIL_ADDRESS_2>", id="taken-by-the-client"),
        pytest.param("Version 1.2.3, 12:30, 3.14", "Version 1.2.3, 12:30, 3.14", id="numbers"),
    ],
)
def test_what_is_replaced(words: str, expected: str) -> None:
    assert redacted(words) == expected


def test_options() -> None:
    words = f"{KEY} a@x.org 192.168.0.17 EMP-0042"
    assert (
        redacted(words, secrets=False, personal=["EMAIL_ADDRESS"]) == f"{KEY} <EMAIL_ADDRESS_1> 192.168.0.17 EMP-0042"
    )
    own = redacted(words, personal=False, patterns={"EMPLOYEE": r"EMP-\d+"})
    assert own == "<API_KEY_1> a@x.org 192.168.0.17 <EMPLOYEE_1>"


class Names:
    """An analyzer with the interface of presidio's."""

    def analyze(self, text: str, language: str, entities: list[str] | None = None) -> list[Any]:
        """Find Ada."""
        assert (language, entities) == ("en", None)
        at = text.find("Ada")
        return [type("Result", (), {"start": at, "end": at + 3, "entity_type": "PERSON"})] if at >= 0 else []


def test_an_analyzer_takes_the_place_of_patterns() -> None:
    assert redacted(f"Ada, a@x.org, {KEY}", analyzer=Names()) == "<PERSON_1>, a@x.org, <API_KEY_1>"


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(ToolCall(id="1", name="t", arguments=json.dumps({"to": "a@x.org"})), id="arguments"),
        pytest.param(ToolResult(call_id="1", content=(Text(text="a@x.org"),)), id="result"),
        pytest.param(Reasoning(text="a@x.org", summary=("a@x.org",)), id="reasoning"),
        pytest.param(File(source=Plain("a@x.org")), id="document"),
        pytest.param(File(source=Nested((Text(text="a@x.org"),))), id="document-of-parts"),
    ],
)
def test_where_it_is_replaced(part: Part) -> None:
    request = Request(model="m", messages=(Message(role="user", content=(part,)),))
    changed = Redact().before_request(request, context())
    assert all("<EMAIL_ADDRESS_1>" in one for one in request_texts(changed))
    assert "a@x.org" not in "".join(request_texts(changed))


def test_prompts_without_turns() -> None:
    request = Request(model="m", prompt=Prompt(texts=("a@x.org", (1, 2)), suffix="b@x.org"))
    changed = Redact().before_request(request, context())
    assert changed.prompt == Prompt(texts=("<EMAIL_ADDRESS_1>", (1, 2)), suffix="<EMAIL_ADDRESS_2>")


def test_a_request_without_findings_is_unchanged() -> None:
    request = Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),))
    assert Redact().before_request(request, context()) is request


MAIL, NAME = 'a"b@x.org', "<EMAIL_ADDRESS_1>"
PLACEHOLDERS = Placeholders(values={NAME: MAIL, "<EMAIL_ADDRESS_12>": "c@x.org"})


def stream(kind: type[TextDelta | ArgumentsDelta], header: Part, pieces: list[str]) -> list[Event]:
    middle: list[Event] = [kind(piece) for piece in pieces]
    finished = Finished(finish=Finish(reason="stop"))
    return [Started(), BlockStarted(part=header), *middle, BlockEnded(), finished]


def restored(events: list[Event]) -> Response:
    restorer = Restorer(PLACEHOLDERS)
    made: list[Event] = []
    for event in events:
        changed = restorer.feed(event)
        made += (event,) if changed is None else changed
    answer = fold(made)
    assert isinstance(answer, Response)
    return answer


WORDS = f"Write <b> to {NAME}, <EMAIL_ADDRESS_12> or <EMAIL_ADDRESS_3> < <EMAIL"
BACK = f"Write <b> to {MAIL}, c@x.org or <EMAIL_ADDRESS_3> < <EMAIL"


def cut(words: str, places: list[int]) -> list[str]:
    ends = [0, *sorted(place % (len(words) + 1) for place in places), len(words)]
    return [words[a:b] for a, b in pairwise(ends)]


@given(st.lists(st.integers(0, 500)))
def test_values_are_restored_however_a_text_is_cut(places: list[int]) -> None:
    answer = restored(stream(TextDelta, Text(text=""), cut(WORDS, places)))
    assert answer.candidates[0].content == (Text(text=BACK),)


@given(st.lists(st.integers(0, 500)))
def test_values_are_restored_in_arguments_as_json(places: list[int]) -> None:
    words = json.dumps({"to": [NAME]})
    answer = restored(stream(ArgumentsDelta, ToolCall(id="1", name="send"), cut(words, places)))
    (call,) = answer.candidates[0].content
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"to": [MAIL]}


def test_a_conversation_that_grows_keeps_its_placeholders() -> None:
    """What was restored for the client becomes what the model wrote, so that signed reasoning and caches still fit."""
    first = (Message(role="user", content=(Text(text="a@x.org and b@x.org"),)),)
    once, state = Redact(), context()
    sent = once.before_request(Request(model="m", messages=first), state)
    thought = Reasoning(text="<EMAIL_ADDRESS_2> wrote to <EMAIL_ADDRESS_1>")
    restorer = state.state["restorer"]
    (given_back,) = restorer.feed(BlockEnded(part=thought))
    turns = (
        *first,
        Message(role="assistant", content=(given_back.part,)),
        Message(role="user", content=(Text(text="c@x.org"),)),
    )
    again = Redact().before_request(Request(model="m", messages=turns), context())
    assert again.messages[: len(first)] == sent.messages
    assert again.messages[1].content == (thought,)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_the_upstream_sees_placeholders_and_the_client_its_words(streamed: bool) -> None:  # noqa: FBT001
    settings = HookSettings(use="redact")
    body = {"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "Mail Hello@example.com"}]}
    answer, backend = ask(settings, body=body)
    assert request_texts(backend.requests[0]) == ["Mail <EMAIL_ADDRESS_1>"]
    assert text(answer) == "Hello"
