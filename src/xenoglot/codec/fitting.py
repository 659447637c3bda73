"""What a server's facts change of a request in every dialect alike, before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.opaque import kind_of
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Target
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Request


def fitted(request: Request, dialect: str, target: Target, losses: Losses) -> Request:
    """Return `request` as the server behind, of `dialect` and `target`, can take it; what changes stands in `losses`.

    Raises:
        WireError: all the tools are such that another server would run.
    """
    check_tools(request, dialect)
    choice = request.tool_choice
    if choice is not None and choice.mode == "required" and not target.forced_tools:
        losses.approximated("$.tool_choice", "mode", "the server takes only `auto` and `none`")
        return replace(request, tool_choice=replace(choice, mode="auto"))
    return request


def check_tools(request: Request, dialect: str) -> None:
    """Refuse a request whose every tool only a server of another dialect than `dialect` runs (pitfall-30).

    Beside tools of the client such a tool is a loss, for the answer may do without it. Alone it is the point of the
    request: an answer without a search would pass for one with it.

    Raises:
        WireError: it is such a request.
    """
    hosted = [tool for tool in request.tools if isinstance(tool, Opaque) and tool.dialect != dialect]
    if hosted and len(hosted) == len(request.tools):
        kinds = ", ".join(f"`{kind_of(tool)}`" for tool in hosted)
        problem = f"the model behind cannot run {kinds}; ask a server of {hosted[0].dialect}, or leave it out"
        raise WireError("$.tools", problem)
