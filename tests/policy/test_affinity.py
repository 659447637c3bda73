"""Which requests belong together, and where they are at home."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from xenoglot.dialects.messages import MESSAGES
from xenoglot.model.content import (
    Audio,
    CacheMark,
    Extra,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Remote,
    Stored,
    Text,
    ToolResult,
)
from xenoglot.model.request import Message, Prompt, Request, Tool
from xenoglot.policy.affinity import (
    SESSION_FIELDS,
    SESSION_HEADERS,
    prefix_of,
    rendezvous,
    session_of,
)

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

PLAIN = Request(model="m")
ID = "0a1b2c3d-0000-4000-8000-00000000beef"


def of_header(value: str) -> str | None:
    return session_of(PLAIN, [("x-session-id", value)])


@pytest.mark.parametrize(
    ("request_", "headers"),
    [
        *(pytest.param(PLAIN, [(name, ID)], id=f"header-{name}") for name in SESSION_HEADERS),
        *(
            pytest.param(replace(PLAIN, extra=Extra(dialect="chat", fields={name: ID})), [], id=f"field-{name}")
            for name in SESSION_FIELDS
        ),
        *(pytest.param(replace(PLAIN, metadata={name: ID}), [], id=f"metadata-{name}") for name in SESSION_FIELDS),
        pytest.param(replace(PLAIN, cache_key=ID), [], id="openai-prompt-cache-key"),
        pytest.param(
            replace(PLAIN, user=json.dumps({"device_id": "d", "account_uuid": "", "session_id": ID})),
            [],
            id="claude-code-user-id",
        ),
        pytest.param(replace(PLAIN, user=f"user_{'ab' * 32}_account__session_{ID}"), [], id="claude-code-2.1.77"),
        pytest.param(PLAIN, [("x-session-id", ""), ("session_id", f" {ID} ")], id="an-empty-header-says-nothing"),
        pytest.param(PLAIN, [("x-session-id", ID), ("x-session-id", "other")], id="the-first-of-two"),
        pytest.param(PLAIN, [("session-id", "other"), ("x-session-id", ID)], id="the-best-header"),
        pytest.param(replace(PLAIN, cache_key="other"), [("session-id", ID)], id="header-before-cache-key"),
        pytest.param(
            replace(PLAIN, extra=Extra(dialect="chat", fields={"session_id": ID}), cache_key="other"),
            [],
            id="field-before-cache-key",
        ),
        pytest.param(replace(PLAIN, cache_key=ID, user='{"session_id": "other"}'), [], id="cache-key-before-user"),
    ],
)
def test_one_session_however_it_is_said(request_: Request, headers: list[tuple[str, str]]) -> None:
    assert session_of(request_, headers) == of_header(ID)


@pytest.mark.parametrize(
    ("request_", "headers"),
    [
        pytest.param(PLAIN, [], id="nothing"),
        pytest.param(PLAIN, [("x-client-request-id", ID), ("x-request-id", ID)], id="ids-of-requests"),
        pytest.param(PLAIN, [("x-session-id", "  ")], id="blanks"),
        pytest.param(replace(PLAIN, user="alice"), [], id="a-user"),
        pytest.param(replace(PLAIN, user=f"user_session_{ID}x"), [], id="a-user-with-more-behind"),
        pytest.param(replace(PLAIN, user="{not json"), [], id="broken-json"),
        pytest.param(replace(PLAIN, user="{" * 100_000), [], id="C11-deep-json"),
        pytest.param(replace(PLAIN, user='{"a":' * 100_000), [], id="C11-deeper-json"),
        pytest.param(replace(PLAIN, user='{"session_id": 7}'), [], id="a-number"),
        pytest.param(replace(PLAIN, previous="resp_1"), [], id="an-earlier-answer"),
        pytest.param(replace(PLAIN, metadata={"session_id": [ID]}), [], id="a-list"),
        pytest.param(replace(PLAIN, cache_key=""), [], id="an-empty-cache-key"),
    ],
)
def test_what_says_nothing_of_a_session(request_: Request, headers: list[tuple[str, str]]) -> None:
    assert session_of(request_, headers) is None


def test_sessions_are_told_apart() -> None:
    assert of_header(ID) != of_header(ID + "0")
    assert of_header("\ud800") is not None  # a library's caller may say anything


def turn(text: str, **more: JSON) -> Message:
    return Message(role="user", content=(Text(text=text, **more),))


SYSTEM = Message(role="system", content=(Text(text="Be brief."),))
TOOL = Tool(name="look", description="Looks.", parameters={"type": "object"})
FIRST = Request(model="m", messages=(SYSTEM, turn("hello")), tools=(TOOL,))


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(
            replace(FIRST, messages=(*FIRST.messages, Message(role="assistant"), turn("and now?"))), id="turns"
        ),
        pytest.param(replace(FIRST, messages=(SYSTEM, turn("hello", cache=CacheMark(ttl="1h")))), id="cache-mark"),
        pytest.param(replace(FIRST, stream=True, cache_key="k", user="u"), id="what-is-no-prompt"),
        pytest.param(replace(FIRST, tools=(replace(TOOL, cache=CacheMark()),)), id="cache-mark-on-a-tool"),
        pytest.param(
            replace(
                FIRST,
                messages=(
                    replace(SYSTEM, content=(Opaque(dialect="messages", data={"cch": 1}), *SYSTEM.content)),
                    *FIRST.messages[1:],
                ),
            ),
            id="an-opaque-part",
        ),
        pytest.param(
            replace(FIRST, messages=(SYSTEM, turn("hello", extra=Extra(dialect="chat", fields={"a": 1})))),
            id="unknown-fields",
        ),
    ],
)
def test_the_beginning_stays_the_same(later: Request) -> None:
    assert prefix_of(later) == prefix_of(FIRST)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(FIRST, model="n"), id="model"),
        pytest.param(replace(FIRST, messages=(SYSTEM, turn("bye"))), id="first-turn"),
        pytest.param(replace(FIRST, messages=(turn("hello"),)), id="no-system-turn"),
        pytest.param(replace(FIRST, messages=(replace(SYSTEM, role="developer"), turn("hello"))), id="role"),
        pytest.param(replace(FIRST, messages=(SYSTEM, SYSTEM, turn("hello"))), id="another-system-turn"),
        pytest.param(replace(FIRST, tools=()), id="no-tools"),
        pytest.param(replace(FIRST, tools=(replace(TOOL, parameters={"type": "string"}),)), id="parameters"),
        pytest.param(replace(FIRST, tools=(replace(TOOL, description="Sees."),)), id="description"),
        pytest.param(replace(FIRST, tools=(TOOL, Opaque(dialect="chat", data={"type": "web"}))), id="a-server-tool"),
        pytest.param(
            replace(FIRST, messages=(SYSTEM, Message(role="user", content=(Text(text="hel"), Text(text="lo"))))),
            id="cut-elsewhere",
        ),
    ],
)
def test_another_beginning_is_another(other: Request) -> None:
    assert prefix_of(other) != prefix_of(FIRST)


def begun(part: Part) -> str:
    return prefix_of(Request(model="m", messages=(Message(role="user", content=(part,)),)))


@pytest.mark.parametrize(
    ("part", "other"),
    [
        pytest.param(Image(source=Inline("AA==")), Image(source=Inline("AB==")), id="inline"),
        pytest.param(Image(source=Remote("a")), Image(source=Remote("b")), id="remote"),
        pytest.param(File(source=Stored("a")), File(source=Stored("b")), id="stored"),
        pytest.param(File(source=Plain("a")), File(source=Plain("b")), id="plain"),
        pytest.param(Audio(source=Inline("a")), Audio(source=None), id="audio"),
        pytest.param(File(source=Nested((Text(text="a"),))), File(source=Nested((Text(text="b"),))), id="nested"),
        pytest.param(
            ToolResult(call_id="1", content=(Text(text="a"),)),
            ToolResult(call_id="1", content=(Text(text="b"),)),
            id="result",
        ),
        pytest.param(ToolResult(call_id="1"), ToolResult(call_id="2"), id="whose-result"),
        pytest.param(Text(text="a" * (65_536 + 1)), Text(text="a" * (65_536 + 2)), id="length"),
        pytest.param(Text(text="a" * 65_536 + "b"), Text(text="a" * (65_536 - 1) + "cb"), id="last-counted"),
    ],
)
def test_parts_are_told_apart(part: Part, other: Part) -> None:
    assert begun(part) != begun(other)


def test_what_lies_far_behind_is_not_looked_at() -> None:
    long = "a" * 65_536
    assert begun(Text(text=long + "b")) == begun(Text(text=long + "c"))


def test_a_bare_prompt_is_known_by_its_beginning() -> None:
    long = "a" * 4096
    prefixes = [
        prefix_of(Request(model="m", prompt=Prompt(texts=texts))) for texts in ((long + "b",), (long + "c", "d"))
    ]
    assert prefixes[0] == prefixes[1] != prefix_of(Request(model="m", prompt=Prompt(texts=(long[1:] + "b",))))
    assert prefix_of(Request(model="m", prompt=Prompt(texts=((1, 2),)))) != prefix_of(PLAIN)


def test_what_claude_code_changes_with_every_request_is_no_part_of_it() -> None:
    def asked(count: str) -> Request:
        block = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.329; cch={count};"}
        system = [block, {"type": "text", "text": "Be brief."}]
        body = {"model": "m", "max_tokens": 9, "system": system, "messages": [{"role": "user", "content": "hi"}]}
        return MESSAGES.decode_request(body)

    assert prefix_of(asked("1a2b3")) == prefix_of(asked("9f8e7"))


WEIGHTS = st.dictionaries(st.text(max_size=4), st.floats(0.1, 10.0), min_size=1, max_size=8)


@given(st.text(), WEIGHTS, st.data())
def test_only_the_groups_of_who_goes_are_moved(key: str, weights: dict[str, float], data: st.DataObject) -> None:
    before = rendezvous(key, weights)
    gone = data.draw(st.sampled_from(sorted(weights)))
    after = rendezvous(key, {name: weight for name, weight in weights.items() if name != gone})
    assert sorted(before) == sorted(weights)
    assert after == tuple(name for name in before if name != gone)
    assert rendezvous(key, dict(reversed(weights.items()))) == before


def test_each_gets_a_share_like_its_weight() -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 5.0, "d": 0.0}
    homes = Counter(rendezvous(str(key), weights)[0] for key in range(8000))
    assert {name: count / 8000 for name, count in homes.items()} == pytest.approx(
        {"a": 1 / 8, "b": 2 / 8, "c": 5 / 8}, abs=0.02
    )
    assert {rendezvous(str(key), weights)[-1] for key in range(100)} == {"d"}


def test_the_second_choices_are_spread_too() -> None:
    weights = dict.fromkeys("abcd", 1.0)
    seconds = Counter(names[1] for key in range(4000) if (names := rendezvous(str(key), weights))[0] == "a")
    assert all(math.isclose(count / seconds.total(), 1 / 3, abs_tol=0.05) for count in seconds.values())


def test_homes_are_the_same_on_every_machine() -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert ["".join(rendezvous(key, weights)) for key in ("", "x", "session")] == ["cba", "cba", "bca"]
