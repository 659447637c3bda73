"""Claude Code, Codex and both SDKs on a bad day: what they do on each fault (reliability, section 4)."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from drive.day import CLIENTS, OWN, WELL, Line, Turn, day, refusal
from xenoglot import testing
from xenoglot.testing import Body, Close, End, Pause, Respond, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xenoglot.testing import Answers
    from xenoglot.testing.script import Step, Steps
    from xenoglot.testing.upstream import Door

PAGE = Respond(200, (("content-type", "text/html"),), b"<html>Bad gateway</html>")
ALWAYS = "retry = { attempts = 1 }\nbreaker = { failures = 1000 }"
"""An upstream that is neither retried nor left alone: what is counted is the client's own doing."""

BROKE_OFF = Line(200, failure="upstream")
SERVED = Line(200)
AGAIN = Line(200, tries=2)
LIMITED = Line(429, failure="rate_limit")

WITH_OURS: dict[str, Callable[[Answers], Steps]] = {
    "cut-before-the-first-byte": lambda _: (Close(),),
    "503": lambda answers: (refusal(answers.dialect, 503),),
    "429": lambda answers: (refusal(answers.dialect, 429),),
    "429-with-retry-after": lambda answers: (refusal(answers.dialect, 429, ("retry-after", "1")),),
    "wrong-content-type": lambda _: (PAGE,),
}
"""What the gateway's own second try mends."""


def half(answers: Answers, then: Steps) -> Steps:
    """Return the steps of half a stream, and `then`."""
    return answers.streamed(upto=len(answers.frames) // 2, then=then)


def rest(answers: Answers) -> Steps:
    """Return the steps of the other half."""
    return (*(Body(frame) for frame in answers.frames[len(answers.frames) // 2 :]), End())


MIDSTREAM: dict[str, Callable[[Answers], Steps]] = {
    "cut": lambda answers: half(answers, testing.CUT),
    "reset": lambda answers: half(answers, testing.BROKEN),
    "ended-early": lambda answers: half(answers, testing.END),
}
SILENT: dict[str, Callable[[Answers], Steps]] = {
    "before-the-first-byte": lambda answers: (Pause(6.0), *answers.streamed()),
    "mid-stream": lambda answers: half(answers, (Pause(6.0), *rest(answers))),
}


def complete_answers(dialect: str) -> Answers:
    """Return the answer of a server that is well."""
    return testing.answers(dialect, text=("Well ", "done."))


def once(dialect: str, fault: Callable[[Answers], Steps]) -> tuple[ScriptRule, ...]:
    """Return the rules of a server that fails once, and is well from then on."""
    return (ScriptRule(steps=fault(complete_answers(dialect)), times=1), *complete_answers(dialect).rules())


def ever(*steps: Step) -> tuple[ScriptRule, ...]:
    """Return the rules of a server that always does the same."""
    return (ScriptRule(steps=steps),)


@pytest.mark.parametrize("dialect", ["own", "other"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", WITH_OURS)
def test_one_fault_is_not_noticed(tmp_path: Path, fault: str, client: str, dialect: str) -> None:
    spoken = behind(client, dialect)
    with day(tmp_path, spoken, once(spoken, WITH_OURS[fault])) as bad:
        assert bad.turn(client) == Turn(said=WELL, lines=(AGAIN,))
        assert bad.asked() == [2]


def behind(client: str, dialect: str) -> str:
    """Return what the server speaks: what the client does, so that bytes pass, or something else."""
    return OWN[client] if dialect == "own" else "gemini"


@pytest.mark.parametrize("dialect", ["own", "other"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", MIDSTREAM)
def test_a_stream_that_breaks_is_never_taken_for_an_answer(
    tmp_path: Path, fault: str, client: str, dialect: str
) -> None:
    """The agents ask once more; the SDKs raise, which is for whoever uses them to catch."""
    agent = client in {"claude", "codex"}
    spoken = behind(client, dialect)
    with day(tmp_path, spoken, once(spoken, MIDSTREAM[fault])) as bad:
        turn = bad.turn(client)
        # Claude Code asks without a stream where the error event reaches it before the end of the connection does
        again = replace(SERVED, stream=turn.lines[-1].stream)
        assert turn.lines == ((BROKE_OFF, again) if agent else (BROKE_OFF,))
        assert bad.asked() == [turn.tries]
        assert turn.said == WELL if agent else turn.said.endswith("Error")


@pytest.mark.parametrize("dialect", ["own", "other"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", SILENT)
def test_signs_of_life_reset_the_timer(tmp_path: Path, fault: str, client: str, dialect: str) -> None:
    """Codex gives a stream up that is silent for five seconds, and so does Claude Code where it is told to."""
    spoken = behind(client, dialect)
    patience = {"CLAUDE_ENABLE_STREAM_WATCHDOG": "1", "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "5000"}
    with day(tmp_path, spoken, once(spoken, SILENT[fault])) as bad:
        assert bad.turn(client, **patience) == Turn(said=WELL, lines=(SERVED,))
        assert bad.asked() == [1]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("seconds", [None, "1"], ids=["unsaid", "said"])
def test_429_always_says_when_to_come_again(tmp_path: Path, client: str, seconds: str | None) -> None:
    """Codex gives the turn up at a 429 without `retry-after`: with ours it waits, and recovers."""
    headers = () if seconds is None else (("retry-after", seconds),)
    fault = (refusal(OWN[client], 429, *headers),)
    with day(tmp_path, OWN[client], once(OWN[client], lambda _: fault), more=ALWAYS) as bad:
        assert bad.turn(client) == Turn(said=WELL, lines=(LIMITED, SERVED))


FALLEN: dict[str, Steps] = {
    "down": (),
    "503": (refusal("chat", 503),),
    "401": (refusal("chat", 401),),
    "429": (refusal("chat", 429, ("retry-after", "30")),),
    "cut-before-the-first-byte": (Close(),),
    "wrong-content-type": (PAGE,),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FALLEN)
def test_another_target_answers(tmp_path: Path, fault: str, client: str) -> None:
    """The client notices nothing, and its request reaches each of them once."""
    door: Door = "refuse" if fault == "down" else "open"
    with day(tmp_path, "chat", ever(*FALLEN[fault]), complete_answers("chat").rules(), door=door) as bad:
        assert bad.turn(client) == Turn(said=WELL, lines=(replace(AGAIN, backend="second"),))
        assert bad.asked() == [0 if fault == "down" else 1, 1]


NEVER_OPEN = "breaker = { failures = 1000 }"
"""Retries as they are, and an upstream that is asked however often it fails: what bounds the storm is the budget."""

FUTILE_TO_AN_AGENT = {
    "503-claude": ("claude", 503, (Line(529, tries=2, failure="overloaded"),)),
    "500-claude": ("claude", 500, (Line(500, tries=2, failure="internal"),)),
    "503-openai": ("openai", 503, (Line(503, tries=2, failure="overloaded"),)),
    "503-anthropic": ("anthropic", 503, (Line(529, tries=2, failure="overloaded"),)),
    "401-claude": ("claude", 401, (Line(502, failure="upstream"),)),
    "401-openai": ("openai", 401, (Line(502, failure="upstream"),)),
    "401-anthropic": ("anthropic", 401, (Line(502, failure="upstream"),)),
    "404-openai": ("openai", 404, (Line(404, failure="not_found"),)),
    "404-anthropic": ("anthropic", 404, (Line(404, failure="not_found"),)),
    "404-claude": ("claude", 404, (Line(404, failure="not_found"), Line(404, failure="not_found", stream=False))),
    "400-codex": ("codex", 400, (Line(400, failure="invalid_request"),)),
}
"""Who stops when told `x-should-retry: false`; Codex stops at 400 alone, Claude Code asks at 404 without stream."""


@pytest.mark.parametrize("case", FUTILE_TO_AN_AGENT)
def test_a_fault_that_lasts(tmp_path: Path, case: str) -> None:
    """What is in vain is not tried again; and our key that is refused is never told as the client's."""
    client, status, lines = FUTILE_TO_AN_AGENT[case]
    with day(tmp_path, "chat", ever(refusal("chat", status)), more=NEVER_OPEN, ping=600) as bad:
        turn = bad.turn(client)
        assert turn.lines == lines
        assert bad.asked() == [turn.tries]
        assert turn.said != WELL


def test_codex_makes_no_storm(tmp_path: Path) -> None:
    """K01: it ignores `x-should-retry`; what it sends in vain is at most tried as often again as the budget has it."""
    with day(tmp_path, "chat", ever(refusal("chat", 500)), more=NEVER_OPEN, ping=600) as bad:
        turn = bad.turn("codex")
        assert {replace(line, tries=1) for line in turn.lines} == {Line(500, failure="internal")}
        assert bad.asked() == [turn.tries]
        assert len(turn.lines) == 30
        assert turn.tries == 30 + 0.2 * 30 + 10


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_wrong_key_locks_nobody_out(tmp_path: Path, client: str) -> None:
    """S16: both try a refused key again; the throttle leaves whoever then shows the right one alone."""
    refused = Line(401, tries=0, failure="authentication", stream=None, backend=None)
    with day(tmp_path, OWN[client], complete_answers(OWN[client]).rules()) as bad:
        wrong = bad.turn(client, key="not-the-key", CLAUDE_CODE_MAX_RETRIES="5")
        assert wrong.lines == (refused,) * len(wrong.lines)
        assert bad.asked() == [0]
        assert bad.turn(client) == Turn(said=WELL, lines=(SERVED,))
        assert len(wrong.lines) == {"claude": 1, "codex": 6}[client]


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_an_answer_under_way_outlives_the_order_to_stop(tmp_path: Path, client: str) -> None:
    """The gateway takes no more, but what it has begun it ends; then the process ends, and well."""
    answers = complete_answers(OWN[client])
    waits = (ScriptRule(steps=half(answers, (WaitEvent("stopping"), *rest(answers)))),)
    with day(tmp_path, OWN[client], waits) as bad, ThreadPoolExecutor(1) as pool:
        (upstream,) = bad.upstreams
        turn = pool.submit(bad.turn, client)
        upstream.wait(lambda: bool(upstream.requests))
        bad.served.process.send_signal(signal.SIGTERM)
        upstream.release("stopping")
        assert turn.result() == Turn(said=WELL, lines=(SERVED,))
        assert bad.served.process.wait() == 0
