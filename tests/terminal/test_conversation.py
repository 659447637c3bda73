"""The state of a conversation, what is saved of it, and what is loaded again."""

from pathlib import Path

import msgspec
import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Extra, Image, Inline, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.request import Message
from xenoglot.terminal.conversation import INTERRUPTED, Conversation
from xenoglot.terminal.transcript_file import load, save


def message_of(role: str, *parts: object) -> Message:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, content=content)  # type: ignore[arg-type]


CALL = ToolCall(id="1", name="look", arguments='{"at": "it"}')
RESULT = message_of("user", ToolResult(call_id="1", content=(Text(text="seen"),)))
FULL = (
    message_of("user", Image(source=Inline(data="AAAA", media_type="image/png")), "What is it?"),
    message_of(
        "assistant", Reasoning(text="Hm.", signature="seal", extra=Extra(dialect="messages", fields={"x": 1})), CALL
    ),
    RESULT,
    message_of("assistant", "A cat."),
)


def conversation_of(*turns: Message, **settings: str) -> Conversation:
    conversation = Conversation(model="m", system="Be brief.")
    for name, word in settings.items():
        conversation.put(name, word)
    conversation.turns = turns
    return conversation


def test_what_waits_goes_along_once() -> None:
    conversation = Conversation()
    conversation.waiting = (Text(text="a file"),)
    conversation.ask("one")
    conversation.ask("two")
    assert conversation.turns == (message_of("user", "a file", "one"), message_of("user", "two"))


def test_an_answer_that_was_stopped_is_marked() -> None:
    conversation = conversation_of(message_of("user", "one"))
    conversation.stopped([Reasoning(text="hm"), Text(text="The first \n"), CALL])
    assert conversation.turns[1:] == (message_of("assistant", f"The first {INTERRUPTED}"),)


@pytest.mark.parametrize(
    ("turns", "kept", "unanswered"),
    [
        pytest.param(
            (*FULL[:3], message_of("assistant", "A c")),
            (*FULL[:3], message_of("assistant", f"A c {INTERRUPTED}")),
            None,
            id="words",
        ),
        pytest.param((*FULL[:3], message_of("assistant", Reasoning(text="Hm"))), FULL[:3], None, id="a-thought-alone"),
        pytest.param(FULL[:3], FULL[:3], None, id="results"),
        pytest.param((*FULL, message_of("user", "one")), FULL, message_of("user", "one"), id="question"),
        pytest.param((), (), None, id="nothing"),
    ],
)
def test_a_run_that_was_stopped_is_marked(
    turns: tuple[Message, ...], kept: tuple[Message, ...], unanswered: Message | None
) -> None:
    conversation = conversation_of(*turns)
    conversation.interrupted()
    assert conversation.turns == kept
    assert conversation.unanswered == unanswered


def test_a_question_without_an_answer_is_asked_again() -> None:
    conversation = conversation_of(*FULL, message_of("user", "one"))
    conversation.stopped([Reasoning(text="hm")])
    assert (conversation.turns, conversation.unanswered) == (FULL, message_of("user", "one"))
    assert conversation.retry() == message_of("user", "one")
    assert conversation.turns == (*FULL, message_of("user", "one"))


def test_undo_and_again_go_by_questions_not_by_results() -> None:
    conversation = conversation_of(*FULL)
    assert conversation.retry() == FULL[0]
    assert conversation.turns == FULL[:1]
    conversation.turns = FULL
    assert conversation.undo() == FULL[0]
    assert not conversation.turns
    assert conversation.undo() is None
    assert conversation.retry() is None


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        pytest.param("temperature", "0.2", 0.2, id="number"),
        pytest.param("max_tokens", "9", 9, id="whole-number"),
        pytest.param("stop", "\\n\\n", ["\n\n"], id="text"),
        pytest.param("thinking", "high", "high", id="word"),
        pytest.param("thinking", "none", "none", id="thinking-none"),
    ],
)
def test_settings_are_options(name: str, word: str, value: object) -> None:
    conversation = Conversation(model="m")
    conversation.put(name, word)
    assert conversation.options == {"model": "m", name: value}
    conversation.put(name, "off")
    assert conversation.options == {"model": "m"}


@pytest.mark.parametrize(
    ("name", "word", "problem"),
    [
        pytest.param("warmth", "1", "there is no setting `warmth`; there are temperature,", id="unknown"),
        pytest.param("temperature", "hot", "`temperature`: found `hot`; expected a number, or `off`", id="no-number"),
        pytest.param("temperature", "nan", "found `nan`", id="nan"),
        pytest.param("max_tokens", "1.5", "found `1.5`", id="no-whole-number"),
        pytest.param("thinking", "hard", "found `hard`; expected one of none, minimal", id="no-effort"),
    ],
)
def test_settings_that_are_none(name: str, word: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem.replace(".", r"\.")):
        Conversation().put(name, word)


def test_json_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    path = str(tmp_path / "a.json")
    conversation = conversation_of(*FULL, temperature="0.5", stop="END")
    save(conversation, path)
    loaded = load(path)
    assert vars(loaded) == vars(conversation)


def test_markdown_is_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    save(conversation_of(*FULL), str(path))
    assert path.read_text(encoding="utf-8") == (
        "# A conversation with m\n\n## System\n\nBe brief.\n\n## You\n\n[image]\n\nWhat is it?\n\n## Model\n\n"
        '> Thought: Hm.\n\nCalls `look`:\n\n````\n{"at": "it"}\n````\n\n## You\n\nResult:\n\n````\nseen\n````\n\n'
        "## Model\n\nA cat.\n"
    )


def test_nothing_is_written_over_unasked(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="already exists"):
        save(conversation_of(), str(path))
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        save(conversation_of(), str(tmp_path / "gone" / "x"))
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]
    save(conversation_of(*FULL), str(path), replace=True)
    assert load(str(path)).turns == FULL


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not JSON", id="no-json"),
        pytest.param(b'"\xff"', id="no-utf-8"),
        pytest.param(b'{"kind": "other"}', id="of-others"),
        pytest.param(b'{"kind": "xenoglot.conversation", "version": 2}', id="of-tomorrow"),
        pytest.param(b'{"messages": [{"role": "user", "content": [{"type": "Bomb"}]}]}', id="a-part-of-no-kind"),
        pytest.param(b'{"settings": {"temperature": "hot"}}', id="a-setting-that-is-none"),
        pytest.param(b'{"settings": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", id="too-deep"),
    ],
)
def test_what_is_no_conversation_is_not_loaded(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ConfigurationError):
        load(str(tmp_path / "x"))
    assert msgspec.json.encode(FULL)  # the values themselves can be written
