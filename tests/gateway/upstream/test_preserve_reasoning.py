"""What clients strip of an answer comes back to whoever made it, to nobody else, and only while it is kept."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError, LossError
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.gateway.config.settings import KeySettings, ServerSettings, UpstreamSettings
from xenoglot.gateway.routing.router import Route
from xenoglot.gateway.store_service import StoreService
from xenoglot.gateway.upstream.preserve_reasoning import ReasoningCacheBackend, may_lack, preserves
from xenoglot.gateway.upstream.reasoning_cache import CachedTurn, kept, keys, pack, restored, unpack
from xenoglot.model.content import Extra, Origin, Reasoning, Text, ToolCall
from xenoglot.model.events import Finished
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.store.ledger import limit_windows
from xenoglot.store.ledger.limit_windows import LimitWindow
from xenoglot.store.records import Retention, StoreError
from xenoglot.store.sqlite import Memory, SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.backends.backend import Answer
    from xenoglot.gateway.config.settings import Preserve
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

PLENTY = Retention(max_age=3600, max_bytes=1_000_000)
NOW = 1_000.0
SIGNED = Origin(dialect="messages")
ARGUMENTS = '{"city":"Lyon"}'
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lyon"}'}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
ASK = {"role": "user", "content": "Rain?"}
TOOL_USE = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Lyon"}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "call_1", "content": "rain"}
CHAT_TURNS = [ASK, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT]
MESSAGES_TURNS = [
    ASK,
    {"role": "assistant", "content": [TOOL_USE]},
    {"role": "user", "content": [TOOL_RESULT]},
]
WEATHER = ToolCall(id="call_1", name="weather", arguments=ARGUMENTS)


def answered(*parts: Part) -> Response:
    """An answer that says `parts`."""
    finish = Finish(reason="tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop")
    return Response(id="1", model="m", created=1, candidates=(Candidate(content=parts, finish=finish),))


class PreservingBackends:
    """Backends that preserve into one store."""

    def __init__(self, store: SQLite | None = None) -> None:
        self.store = store or Memory()
        self.now = NOW
        self.keeper = StoreService(self.store, PLENTY, now=lambda: self.now)

    def answer(
        self,
        backend: Scripted,
        dialect: str,
        turns: Sequence[JSON],
        *,
        owner: str = "ann",
        place: str = "main",
    ) -> Request:
        """Send a request; return it as the backend got it."""
        body = {"model": "m", "messages": turns, "max_tokens": 99}
        request = get(dialect).decode_request(body)
        preserving = ReasoningCacheBackend(backend, self.keeper, owner, place)
        call = Call(request=request, losses=Losses(), dialect=dialect, body=b"{}")
        asyncio.run(spent(preserving, call))
        return backend.requests[-1]


async def spent(backend: ReasoningCacheBackend, call: Call) -> None:
    """Read an answer to its end."""
    answer = await backend.answer(call)
    assert isinstance(answer, EventAnswer)
    async for _ in answer.batches:
        pass
    await answer.aclose()


def wire(request: Request, dialect: str, target: Target | None = None) -> JSONObject:
    """Return what an upstream of `dialect` is sent."""
    return get(dialect).encode_request(request, Losses(), target or Target())


def read(dialect: str, body: JSON) -> Response:
    """Return the answer of an upstream of `dialect`."""
    return get(dialect).decode_response(body)


DEEPSEEK = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "", "reasoning_content": "Lyon it is.", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
}
THINKING = {"type": "thinking", "thinking": "Lyon it is.", "signature": "c2VhbA"}
REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}


def anthropic(*content: JSON) -> JSONObject:
    """An answer of an upstream of Messages."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


@pytest.mark.parametrize(("dialect", "turns"), [("chat", CHAT_TURNS), ("messages", MESSAGES_TURNS)])
def test_deepseek_gets_its_reasoning_back_pitfall_53(dialect: str, turns: list[JSON]) -> None:
    backends, backend = PreservingBackends(), Scripted(read("chat", DEEPSEEK))
    backends.answer(backend, dialect, turns[:1])
    sent = wire(backends.answer(backend, dialect, turns), "chat")
    assert sent["messages"][1]["reasoning_content"] == "Lyon it is."
    assert [call["id"] for call in sent["messages"][1]["tool_calls"]] == ["call_1"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param([THINKING, {"type": "text", "text": "Let me see."}, TOOL_USE], id="thinking"),
        pytest.param([REDACTED, TOOL_USE], id="redacted"),
        pytest.param([THINKING, REDACTED, TOOL_USE, {**TOOL_USE, "id": "call_2"}], id="two-thoughts-two-calls"),
        pytest.param([THINKING, TOOL_USE, REDACTED, {**TOOL_USE, "id": "call_2"}], id="between-calls"),
    ],
)
def test_anthropic_gets_its_seals_back_through_a_client_that_strips_pitfall_50(content: list[JSON]) -> None:
    backends, backend = PreservingBackends(), Scripted(read("messages", anthropic(*content)))
    backends.answer(backend, "chat", [ASK])
    calls = [{**CALL, "id": block["id"]} for block in content if block["type"] == "tool_use"]
    words = "".join(block["text"] for block in content if block["type"] == "text")
    turns = [
        ASK,
        {"role": "assistant", "content": words or None, "tool_calls": calls},
        *({**RESULT, "tool_call_id": call["id"]} for call in calls),
    ]
    assert wire(backends.answer(backend, "chat", turns), "messages")["messages"][1]["content"] == content


def test_words_without_their_seal_are_replaced_by_the_thought_itself_pitfall_50() -> None:
    backends, backend = PreservingBackends(), Scripted(read("messages", anthropic(THINKING, TOOL_USE)))
    backends.answer(backend, "chat", [ASK])
    turns = [ASK, {**CHAT_TURNS[1], "reasoning_content": "Lyon it is."}, RESULT]  # type: ignore[dict-item]  # an object
    assert wire(backends.answer(backend, "chat", turns), "messages")["messages"][1]["content"] == [THINKING, TOOL_USE]


def test_what_a_client_brings_back_itself_stays_pitfall_50() -> None:
    backends, backend = PreservingBackends(), Scripted(read("messages", anthropic(THINKING, TOOL_USE)))
    backends.answer(backend, "messages", [ASK])
    other = {**THINKING, "signature": "b3RoZXI"}
    turns = [ASK, {"role": "assistant", "content": [other, TOOL_USE]}, MESSAGES_TURNS[2]]
    assert wire(backends.answer(backend, "messages", turns), "messages")["messages"] == turns


GEMINI = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"id": "call_1", "name": "weather", "args": {"city": "Lyon"}},
                        "thoughtSignature": "c2VhbA==",
                    }
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "modelVersion": "m",
    "responseId": "1",
}


@pytest.mark.parametrize(("dialect", "turns"), [("chat", CHAT_TURNS), ("messages", MESSAGES_TURNS)])
def test_gemini_gets_its_signature_back_on_the_call_pitfall_52(dialect: str, turns: list[JSON]) -> None:
    backends, backend = PreservingBackends(), Scripted(read("gemini", GEMINI))
    backends.answer(backend, dialect, turns[:1])
    sent = wire(backends.answer(backend, dialect, turns), "gemini")
    (part,) = [part for turn in sent["contents"] for part in turn["parts"] if "functionCall" in part]
    assert part["thoughtSignature"] == "c2VhbA=="


def test_a_turn_without_calls_is_found_by_its_words_pitfall_58() -> None:
    backends = PreservingBackends()
    backend = Scripted(answered(Reasoning(text="hm", signature="s", origin=SIGNED), Text(text="It rains.")))
    backends.answer(backend, "chat", [ASK])
    turns = [ASK, {"role": "assistant", "content": "It rains.\n"}, ASK]
    content = backends.answer(backend, "chat", turns).messages[1].content
    assert content[0] == Reasoning(text="hm", signature="s", origin=SIGNED)


THOUGHT = Scripted(answered(Reasoning(text="hm", signature="s", origin=SIGNED), WEATHER))


def thoughts(request: Request) -> list[Part]:
    """What was thought in the history of a request."""
    return [part for message in request.messages for part in message.content if isinstance(part, Reasoning)]


@pytest.mark.parametrize(
    ("who", "found"),
    [
        pytest.param({"owner": "ann", "place": "main"}, True, id="same"),
        pytest.param({"owner": "bob", "place": "main"}, False, id="another-client-with-the-same-ids"),
        pytest.param({"owner": "ann", "place": "other"}, False, id="pitfall-51-another-upstream"),
    ],
)
def test_only_the_same_client_and_upstream_meet_it_again(who: dict[str, str], found: bool) -> None:  # noqa: FBT001  a column
    backends = PreservingBackends()
    backends.answer(THOUGHT, "chat", [ASK])
    request = backends.answer(THOUGHT, "chat", CHAT_TURNS, owner=who["owner"], place=who["place"])
    assert bool(thoughts(request)) == found


def test_an_id_that_another_call_has_tells_nothing() -> None:
    """Servers count their calls from 0 in every conversation."""
    backends = PreservingBackends()
    backends.answer(THOUGHT, "chat", [ASK])
    other = {**CALL, "function": {"name": "weather", "arguments": '{"city": "Nice"}'}}
    turns = [ASK, {"role": "assistant", "content": None, "tool_calls": [other]}, RESULT]
    assert thoughts(backends.answer(THOUGHT, "chat", turns)) == []


OLLAMA_CALL = {"function": {"name": "weather", "arguments": {"city": "Lyon"}}}
OLLAMA_TURNS = [
    ASK,
    {"role": "assistant", "content": "", "tool_calls": [OLLAMA_CALL]},
    {"role": "tool", "tool_name": "weather", "content": "rain"},
]


@pytest.mark.parametrize(("asked", "found"), [("Rain?", True), ("Snow?", False)])
def test_calls_without_ids_are_found_by_what_they_ask_behind_the_same_words_pitfall_52(
    asked: str,
    found: bool,  # noqa: FBT001  a column
) -> None:
    backends, backend = PreservingBackends(), Scripted(read("gemini", GEMINI))
    backends.answer(backend, "ollama", [ASK])
    request = backends.answer(backend, "ollama", [{**ASK, "content": asked}, *OLLAMA_TURNS[1:]])
    (call,) = [part for turn in request.messages for part in turn.content if isinstance(part, ToolCall)]
    assert (call.extra is not None and call.extra.fields == {"thoughtSignature": "c2VhbA=="}) == found


class Listening(Scripted):
    """Remembers how it was called."""

    call: Call

    async def answer(self, call: Call) -> Answer:
        self.call = call
        return await super().answer(call)


def test_nobody_loses_what_was_put_back() -> None:
    """pitfall-52: Gemini takes no thought back that it did not sign. A client that left it out lost nothing by that."""
    backends, losses, backend = (
        PreservingBackends(),
        Losses(strict=True),
        Listening(answered(Reasoning(text="hm"), WEATHER)),
    )
    backends.answer(backend, "chat", [ASK])
    turns = [ASK, {"role": "assistant", "content": None, "tool_calls": [{**CALL, "odd": 1}]}, RESULT]
    call = Call(request=get("chat").decode_request({"model": "m", "messages": turns}), losses=losses)
    asyncio.run(spent(ReasoningCacheBackend(backend, backends.keeper, "ann", "main"), call))
    assert thoughts(backend.call.request) == [Reasoning(text="hm")]
    get("gemini").encode_request(backend.call.request, backend.call.losses, Target())
    told = [(loss.where, loss.what) for loss in losses if loss.where.startswith("$.messages[1].content")]
    assert told == [("$.messages[1].content[0]", "odd")]  # where the client had it
    with pytest.raises(LossError):
        backend.call.losses.settle()


def test_what_is_too_old_is_gone() -> None:
    backends = PreservingBackends()
    backends.answer(THOUGHT, "chat", [ASK])
    assert asyncio.run(backends.store.sweep(NOW + PLENTY.max_age + 1, PLENTY, 100)) == len(keys((WEATHER,)))
    assert thoughts(backends.answer(THOUGHT, "chat", CHAT_TURNS)) == []


def test_a_store_that_fails_keeps_nobody_from_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("gone")

    backends = PreservingBackends()
    for name in ("put_cached", "get_cached_of"):
        monkeypatch.setattr(backends.store, name, fail)
    backends.answer(THOUGHT, "chat", [ASK])
    assert thoughts(backends.answer(THOUGHT, "chat", CHAT_TURNS)) == []


def test_it_is_kept_before_the_client_can_know_that_the_answer_is_over() -> None:
    backends = PreservingBackends()

    async def look() -> list[bool]:
        answer = await ReasoningCacheBackend(THOUGHT, backends.keeper, "ann", "main").answer(
            Call(request=Request(model="m"), losses=Losses())
        )
        assert isinstance(answer, EventAnswer)
        *_, key = keys((WEATHER,))
        seen = []
        async for batch in answer.batches:
            known = await backends.store.get_cached("ann", key, "main")
            seen.append((any(isinstance(event, Finished) for event in batch), known is not None))
        return [ended == known for ended, known in seen]

    assert all(asyncio.run(look()))


# -- the vault itself


def test_nothing_is_kept_of_an_answer_of_words_and_calls() -> None:
    assert kept((Text(text="Hi"), WEATHER)) is None
    assert kept((Text(text="Hi", extra=Extra(dialect="chat", form={"part": True})),)) is None


def test_what_is_kept_survives_the_store() -> None:
    found = kept(
        (
            Reasoning(summary=("a",), encrypted="e", origin=Origin(dialect="d", provider="p"), id="r1"),
            Text(text="Hi", extra=Extra(dialect="d", fields={"x": [1, None]})),
            Reasoning(text="b", signature="s"),
        )
    )
    assert found is not None
    assert unpack(pack(found)) == found
    assert unpack(b'{"thoughts":[{}]}') is None
    assert unpack(b"not JSON") is None


def test_thoughts_stand_where_they_stood() -> None:
    one, two, three = (Reasoning(text=name, signature=name) for name in ("one", "two", "three"))
    again = ToolCall(id="call_2", name="weather")
    found = kept((one, Text(text="a"), two, WEATHER, again, three)) or CachedTurn()
    turn = Message(role="assistant", content=(Text(text="a "), WEATHER, again))
    assert restored(turn, found).content == (one, Text(text="a "), two, WEATHER, again, three)
    changed = Message(role="assistant", content=(Text(text="b"), again))
    assert restored(changed, found).content == (one, two, Text(text="b"), again, three)


def test_a_field_of_its_own_is_put_back_where_there_is_none() -> None:
    sealed = ToolCall(id="call_1", name="weather", arguments=ARGUMENTS, extra=Extra(dialect="d", fields={"seal": "s"}))
    found = kept((sealed,)) or CachedTurn()
    assert restored(Message(role="assistant", content=(WEATHER,)), found).content == (sealed,)
    own = ToolCall(id="call_1", name="weather", arguments=ARGUMENTS, extra=Extra(dialect="chat", fields={"x": 1}))
    assert restored(Message(role="assistant", content=(own,)), found).content == (own,)


def test_arguments_may_come_back_spelled_otherwise() -> None:
    spelled = ToolCall(id="call_1", name="weather", arguments='{ "city" : "Lyon" }')
    assert keys((spelled,)) == keys((WEATHER,))
    assert keys((Text(text=" "),)) == keys(()) == []


def test_the_same_words_in_two_conversations_are_two_turns() -> None:
    done = (Text(text="Done."),)
    asked = [Message(role="user", content=(Text(text=text),)) for text in ("Sweep.", "Cook.", "Sweep.")]
    one, other, again = (keys(done, before) for before in asked)
    assert one == again
    assert one != other


# -- the whole gateway


class Measuring(Scripted):
    """Counts the parts of a prompt."""

    async def count(self, call: Call) -> int | None:
        return sum(len(message.content) for message in call.request.messages)


def test_what_is_put_back_is_counted(gateway_server: Callable[..., RunningGateway]) -> None:
    backend = Measuring(answered(Reasoning(text="hm", signature="s", origin=SIGNED), WEATHER))
    upstream = UpstreamSettings(dialect="messages", base_url="http://upstream.invalid", preserve_reasoning=True)
    running = gateway_server({"scripted": backend}, config_for("scripted", upstreams={"scripted": upstream}))
    running.request("POST", "/v1/messages", {"model": "m", "max_tokens": 9, "messages": MESSAGES_TURNS[:1]})
    counted = running.request("POST", "/v1/messages/count_tokens", {"model": "m", "messages": MESSAGES_TURNS})
    assert json.loads(counted.body) == {"input_tokens": 4}


def test_the_configuration_turns_it_on(gateway_server: Callable[..., RunningGateway]) -> None:
    """The keys are two clients': the same ids, and neither meets what the other was told."""
    backend = Scripted(answered(Reasoning(text="hm", signature="s", origin=SIGNED), WEATHER))
    upstream = UpstreamSettings(dialect="chat", base_url="http://upstream.invalid/v1", preserve_reasoning=True)
    config = config_for(
        "scripted",
        upstreams={"scripted": upstream},
        keys=KeySettings(env=("KEYS",)),
        secrets=Secrets({"KEYS": "ann-secret bob-secret"}),
    )
    running = gateway_server({"scripted": backend}, config)

    def ask(key: str, turns: Sequence[JSON]) -> Request:
        headers = {"authorization": f"Bearer {key}"}
        body = {"model": "m", "messages": turns}
        assert running.request("POST", "/v1/chat/completions", body, headers).status == 200
        return backend.requests[-1]

    ask("ann-secret", [ASK])
    assert thoughts(ask("ann-secret", CHAT_TURNS)) == [Reasoning(text="hm", signature="s", origin=SIGNED)]
    assert thoughts(ask("bob-secret", CHAT_TURNS)) == []


@pytest.mark.parametrize(
    ("dialect", "preserve", "kept"),
    [
        pytest.param("messages", "translated", True, id="another-dialect"),
        pytest.param("chat", "translated", False, id="its-own-dialect"),
        pytest.param("chat", True, True, id="every-dialect"),
        pytest.param("messages", False, False, id="off"),
    ],
)
def test_for_whom_it_is_kept(
    gateway_server: Callable[..., RunningGateway], dialect: str, preserve: Preserve, *, kept: bool
) -> None:
    """findings-clients-5: bytes pass untouched for clients of the upstream's dialect, unless all is to be kept."""
    backend = Scripted(answered(Reasoning(text="hm", signature="s", origin=SIGNED), WEATHER))
    upstream = UpstreamSettings(dialect=dialect, base_url="http://upstream.invalid/v1", preserve_reasoning=preserve)
    running = gateway_server({"scripted": backend}, config_for("scripted", upstreams={"scripted": upstream}))
    for turns in ([ASK], CHAT_TURNS):
        running.request("POST", "/v1/chat/completions", {"model": "m", "messages": turns})
    assert bool(thoughts(backend.requests[-1])) == kept


@pytest.mark.parametrize(
    ("host", "preserve", "kept"),
    [
        pytest.param("127.0.0.1", None, True, id="loopback"),
        pytest.param("0.0.0.0", None, False, id="everywhere"),  # noqa: S104  that is the case
        pytest.param("127.0.0.1", False, False, id="off-on-loopback"),
        pytest.param("0.0.0.0", "translated", True, id="on-everywhere"),  # noqa: S104  as above
    ],
)
def test_what_holds_where_nothing_is_set(host: str, preserve: Preserve | None, *, kept: bool) -> None:
    """findings-clients-5: on by default, for a gateway on loopback."""
    upstream = UpstreamSettings(dialect="chat", base_url="http://upstream.invalid/v1", preserve_reasoning=preserve)
    services = Gateway(config_for(upstreams={"u": upstream}, server=ServerSettings(host=host)), {}).services
    route = Route(backend="u", model="m", preserve=preserve)
    assert (preserves(services, route, "messages"), preserves(services, route, "chat")) == (kept, False)


def counted_lookups(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Return the keys of each request to the store from now on."""
    asked: list[Sequence[str]] = []
    recall = SQLite.get_cached_of

    async def counted(self: SQLite, owner: str, keys: Sequence[str], place: str) -> dict[str, bytes]:
        asked.append(keys)
        return await recall(self, owner, keys, place)

    monkeypatch.setattr(SQLite, "get_cached_of", counted)
    return asked


def test_nothing_is_looked_up_before_something_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted look-ups: an upstream without reasoning costs none, however long the history."""
    backends, asked = PreservingBackends(), counted_lookups(monkeypatch)
    plain = Scripted(answered(WEATHER))
    backends.answer(plain, "chat", [ASK])
    backends.answer(plain, "chat", CHAT_TURNS)
    assert (asked, backends.keeper.stored) == ([], set())
    backends.answer(THOUGHT, "chat", [ASK])
    backends.answer(plain, "chat", CHAT_TURNS)
    assert (len(asked), backends.keeper.stored) == (1, {"main"})


def age(path: Path) -> None:
    """Have the last write of the answers of a store have been long ago."""
    mark = path.with_name(f"{path.name}-vault")
    os.utime(mark, (NOW, mark.stat().st_mtime - 60))


def test_nothing_is_looked_up_in_a_file_that_nobody_stored_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Counted look-ups: of a file that others may write into, it is known from its last write whether they did."""
    path = tmp_path / "store.sqlite"
    ours, theirs = PreservingBackends(SQLite(path)), PreservingBackends(SQLite(path))
    asked, plain = counted_lookups(monkeypatch), Scripted(answered(WEATHER))
    lacking = get("chat").decode_request({"model": "m", "messages": CHAT_TURNS})

    def looked_up() -> int:
        asked.clear()
        if may_lack(ours.keeper, lacking, "main"):
            ours.answer(plain, "chat", CHAT_TURNS)
        return len(asked)

    assert [looked_up() for _ in range(3)] == [1, 0, 0]
    window = LimitWindow("key:other", NOW + 60.0, b"")
    asyncio.run(theirs.store.write(limit_windows.save("gateway", [window])))  # it is no answer
    assert looked_up() == 0
    theirs.answer(THOUGHT, "chat", [ASK])
    assert [looked_up() for _ in range(2)] == [1, 1]
    age(path)
    assert [looked_up() for _ in range(2)] == [1, 1]
    assert thoughts(ours.answer(plain, "chat", CHAT_TURNS))
    for backends in (ours, theirs):
        asyncio.run(backends.store.aclose())


@pytest.mark.parametrize("turns", [1, 40])
def test_a_whole_history_is_looked_up_at_once(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """Counted look-ups: one, however many turns and calls; each of them gets what it lacks."""
    backends, asked = PreservingBackends(), counted_lookups(monkeypatch)
    backends.answer(THOUGHT, "chat", [ASK])
    call = backends.answer(THOUGHT, "chat", CHAT_TURNS * turns)
    assert len(thoughts(call)) == turns
    assert len(asked) == 1


def test_the_flag() -> None:
    assert from_flags({}, upstream="http://u.invalid", preserve=True).upstreams["upstream"].preserve_reasoning is True
    assert from_flags({}, upstream="http://u.invalid").upstreams["upstream"].preserve_reasoning is None
    with pytest.raises(ConfigurationError, match=r"^--preserve: no server is chosen"):
        from_flags({}, preserve=True)
