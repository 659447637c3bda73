"""Options of a run of the tool loop: limits, parallelism, compaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import ToolCall
from xenoglot.model.response import Usage
from xenoglot.tools.budget import Budget, RunSpend
from xenoglot.tools.compaction import Compaction
from xenoglot.tools.tool import Approval
from xenoglot.tools.tool_output import RESULT_LIMIT

Price: TypeAlias = Callable[[Usage, str, str | None], float | None]
"""Cost of tokens of a model; `None` if unknown."""

ApprovalAnswer: TypeAlias = bool | str | Approval
"""Answer to an approval request: a bool, the reason for a denial, or an `Approval`."""

Approver: TypeAlias = Callable[[ToolCall], ApprovalAnswer | Awaitable[ApprovalAnswer]]


class RunOptions(Struct, frozen=True, kw_only=True):
    """Options of a run. `spent` is usage before it, `window` the model's context window, `price` its prices."""

    max_rounds: int = 16
    on_limit: Literal["end", "answer"] = "end"
    budget: Budget = Budget()
    spent: RunSpend = RunSpend()
    parallel: bool = True
    time_limit: float | None = None
    result_limit: int = RESULT_LIMIT
    continue_length: bool = True
    compaction: Compaction | None = None
    window: int | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.max_rounds < 1:
            raise ConfigurationError(f"`max_rounds`: found {self.max_rounds}; expected at least 1")
        if self.on_limit not in ("end", "answer"):
            raise ConfigurationError(f"`on_limit`: found `{self.on_limit}`; expected `end` or `answer`")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ConfigurationError(f"`time_limit`: found {self.time_limit}; expected more than 0 seconds, or `None`")
        if self.result_limit < 1:
            raise ConfigurationError(f"`result_limit`: found {self.result_limit}; expected at least 1 character")
        if self.budget.cost is not None and self.price is None:
            raise ConfigurationError("`budget.cost`: there are no prices; give the client some")
