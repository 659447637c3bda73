"""Reorders the turns of a conversation from another dialect as Messages servers require.

The rules (https://docs.claude.com/en/api/messages, and the errors that the server answers otherwise): roles alternate;
the first turn is the user's; each `tool_use` of an assistant's turn is answered by a `tool_result` at the head of the
very next user's turn, and nothing else is; ids of calls are unique; the last turn is not the assistant's unless the
server continues it, and then its text does not end in whitespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.frequent_shapes import bare_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject

FIRST_TURN = "(The conversation begins.)"
"""The text of the user's turn that is added if the conversation does not begin with the user (pitfall-37)."""

LAST_TURN = "Continue."
"""The text of the user's turn after an assistant's turn that the server would not continue (pitfall-32)."""

NO_RESULT = "The tool gave no result."
"""The result, marked as an error, of a call that has none (pitfall-44)."""


_TOOLED = ("tool_use", "tool_result")

_SPOKEN = ("text", "thinking", "redacted_thinking", "tool_use")
"""Blocks of an assistant's turn that are the model's own; any other is of a tool that the server runs."""


class WireMessage:
    """One message of the request while it is built. `where` is its path in the canonical request."""

    __slots__ = ("blocks", "fields", "role", "spelled", "where")

    def __init__(
        self,
        role: str,
        blocks: list[JSONObject],
        where: str,
        fields: JSONObject | None = None,
        spelled: str | None = "string",
    ) -> None:
        self.role = role
        self.blocks = blocks
        self.where = where
        self.fields = fields or {}
        self.spelled = spelled  # "string", "missing" or a list (None)

    def encode(self) -> JSONObject:
        """Return the message."""
        if self.spelled == "missing" and not self.blocks:
            return {"role": self.role, **self.fields}
        alone = self.spelled == "string" and len(self.blocks) == 1
        text = bare_text(self.blocks[0]) if alone else None
        return {"role": self.role, "content": self.blocks if text is None else text, **self.fields}


def fold_system(turns: Iterable[WireMessage], losses: Losses) -> list[WireMessage]:
    """Return the turns, with messages of the system between them moved into the next user's turn (pitfall-3)."""
    folded: list[WireMessage] = []
    held: list[JSONObject] = []
    where = ""
    for turn in turns:
        if turn.role == "system":
            held += turn.blocks
            where = turn.where
            losses.approximated(where, "role", "a system turn is folded into the next user turn")
            if turn.fields:
                losses.dropped(where, "fields", "a user turn has none of its fields")
        elif turn.role == "user" and held:
            results = sum(block["type"] == "tool_result" for block in turn.blocks)
            turn.blocks[results:results] = held
            held = []
            folded.append(turn)
        else:
            folded.append(turn)
    return [*folded, WireMessage("user", held, where)] if held else folded


def mend(turns: Sequence[WireMessage], losses: Losses, *, prefill: bool) -> list[WireMessage]:
    """Return the turns in an order that the server accepts."""
    mended = _merge(turns)
    if _has_tools(mended):
        mended = _results_first(mended, losses)
        mended = _merge(_answer_calls(mended, losses))
    if not mended or mended[0].role != "user":
        _begin(mended, losses)
    if mended[-1].role == "assistant":
        _end(mended, losses, prefill=prefill)
    return mended


def _has_tools(turns: Iterable[WireMessage]) -> bool:
    for turn in turns:
        for block in turn.blocks:
            if block["type"] in _TOOLED:
                return True
    return False


def _say(text: str, where: str) -> WireMessage:
    return WireMessage("user", [{"type": "text", "text": text}], where)


def _merge(turns: Iterable[WireMessage]) -> list[WireMessage]:
    """Join turns of one role that follow each other (pitfall-36)."""
    merged: list[WireMessage] = []
    for turn in turns:
        if not turn.blocks:
            continue
        if merged and merged[-1].role == turn.role:
            merged[-1].blocks += turn.blocks
            merged[-1].where = "$.messages"  # of which message a block was is not known any more
        else:
            merged.append(turn)
    return merged


def _results_first(turns: list[WireMessage], losses: Losses) -> list[WireMessage]:
    """Return the turns, results before any system turn that stands between them and their calls."""
    if not any(turn.role == "system" for turn in turns):
        return turns
    ordered: list[WireMessage] = []
    held: list[WireMessage] = []
    called = False
    for turn in turns:
        if turn.role == "assistant":
            ordered += [*held, turn]
            held, called = [], any(block["type"] == "tool_use" for block in turn.blocks)
        elif called and not any(block["type"] == "tool_result" for block in turn.blocks):
            held.append(turn)
        else:
            if held:
                losses.approximated("$.messages", "order", "the results of tools come first")
            ordered.append(turn)
    return _merge([*ordered, *held])


def _answer_calls(turns: Iterable[WireMessage], losses: Losses) -> list[WireMessage]:
    """Return the turns, every call with exactly one result in the next turn, any other result as text (pitfall-44)."""
    answered: list[WireMessage] = []
    used: dict[str, int] = {}
    calls: dict[str, str] = {}  # ids of the calls that wait for a result -> their ids on the wire
    where = ""
    for turn in turns:
        if calls and turn.role != "user":
            answered.append(WireMessage("user", _missing(calls, where, losses), where))
            calls = {}
        if turn.role == "user":
            if calls or any(block["type"] == "tool_result" for block in turn.blocks):
                _place_results(turn, calls, where, losses)
                calls = {}
        elif turn.role == "assistant":
            calls, where = _calls(turn, used), turn.where
            if any(old != new for old, new in calls.items()):
                losses.emulated("$.messages", "id", "ids of calls must be unique: used ones get a number")
        answered.append(turn)
    if calls:
        answered.append(WireMessage("user", _missing(calls, where, losses), where))
    return answered


def _calls(turn: WireMessage, used: dict[str, int]) -> dict[str, str]:
    """Return the calls of a turn, and give each whose id an earlier turn used a new one.

    `used` has every id so far with the last number that was tried for it, so that none is tried twice.
    """
    calls: dict[str, str] = {}
    for block in turn.blocks:
        if block["type"] != "tool_use" or block["id"] in calls:
            continue
        old = new = block["id"]
        while new in used:
            used[old] += 1
            new = f"{old}-{used[old]}"
        used[new] = 1
        block["id"] = calls[old] = new
    return calls


def _place_results(turn: WireMessage, calls: dict[str, str], where: str, losses: Losses) -> None:
    """Put the results of `calls` first in the user's turn (pitfall-4), and before them those that are missing."""
    turn.blocks = [placed for block in turn.blocks for placed in _placed(block, calls, turn.where, losses)]
    if len(turn.blocks) > 1:
        turn.blocks.sort(key=lambda block: block["type"] != "tool_result")
    if calls:
        turn.blocks[:0] = _missing(calls, where, losses)


def _placed(block: JSONObject, calls: dict[str, str], where: str, losses: Losses) -> Sequence[JSONObject]:
    if block["type"] != "tool_result":
        return (block,)
    call_id = block["tool_use_id"]
    if call_id in calls:
        called = calls.pop(call_id)
        return (block if called == call_id else {**block, "tool_use_id": called},)
    losses.approximated(where, "tool_result", "no call of the turn before matches it; written as text")
    content = block.get("content", "")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [str(part["text"]) for part in blocks if part["type"] == "text"]
    text = {"type": "text", "text": "\n".join([f"Result of the tool call {call_id}:", *texts])}
    return (text, *(part for part in blocks if part["type"] != "text"))  # images and documents follow the text


def _missing(calls: dict[str, str], where: str, losses: Losses) -> list[JSONObject]:
    losses.emulated(where, "tool_result", "a call without a result gets a placeholder")
    return [
        {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT, "is_error": True}
        for call_id in calls.values()
    ]


def _begin(turns: list[WireMessage], losses: Losses) -> None:
    first = next((index for index, turn in enumerate(turns) if turn.role != "system"), len(turns))
    if first == len(turns) or turns[first].role != "user":
        losses.emulated("$.messages", "role", "the conversation must begin with the user: a turn is put in front")
        turns.insert(first, _say(FIRST_TURN, "$.messages"))


def _end(turns: list[WireMessage], losses: Losses, *, prefill: bool) -> None:
    last = turns[-1]
    if last.blocks[-1]["type"] not in _SPOKEN:
        return  # paused in the midst of what the server does itself: it continues when it gets that back unchanged
    if not prefill:
        losses.emulated(last.where, "prefill", "the server continues no turn: a user turn is added")
        turns.append(_say(LAST_TURN, last.where))
        return
    block = last.blocks[-1]
    if block["type"] == "text" and block["text"] != block["text"].rstrip():
        losses.approximated(last.where, "text", "whitespace at the end of a turn to be continued is cut")
        last.blocks[-1] = {**block, "text": block["text"].rstrip()}
