"""Context edits as pure functions: clear old tool results and reasoning, decide on a compaction, ask for a summary.

They do for any model what some providers do on their servers; the defaults are theirs
(https://platform.claude.com/docs/en/build-with-claude/context-editing, .../compaction). Token counts are estimates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.context import AppliedEdit, ClearThinking, ClearToolUses, Compact
from xenoglot.model.request import Message, Request, Sampling, Tool, ToolChoice
from xenoglot.policy.token_estimate import estimate, estimate_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.context import ContextManagement

CLEAR_TOKENS: Final = 100_000
"""Tokens of the prompt from which tool results are cleared, if the request sets no other trigger."""
KEEP_CALLS: Final = 3
KEEP_THINKING_TURNS: Final = 1
COMPACT_TOKENS: Final = 150_000
"""Tokens of the prompt from which it is compacted, if the request sets no other number."""
SUMMARY_TOKENS: Final = 8_192
"""Most tokens of a summary, reasoning included."""

MOST_EDITS: Final = 16

CLEARED: Final = "[cleared to save context]"
"""What stands for a tool result that was cleared."""

INSTRUCTIONS: Final = (
    "Stop here and do not go on with the task. The conversation so far is about to be replaced by a summary that you "
    "write now, and you will continue from that summary alone. Write down everything that you need for that: what the "
    "user wants, with every constraint and preference in their words; what was done and found so far; decisions and "
    "their reasons; the files, names, commands, numbers and errors that matter; the state of the work, and the next "
    "steps. Leave out what is settled or was a dead end, beyond one line. Call no tools. Answer with the summary alone."
)
"""The last turn of the request for a summary, unless the client gives instructions of its own."""


class EditResult(NamedTuple):
    """A request after its edits, and what they did."""

    request: Request
    applied: tuple[AppliedEdit, ...]


class CompactionCost(NamedTuple):
    """Tokens of the second prompt, and of the summary."""

    prompt: int
    output: int


NO_COST: Final = CompactionCost(0, 0)


def edited(request: Request, context: ContextManagement) -> EditResult:
    """Return `request` with tool results and reasoning cleared as `context` wants it, edit by edit.

    Raises:
        WireError: there are too many edits, each of which reads the whole context.
    """
    if len(context.edits) > MOST_EDITS:
        raise WireError("$.context_management", f"expected at most {MOST_EDITS} edits, got {len(context.edits)}")
    applied: list[AppliedEdit] = []
    for edit in context.edits:
        if isinstance(edit, ClearToolUses):
            request = _clear_tools(request, edit, applied)
        elif isinstance(edit, ClearThinking) and edit.keep != "all":
            request = _clear_thinking(request, edit.keep, applied)
    return EditResult(request, tuple(applied))


def compaction_now(context: ContextManagement) -> Compact | None:
    """Return the wish for an answer that is a summary alone."""
    return next((edit for edit in context.edits if isinstance(edit, Compact) and edit.now), None)


def compaction_due(request: Request, context: ContextManagement) -> Compact | None:
    """Return the wish for a compaction whose number of tokens the prompt has; `None` if there is nothing to compact."""
    wishes = _wishes(context)
    if not wishes or not any(message.role == "assistant" for message in request.messages):
        return None
    tokens = estimate(request)
    return next((wish for wish in wishes if tokens >= _trigger(wish)), None)


def compaction_cost(context: ContextManagement | None, prompt: int) -> CompactionCost:
    """Return what a compaction adds at most to a request with a prompt of so many tokens: nothing if none is due."""
    if context is None:
        return NO_COST
    if compaction_now(context) is not None:
        return CompactionCost(0, SUMMARY_TOKENS)
    due = any(prompt >= _trigger(wish) for wish in _wishes(context))
    return CompactionCost(prompt, SUMMARY_TOKENS) if due else NO_COST


def _wishes(context: ContextManagement) -> list[Compact]:
    return [edit for edit in context.edits if isinstance(edit, Compact) and not edit.now]


def _trigger(wish: Compact) -> int:
    return COMPACT_TOKENS if wish.trigger_tokens is None else wish.trigger_tokens


def summary_request(request: Request, wish: Compact) -> Request:
    """Return the request for a summary of the conversation, by the same model.

    It begins like the conversation, so that a server that caches prompts reads it from its cache. Tools stay defined,
    because calls in a history need their definitions, but none may be called.
    """
    tools = tuple(tool for tool in request.tools if isinstance(tool, Tool))
    asked = Message(role="user", content=(Text(text=(wish.instructions or "").strip() or INSTRUCTIONS),))
    return Request(
        model=request.model,
        messages=(*_answered(request.messages), asked),
        tools=tools,
        tool_choice=ToolChoice(mode="none") if tools else None,
        sampling=Sampling(max_tokens=SUMMARY_TOKENS),
        user=request.user,
        cache_key=request.cache_key,
        service_tier=request.service_tier,
    )


def compacted(request: Request, summary: CompactedHistory) -> Request:
    """Return `request` with `summary` in place of its turns; the system's and the last one stay.

    The last turn is what the model has to answer: the user's, or results with the calls that they belong to.
    """
    last = len(request.messages) - 1
    while last > 0 and (_has_results(request.messages[last]) or request.messages[last].role == "assistant"):
        last -= 1
        if request.messages[last].role == "assistant":
            break
    head = [message for message in request.messages[:last] if message.role in ("system", "developer")]
    middle = Message(role="assistant", content=(summary,))
    context = request.context_management
    return replace(
        request,
        messages=(*head, middle, *request.messages[last:]),
        context_management=None if context is None else replace(context, resumes=True, edits=()),
    )


def _answered(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the turns without a last one of the assistant that waits for results: none will come."""
    last = messages[-1] if messages else None
    if last is None or not any(isinstance(part, ToolCall) for part in last.content):
        return messages
    kept = tuple(part for part in last.content if not isinstance(part, ToolCall | Reasoning))
    return (*messages[:-1], *((replace(last, content=kept),) if kept else ()))


def _has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.content)


def _clear_tools(request: Request, edit: ClearToolUses, applied: list[AppliedEdit]) -> Request:
    calls = [part for part in _parts(request) if isinstance(part, ToolCall)]
    if edit.trigger_calls is not None:
        reached = len(calls) >= edit.trigger_calls
    else:
        reached = estimate(request) >= (CLEAR_TOKENS if edit.trigger_tokens is None else edit.trigger_tokens)
    keep, excluded = KEEP_CALLS if edit.keep is None else edit.keep, frozenset(edit.exclude or ())
    old = {call.id: call for call in calls[: max(0, len(calls) - keep)] if call.name not in excluded}
    if not reached or not old:
        return request
    cleared = _Cleared(old, edit)
    messages = _mapped(request.messages, cleared.part)
    if not cleared.calls or cleared.tokens < (edit.clear_at_least or 0):
        return request
    applied.append(AppliedEdit(kind="tool_uses", count=len(cleared.calls), tokens=cleared.tokens))
    return replace(request, messages=messages)


class _Cleared:
    """Clears results of the `old` calls, and counts what that frees."""

    def __init__(self, old: dict[str, ToolCall], edit: ClearToolUses) -> None:
        self._old = old
        self._inputs = frozenset(edit.inputs) if isinstance(edit.inputs, tuple) else edit.inputs
        self.calls: set[str] = set()
        self.tokens = 0

    def part(self, part: Part) -> Part:
        """Return a part as it is after that."""
        after = part
        if isinstance(part, ToolResult) and part.call_id in self._old:
            after = replace(part, content=(Text(text=CLEARED),))
            self.calls.add(part.call_id)
        elif isinstance(part, ToolCall) and part.id in self._old and self._clears(part.name):
            after = replace(part, arguments="{}" if part.kind == "function" else "")
        if after is not part:
            self.tokens += max(0, estimate_part(part) - estimate_part(after))
        return after

    def _clears(self, name: str) -> bool:
        return name in self._inputs if isinstance(self._inputs, frozenset) else bool(self._inputs)


def _clear_thinking(request: Request, keep: int | None, applied: list[AppliedEdit]) -> Request:
    thinking = [message for message in request.messages if any(isinstance(part, Reasoning) for part in message.content)]
    most = KEEP_THINKING_TURNS if keep is None else keep
    old = thinking[: max(0, len(thinking) - most)]
    if not old:
        return request
    tokens = sum(estimate_part(part) for message in old for part in message.content if isinstance(part, Reasoning))
    dropped = {id(message) for message in old}
    messages = [_without_reasoning(message) if id(message) in dropped else message for message in request.messages]
    applied.append(AppliedEdit(kind="thinking", count=len(old), tokens=tokens))
    return replace(request, messages=tuple(message for message in messages if message.content))


def _without_reasoning(message: Message) -> Message:
    return replace(message, content=tuple(part for part in message.content if not isinstance(part, Reasoning)))


def _parts(request: Request) -> Iterator[Part]:
    for message in request.messages:
        yield from message.content


def _mapped(messages: Sequence[Message], change: Callable[[Part], Part]) -> tuple[Message, ...]:
    changed: list[Message] = []
    for message in messages:
        parts = tuple(map(change, message.content))
        same = all(one is other for one, other in zip(parts, message.content, strict=True))
        changed.append(message if same else replace(message, content=parts))
    return tuple(changed)
