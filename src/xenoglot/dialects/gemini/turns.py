"""The turns of a conversation, put in the order that servers of the dialect demand of what comes from elsewhere.

The rules (https://ai.google.dev/gemini-api/docs/function-calling, and the errors that a server answers otherwise):
turns of user and model alternate, and the user begins; the turn behind one with calls answers each of them, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.wire import to_text
from xenoglot.dialects.gemini.calls import ERROR
from xenoglot.dialects.gemini.fields import SIGNATURE
from xenoglot.dialects.gemini.seals import UNCHECKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject

FIRST_TURN = "(The conversation begins.)"
"""What the user says where the conversation does not begin with the user."""

NO_RESULT = "The tool gave no result."
"""The error that answers a call without a result (pitfall-44)."""

CALL = "functionCall"
RESULT = "functionResponse"


class Turn:
    """One content of the wire in the making. `where` is its path in the canonical request."""

    __slots__ = ("parts", "role", "where")

    def __init__(self, role: str, parts: list[JSONObject], where: str) -> None:
        self.role = role
        self.parts = parts
        self.where = where

    def encode(self) -> JSONObject:
        """Return the content."""
        return {"role": self.role, "parts": self.parts}


def mend(turns: Sequence[Turn], losses: Losses) -> list[Turn]:
    """Return the turns in lawful order."""
    mended = _merge(turns)
    _answer_calls(mended, losses)
    mended = _merge(mended)
    if not mended or mended[0].role != "user":
        losses.emulated("$.messages", "role", "the conversation must begin with the user: a turn is put in front")
        mended.insert(0, Turn("user", [{"text": FIRST_TURN}], "$.messages"))
    _sign_calls(mended, losses)
    return mended


def _merge(turns: Iterable[Turn]) -> list[Turn]:
    """Join turns of one role that follow each other."""
    merged: list[Turn] = []
    for turn in turns:
        if not turn.parts:
            continue
        if merged and merged[-1].role == turn.role:
            merged[-1].parts += turn.parts
            merged[-1].where = "$.messages"  # of which message a part was is not known any more
        else:
            merged.append(turn)
    return merged


def _answer_calls(turns: list[Turn], losses: Losses) -> None:
    """Give every call exactly one result in the next turn, and every other result a place as text."""
    calls: list[JSONObject] = []  # that wait for a result
    where = ""
    index = 0
    while index < len(turns):
        turn = turns[index]
        if calls and turn.role != "user":
            turns.insert(index, Turn("user", [], where))
            turn = turns[index]
        if turn.role == "user":
            turn.parts = _answered(turn, calls, where, losses)
            calls = []
        else:
            calls, where = [part[CALL] for part in turn.parts if CALL in part], turn.where
        index += 1
    if calls:
        turns.append(Turn("user", _answered(Turn("user", [], where), calls, where, losses), where))


def _answered(turn: Turn, calls: list[JSONObject], where: str, losses: Losses) -> list[JSONObject]:
    """Return the parts of a user's turn, the results of `calls` first and in their order."""
    results = [part for part in turn.parts if RESULT in part]
    placed: list[JSONObject] = []
    for call in calls:
        answer = next((part for part in results if part[RESULT].get("id") == call.get("id")), None)
        if answer is None:
            losses.emulated(where, "tool_result", "a call without a result gets one that says so")
            placed.append({RESULT: {"id": call.get("id"), "name": call["name"], "response": {ERROR: NO_RESULT}}})
        else:
            results = [part for part in results if part is not answer]
            placed.append(answer)
    stray = {id(part) for part in results}
    rest = [_told(part, turn.where, losses) if id(part) in stray else part for part in turn.parts]
    known = {id(part) for part in placed}
    return [*placed, *(part for part in rest if id(part) not in known)]


def _told(part: JSONObject, where: str, losses: Losses) -> JSONObject:
    losses.approximated(where, "tool_result", "no call of the turn before it asked for it; written as text")
    result = part[RESULT]
    return {"text": f"Result of the tool call {result.get('id')}:\n{to_text(result.get('response'))}"}


def _sign_calls(turns: Sequence[Turn], losses: Losses) -> None:
    """Let the calls of the current turn pass that no model of the dialect made (pitfall-52).

    Of each step of the model since the user last said something, the first call must have a signature, or the server
    refuses the request; where there is none, the documented stand-in says that there is nothing to check.
    """
    for turn in reversed(turns):
        if turn.role == "user":
            if not any(RESULT in part for part in turn.parts):
                return
            continue
        first = next((index for index, part in enumerate(turn.parts) if CALL in part), None)
        if first is not None and SIGNATURE not in turn.parts[first]:
            turn.parts[first] = {**turn.parts[first], SIGNATURE: UNCHECKED}
            losses.emulated(turn.where, SIGNATURE, "the call has none; the documented stand-in is written")
