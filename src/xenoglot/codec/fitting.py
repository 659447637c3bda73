"""What a server's facts change of a request in every dialect alike, before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Target
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Request


def fitted(request: Request, target: Target, losses: Losses) -> Request:
    """Return `request` as the server behind `target` can take it; what that changes stands in `losses`."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "required" and not target.forced_tools:
        losses.approximated("$.tool_choice", "mode", "the server takes only `auto` and `none`")
        return replace(request, tool_choice=replace(choice, mode="auto"))
    return request
