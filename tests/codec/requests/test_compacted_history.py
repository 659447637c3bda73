"""Summaries in a history: sealed for clients, opened for the model, and the losses of that."""

import pytest

from xenoglot import dialect_registry as dialects
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.compacted_history import HEADING, SEALED, open_history, seal, unseal
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, Origin, Part, Text, ToolCall, ToolResult
from xenoglot.model.context import Compact, ContextManagement
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Message, Request

SUMMARY = CompactedHistory(text="They said hi.", origin=Origin(dialect="messages"))
NATIVE = CompactedHistory(encrypted="gAAAA", origin=Origin(dialect="responses"), replaces="answers")


def turn(role: str, *parts: Part) -> Message:
    return Message(role=role, content=parts)  # type: ignore[arg-type]


def history(summary: CompactedHistory) -> Request:
    """Return a request with turns of every kind before a summary, which stands between two texts of one turn."""
    return Request(
        model="m",
        messages=(
            turn("system", Text(text="Be brief.")),
            turn("user", Text(text="Hi")),
            turn("assistant", ToolCall(id="c1", name="f", arguments="{}")),
            turn("tool", ToolResult(call_id="c1", content=(Text(text="r"),))),
            turn("assistant", Text(text="before"), summary, Text(text="after")),
            turn("user", Text(text="Go on")),
        ),
        context_management=ContextManagement(resumes=True),
    )


@pytest.mark.parametrize(
    "part", [SUMMARY, NATIVE, CompactedHistory(text="s"), CompactedHistory(text="s", signature="x")]
)
def test_a_summary_is_the_same_after_it_was_sealed(part: CompactedHistory) -> None:
    opened = unseal(seal(part), "$")
    assert opened is not None
    assert (opened.text, opened.encrypted, opened.signature, opened.origin) == (
        part.text,
        part.encrypted,
        part.signature,
        part.origin,
    )


@pytest.mark.parametrize("text", ["x", "!!", "e30=", "WzFd"])
def test_a_damaged_seal_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(WireError, match=r"\$\.input\[0\].*packed summary is damaged"):
        unseal(SEALED + text, "$.input[0].encrypted_content")


def test_what_a_server_encrypted_is_no_seal_of_ours() -> None:
    assert unseal("gAAAAABq", "$") is None


def test_a_summary_stands_for_all_turns_before_it_but_those_of_the_system() -> None:
    losses = Losses()
    opened, _ = open_history(history(SUMMARY), losses)
    assert opened.context_management is None
    assert opened.messages == (
        turn("system", Text(text="Be brief.")),
        turn("user", Text(text=f"{HEADING}They said hi.")),
        turn("assistant", Text(text="after")),
        turn("user", Text(text="Go on")),
    )
    assert [(loss.where, loss.what, loss.how) for loss in losses] == [
        ("$.messages[4].content[1]", "compaction", "emulated")
    ]


def test_a_summary_of_the_answers_leaves_what_the_user_said() -> None:
    """`responses.compact`: "all user messages, followed by a single compaction item"."""
    opened, _ = open_history(history(CompactedHistory(text="s", replaces="answers")), Losses())
    assert [message.content[0] for message in opened.messages] == [
        Text(text="Be brief."),
        Text(text="Hi"),
        Text(text=f"{HEADING}s"),
        Text(text="after"),
        Text(text="Go on"),
    ]


def test_a_server_gets_its_own_summary_and_only_what_comes_after_it() -> None:
    opened, _ = open_history(history(SUMMARY), Losses(), "messages")
    assert opened.messages == (
        turn("system", Text(text="Be brief.")),
        turn("assistant", SUMMARY, Text(text="after")),
        turn("user", Text(text="Go on")),
    )
    assert opened.context_management == ContextManagement(resumes=True)


def test_what_only_another_server_can_read_is_refused() -> None:
    with pytest.raises(WireError, match=r"\$\.messages\[4\]\.content\[1\].*only the server that compacted"):
        open_history(history(NATIVE), Losses(), "messages")


def test_a_failed_compaction_stands_for_nothing() -> None:
    opened, _ = open_history(history(CompactedHistory(origin=Origin(dialect="messages"))), Losses())
    assert len(opened.messages) == 6
    assert opened.messages[4] == turn("assistant", Text(text="before"), Text(text="after"))


def test_of_two_summaries_the_last_counts() -> None:
    first, second = CompactedHistory(text="first"), CompactedHistory(text="second")
    request = Request(
        model="m",
        messages=(turn("assistant", first), turn("assistant", second), turn("user", Text(text="Go on"))),
        context_management=ContextManagement(resumes=True, edits=(Compact(trigger_tokens=9),)),
    )
    opened, _ = open_history(request, Losses())
    assert opened.messages[0] == turn("user", Text(text=f"{HEADING}second"))
    assert opened.context_management == ContextManagement(edits=(Compact(trigger_tokens=9),))


def test_losses_after_a_summary_name_the_turns_of_the_client() -> None:
    losses = Losses()
    _, moved = open_history(history(SUMMARY), losses)
    moved.dropped("$.messages[3].content[0]", "x", "y")
    moved.dropped("$.messages[2].content[0]", "x", "y")
    assert [loss.where for loss in losses][1:] == ["$.messages[5].content[0]", "$.messages[4].content[2]"]


@pytest.mark.parametrize("name", ["chat", "gemini", "ollama", "llama_stack", "messages", "responses", "completions"])
def test_every_dialect_writes_the_summary_once_and_nothing_before_it(name: str) -> None:
    body = dialects.get(name).encode_request(history(CompactedHistory(text="They said hi.")), Losses(), Target())
    written = str(body)
    assert written.count("They said hi.") == 1
    assert "before" not in written.replace("before this point", "")
    assert "after" in written


COMPACTED_BODY: JSONObject = {
    "model": "m",
    "input": [
        {"role": "user", "content": "Hi"},
        {"type": "compaction", "encrypted_content": seal(CompactedHistory(text="They said hi."))},
        {"role": "user", "content": "Go on"},
    ],
}


def test_a_sealed_summary_goes_home_as_it_came_where_only_its_dialect_matters() -> None:
    """A request that stays in its dialect has the seal opened, too: no server of it can read ours."""
    responses = dialects.get("responses")
    body = responses.encode_request(responses.decode_request(COMPACTED_BODY), Losses(), Target())
    assert [item["content"] for item in body["input"]] == ["Hi", f"{HEADING}They said hi.", "Go on"]
