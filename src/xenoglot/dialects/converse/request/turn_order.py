"""Reorders the turns of a conversation from another dialect as servers require.

The rules (`Message` in https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html, and the errors
that servers answer otherwise): roles alternate; the first turn is the user's; each `toolUse` of an assistant's turn is
answered by a `toolResult` at the head of the very next user's turn, and nothing else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject

FIRST_TURN: Final = "(The conversation begins.)"
LAST_TURN: Final = "Continue."
NO_RESULT: Final = "The tool gave no result."


class WireTurn:
    """One turn of the request while it is built. `where` is its path in the canonical request."""

    __slots__ = ("blocks", "role", "where")

    def __init__(self, role: str, blocks: list[JSONObject], where: str) -> None:
        self.role = role
        self.blocks = blocks
        self.where = where

    def encode(self) -> JSONObject:
        """Return the turn."""
        return {"role": self.role, "content": self.blocks}


def mend(turns: Sequence[WireTurn], losses: Losses, *, prefill: bool) -> list[WireTurn]:
    """Return the turns in an order that servers accept."""
    mended = _merge(turns)
    if any(not {"toolUse", "toolResult"}.isdisjoint(block) for turn in mended for block in turn.blocks):
        mended = _merge(_answer_calls(mended, losses))
    if not mended or mended[0].role != "user":
        losses.emulated("$.messages", "role", "the conversation must begin with the user: a turn is put in front")
        mended.insert(0, _user(FIRST_TURN, "$.messages"))
    last = mended[-1]
    if last.role == "assistant":
        if prefill:
            _cut_blanks(last, losses)
        else:
            losses.emulated(last.where, "prefill", "the server continues no turn: the user asks it to continue")
            mended.append(_user(LAST_TURN, last.where))
    return mended


def _user(text: str, where: str) -> WireTurn:
    return WireTurn("user", [{"text": text}], where)


def _cut_blanks(turn: WireTurn, losses: Losses) -> None:
    text = turn.blocks[-1].get("text")
    if isinstance(text, str) and text != text.rstrip():
        losses.approximated(turn.where, "text", "white space at the end of a turn to be continued are cut")
        turn.blocks[-1] = {**turn.blocks[-1], "text": text.rstrip()}


def _merge(turns: Iterable[WireTurn]) -> list[WireTurn]:
    """Join turns of one role that follow each other."""
    merged: list[WireTurn] = []
    for turn in turns:
        if not turn.blocks:
            continue
        if merged and merged[-1].role == turn.role:
            merged[-1].blocks += turn.blocks
            merged[-1].where = "$.messages"
        else:
            merged.append(turn)
    return merged


def _answer_calls(turns: Iterable[WireTurn], losses: Losses) -> list[WireTurn]:
    """Return the turns, every call with exactly one result in the next turn, any other result as text."""
    answered: list[WireTurn] = []
    used: dict[str, int] = {}
    calls: dict[str, str] = {}  # ids of the calls that wait for a result -> their ids on the wire
    where = ""
    for turn in turns:
        if turn.role == "user":
            _place_results(turn, calls, where, losses)
        else:
            if calls:
                answered.append(WireTurn("user", _missing(calls, where, losses), where))
            calls, where = _calls(turn, used), turn.where
            if any(old != new for old, new in calls.items()):
                losses.emulated("$.messages", "id", "ids of calls must be unique: used ones get a number")
            answered.append(turn)
            continue
        calls = {}
        answered.append(turn)
    if calls:
        answered.append(WireTurn("user", _missing(calls, where, losses), where))
    return answered


def _calls(turn: WireTurn, used: dict[str, int]) -> dict[str, str]:
    """Return the calls of a turn, and give each whose id an earlier turn used a new one."""
    calls: dict[str, str] = {}
    for block in turn.blocks:
        call = block.get("toolUse")
        if call is None or call["toolUseId"] in calls:
            continue
        old = new = call["toolUseId"]
        while new in used:
            used[old] += 1
            new = f"{old[:_ID_ROOM]}-{used[old]}"
        used[new] = 1
        call["toolUseId"] = calls[old] = new
    return calls


_ID_ROOM: Final = 56
"""Characters of an id before a number is added to it; an id has 64."""


def _place_results(turn: WireTurn, calls: dict[str, str], where: str, losses: Losses) -> None:
    """Put the results of `calls` first in the user's turn, and before them those that are missing."""
    placed = [made for block in turn.blocks for made in _placed(block, calls, turn.where, losses)]
    placed.sort(key=lambda block: "toolResult" not in block)
    turn.blocks = [*(_missing(calls, where, losses) if calls else ()), *placed]


def _placed(block: JSONObject, calls: dict[str, str], where: str, losses: Losses) -> list[JSONObject]:
    result = block.get("toolResult")
    if result is None:
        return [block]
    call_id = result["toolUseId"]
    if call_id in calls:
        return [{**block, "toolResult": {**result, "toolUseId": calls.pop(call_id)}}]
    losses.approximated(where, "tool_result", "no call of the turn before it has this id; written as text")
    content = result.get("content", ())
    texts = [part["text"] for part in content if "text" in part]
    text: JSONObject = {"text": "\n".join([f"Result of the tool call {call_id}:", *texts])}
    return [text, *(part for part in content if "text" not in part and "json" not in part)]


def _missing(calls: dict[str, str], where: str, losses: Losses) -> list[JSONObject]:
    losses.emulated(where, "tool_result", "a call without a result gets an error as its result")
    results: list[JSONObject] = [
        {"toolUseId": call_id, "content": [{"text": NO_RESULT}], "status": "error"} for call_id in calls.values()
    ]
    return [{"toolResult": result} for result in results]
