"""Wishes of a request about its own context: compact it, or clear old tool results and reasoning first.

Sources: `anthropic/types/beta/beta_context_management_config_param.py` and `beta_compaction_config_param.py`,
`openai/types/responses/response_create_params.py` (`ContextManagement`) of the official SDKs.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.content import Extra, Opaque
from xenoglot.model.short_repr import short_repr


class Compact(Struct, frozen=True, kw_only=True, tag=True):
    """Replace old turns by a summary that the model writes.

    With `now` the answer is the summary alone. Otherwise the prompt is compacted when it has `trigger_tokens` (`None`
    is the default of the dialect), and the answer begins with the summary; with `pause` it ends there, too.
    `instructions` are the client's in place of the usual ones.
    """

    now: bool = False
    trigger_tokens: int | None = None
    instructions: str | None = None
    pause: bool | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class ClearToolUses(Struct, frozen=True, kw_only=True, tag=True):
    """Clear the results of old tool calls when the prompt has `trigger_tokens`, or `trigger_calls` calls.

    The last `keep` calls and those of the tools `exclude` stay. Nothing is cleared if that would free fewer than
    `clear_at_least` tokens. `inputs` are the tools whose arguments are cleared, too: all, none, or the named ones.
    """

    trigger_tokens: int | None = None
    trigger_calls: int | None = None
    keep: int | None = None
    clear_at_least: int | None = None
    exclude: tuple[str, ...] | None = None
    inputs: bool | tuple[str, ...] | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class ClearThinking(Struct, frozen=True, kw_only=True, tag=True):
    """Remove reasoning from all but the last `keep` turns of the assistant; `None` is the default of the dialect."""

    keep: int | Literal["all"] | None = None
    extra: Extra | None = None

    __repr__ = short_repr


ContextEdit: TypeAlias = Compact | ClearToolUses | ClearThinking | Opaque


class ContextManagement(Struct, frozen=True, kw_only=True):
    """What is to be done with the context before the model reads it.

    `resumes` is whether the messages hold a `CompactedHistory`: it is known without looking at each part.
    """

    edits: tuple[ContextEdit, ...] = ()
    resumes: bool = False
    extra: Extra | None = None

    __repr__ = short_repr

    @property
    def acts(self) -> bool:
        """Whether anything of it can change the prompt or the answer."""
        return self.resumes or any(edit != KEEP_THINKING for edit in map(_bare, self.edits))


class AppliedEdit(Struct, frozen=True, kw_only=True):
    """What was cleared: `kind` of edit, how many calls or turns, and about how many tokens of the prompt."""

    kind: Literal["tool_uses", "thinking"]
    count: int
    tokens: int

    __repr__ = short_repr


KEEP_THINKING = ClearThinking(keep="all")
"""An edit that changes nothing; coding agents send it with every request."""


def _bare(edit: ContextEdit) -> ContextEdit:
    return ClearThinking(keep=edit.keep) if isinstance(edit, ClearThinking) else edit
