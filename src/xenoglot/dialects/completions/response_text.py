"""The text of an answer: the only content that this dialect can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import Reader, leave
from xenoglot.codec.requests.prompt_echo import missing_echo
from xenoglot.dialects.completions.extras import NAME, own_fields
from xenoglot.model.content import Audio, Opaque, Refusal, Text

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.request import Request


def take_text(choice: Reader) -> str | None:
    """Take the text of a choice, or of its turn if the server answers with a turn (L8).

    Raises:
        WireError: it is of a wrong type.
    """
    text = choice.take("text", str)
    for key in ("delta", "message"):
        if text is None and isinstance(choice.peek(key), dict):
            turn = Reader(choice.take(key, dict), choice.at(key))
            text = turn.take_if("content", str)
            leave(choice, key, turn)
    return text


def words_of(part: Part, where: str, losses: Losses) -> str | None:
    """Return the text of a part as far as they are known; `None` if it has none and is lost."""
    match part:
        case Text():
            own_fields(part.extra, where, losses)
            for citation in part.citations:
                note_citation(citation.kind, where, losses)
            return part.text
        case Refusal():
            losses.approximated(where, "refusal", "written as words")
            own_fields(part.extra, where, losses)
            return part.text
        case Audio(transcript=str(transcript)):
            losses.approximated(where, "audio", "its transcript stands for it")
            return transcript
        case Audio():
            losses.approximated(where, "audio", "its transcript stands for it")
            return ""
        case Opaque(text=str(text)) if part.dialect != NAME:
            losses.approximated(where, name_of(part), "written as text")
            return text
        case _:
            losses.dropped(where, name_of(part), "an answer holds text only")
            return None


def note_citation(kind: str, where: str, losses: Losses) -> None:
    """Record a citation, for which there is no place."""
    losses.dropped(where, kind, "an answer holds text only")


def echo_of(request: Request, candidate: int, losses: Losses) -> str:
    """Return the words that an answer has to begin with, and which its maker left out."""
    text = missing_echo(request, candidate)
    if isinstance(text, tuple):
        losses.dropped("$.prompt", "echo", "only the model knows the text of its tokens")
        return ""
    return text or ""
