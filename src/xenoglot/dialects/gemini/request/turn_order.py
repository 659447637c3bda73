"""Reorders the turns of a conversation from another dialect as servers of this dialect require.

The rules (https://ai.google.dev/gemini-api/docs/function-calling, and the errors that a server answers otherwise):
turns of user and model alternate, and the user begins; the turn after one with calls answers each of them, in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import to_text
from xenoglot.dialects.gemini.extras import SIGNATURE
from xenoglot.dialects.gemini.signatures import UNCHECKED
from xenoglot.dialects.gemini.tool_calls import ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject

FIRST_TURN = "(The conversation begins.)"
"""The user turn that is added if the conversation does not begin with one."""

NO_RESULT = "The tool gave no result."
"""The error that answers a call without a result (pitfall-44)."""

CALL = "functionCall"
RESULT = "functionResponse"


class WireContent:
    """One content of the request while it is built. `where` is its path in the canonical request."""

    __slots__ = ("parts", "role", "where")

    def __init__(self, role: str, parts: list[JSONObject], where: str) -> None:
        self.role = role
        self.parts = parts
        self.where = where

    def encode(self) -> JSONObject:
        """Return the content."""
        return {"role": self.role, "parts": self.parts}


def mend(turns: Sequence[WireContent], losses: Losses) -> list[WireContent]:
    """Return the turns in valid order."""
    mended = _merge(turns)
    _answer_calls(mended, losses)
    mended = _merge(mended)
    if not mended or mended[0].role != "user":
        losses.emulated("$.messages", "role", "the conversation must begin with the user: a turn is put in front")
        mended.insert(0, WireContent("user", [{"text": FIRST_TURN}], "$.messages"))
    _sign_calls(mended, losses)
    return mended


def _merge(turns: Iterable[WireContent]) -> list[WireContent]:
    """Join turns of one role that follow each other."""
    merged: list[WireContent] = []
    for turn in turns:
        if not turn.parts:
            continue
        if merged and merged[-1].role == turn.role:
            merged[-1].parts += turn.parts
            merged[-1].where = "$.messages"  # of which message a part was is not known any more
        else:
            merged.append(turn)
    return merged


def _answer_calls(turns: list[WireContent], losses: Losses) -> None:
    """Give every call exactly one result in the next turn, and every other result a place as text."""
    calls: list[JSONObject] = []  # that wait for a result
    where = ""
    index = 0
    while index < len(turns):
        turn = turns[index]
        if calls and turn.role != "user":
            turns.insert(index, WireContent("user", [], where))
            turn = turns[index]
        if turn.role == "user":
            turn.parts = _answered(turn, calls, where, losses)
            calls = []
        else:
            calls, where = [call for part in turn.parts if (call := _said(part, CALL)) is not None], turn.where
        index += 1
    if calls:
        turns.append(WireContent("user", _answered(WireContent("user", [], where), calls, where, losses), where))


def _answered(turn: WireContent, calls: list[JSONObject], where: str, losses: Losses) -> list[JSONObject]:
    """Return the parts of a user's turn, the results of `calls` first and in their order."""
    waiting = Counter(str(call.get("id")) for call in calls)
    results: defaultdict[str, list[JSONObject]] = defaultdict(list)
    rest: list[JSONObject] = []
    for part in turn.parts:
        result = _said(part, RESULT)
        call_id = None if result is None else str(result.get("id"))
        if result is None or call_id is None:
            rest.append(part)
        elif len(results[call_id]) < waiting[call_id]:
            results[call_id].append(part)
        else:
            rest.append(_told(result, turn.where, losses))
    return [*(_placed(call, results[str(call.get("id"))], where, losses) for call in calls), *rest]


def _placed(call: JSONObject, results: list[JSONObject], where: str, losses: Losses) -> JSONObject:
    """Return the first of the `results` of a call, or an error that replaces a missing one."""
    if results:
        return results.pop(0)
    losses.emulated(where, "tool_result", "a call without a result gets a placeholder")
    said = {key: call[key] for key in ("id", "name") if key in call}
    return {RESULT: {**said, "response": {ERROR: NO_RESULT}}}


def _told(result: JSONObject, where: str, losses: Losses) -> JSONObject:
    losses.approximated(where, "tool_result", "no call of the turn before matches it; written as text")
    return {"text": f"Result of the tool call {result.get('id')}:\n{to_text(result.get('response'))}"}


def _said(part: JSONObject, key: str) -> JSONObject | None:
    """Return the object under `key`; a part that was never understood may hold anything there."""
    said = part.get(key)
    return said if isinstance(said, dict) else None


def _sign_calls(turns: Sequence[WireContent], losses: Losses) -> None:
    """Let the calls of the current turn pass that no model of the dialect made (pitfall-52).

    The first call of each step of the model since the last user turn must have a signature, or the server refuses
    the request; where there is none, the documented stand-in skips the check.
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
