"""What has been said in a conversation, and how the model is asked: the state behind `xenoglot chat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text, ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
INTERRUPTED = "[interrupted here]"
"""Stands behind what came of an answer that was stopped, so that the model knows."""

UNSET = ("off", "none", "default")


def _number(word: str) -> float:
    number = float(word)
    if not abs(number) < float("inf"):
        raise ValueError(word)
    return number


def _effort(word: str) -> str:
    if word not in EFFORTS:
        raise ValueError(word)
    return word


def _verbosity(word: str) -> str:
    if word not in ("low", "medium", "high"):
        raise ValueError(word)
    return word


def _stop(word: str) -> list[str]:
    return [word.replace("\\n", "\n")]


SETTINGS: dict[str, tuple[Callable[[str], JSON], str]] = {
    "temperature": (_number, "a number"),
    "top_p": (_number, "a number"),
    "top_k": (int, "a whole number"),
    "min_p": (_number, "a number"),
    "max_tokens": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "frequency_penalty": (_number, "a number"),
    "presence_penalty": (_number, "a number"),
    "stop": (_stop, "a text"),
    "thinking": (_effort, f"one of {', '.join(EFFORTS)}"),
    "verbosity": (_verbosity, "low, medium or high"),
}
"""What `/set` sets: the options of `complete` by these names, how a word is read as one, and what is expected."""


class Conversation:
    """The turns of one conversation.

    `waiting` is what goes along with the next question; `unanswered` is one that was taken back for want of an answer.
    """

    def __init__(self, *, model: str | None = None, system: str | None = None) -> None:
        self.model = model
        self.system = system
        self.settings: dict[str, JSON] = {}
        self.turns: tuple[Message, ...] = ()
        self.waiting: tuple[Part, ...] = ()
        self.unanswered: Message | None = None

    @property
    def options(self) -> dict[str, JSON]:
        """The options with which a client is asked."""
        told: dict[str, JSON] = {"model": self.model, "system": self.system}
        return {name: value for name, value in {**told, **self.settings}.items() if value is not None}

    def ask(self, text: str) -> None:
        """Add a question, with what waits to go along."""
        content = (*self.waiting, *((Text(text=text),) if text else ()))
        self.turns = (*self.turns, Message(role="user", content=content))
        self.waiting = ()
        self.unanswered = None

    def answered(self, *turns: Message) -> None:
        """Add what came back."""
        self.turns = (*self.turns, *turns)

    def stopped(self, came: Sequence[Part]) -> None:
        """Add what came of an answer that was stopped; without any words of it, the question is taken back.

        Only its words are kept: a thought without its seal or a call without its result cannot be sent again.
        """
        words = "".join(part.text for part in came if isinstance(part, Text))
        if words.strip():
            self.answered(_marked(words))
        else:
            self.unanswered = self.undo()

    def broken_off(self) -> None:
        """Mark the last turn as one that was stopped; without any words of it, it goes, and a bare question with it."""
        if self.turns and self.turns[-1].role == "assistant":
            *before, last = self.turns
            self.turns = tuple(before)
            words = "".join(part.text for part in last.content if isinstance(part, Text))
            if words.strip():
                self.answered(_marked(words))
        if self.turns and self._last_question() == len(self.turns) - 1:
            self.unanswered = self.undo()

    def undo(self) -> Message | None:
        """Take the last question back, and all that came of it; returns it, or None where there is none."""
        index = self._last_question()
        if index is None:
            return None
        asked = self.turns[index]
        self.turns = self.turns[:index]
        return asked

    def again(self) -> Message | None:
        """Make the last question the last turn, to be asked once more; returns it, or None where there is none."""
        asked = self.unanswered or self.undo()
        if asked is not None:
            self.turns = (*self.turns, asked)
            self.unanswered = None
        return asked

    def _last_question(self) -> int | None:
        asked = [
            index
            for index, turn in enumerate(self.turns)
            if turn.role == "user" and not any(isinstance(part, ToolResult) for part in turn.content)
        ]
        return asked[-1] if asked else None

    def clear(self) -> None:
        """Forget what was said; the model, its instructions and its settings stay."""
        self.turns = ()
        self.waiting = ()
        self.unanswered = None

    def put(self, name: str, word: str) -> None:
        """Set one of `SETTINGS`, or leave it to the model where the word is `off`.

        Raises:
            ConfigurationError: there is no such setting, or this is not a value of it.
        """
        if name not in SETTINGS:
            raise ConfigurationError(f"there is no setting `{name}`; there are {', '.join(SETTINGS)}")
        read, expected = SETTINGS[name]
        if word in UNSET and not (name == "thinking" and word == "none"):
            self.settings.pop(name, None)
            return
        try:
            self.settings[name] = read(word)
        except ValueError:
            raise ConfigurationError(f"`{name}`: found `{word}`; expected {expected}, or `off`") from None


def _marked(words: str) -> Message:
    return Message(role="assistant", content=(Text(text=f"{words.rstrip()} {INTERRUPTED}"),))
