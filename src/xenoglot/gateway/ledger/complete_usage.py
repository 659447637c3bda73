"""Usage of an answer that is over: what the upstream reported, the rest estimated and marked so.

A server that does not report usage, a stream that broke off, and a client that disconnected all leave counts open. The
prompt is estimated as routing estimates it. Most servers send one token in each piece of a stream, some send more: the
answer is counted as its pieces, or by its characters if these are more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.observability.request_log import RequestLog

BYTES_PER_TOKEN: Final = 4
"""Of JSON, and of the text in it: somewhat more tokens than most models count."""


def complete_usage(record: RequestLog, prompt: Callable[[], int]) -> None:
    """Set the counts that `record` lacks after its answer; `prompt` estimates the tokens of the request.

    A stream that did not finish may have reported the beginning of its output alone: the larger count is taken.
    """
    usage = record.usage
    if usage is None:
        usage = Usage()
    elif record.finish is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        return  # nearly all
    given = prompt() if usage.input_tokens is None else usage.input_tokens
    made = usage.output_tokens
    if made is None or record.finish is None:
        made = max(made or 0, record.pieces, -(-record.characters // BYTES_PER_TOKEN))
    if (given, made) != (usage.input_tokens, usage.output_tokens):
        record.usage = replace(usage, input_tokens=given, output_tokens=made, estimated=True)
