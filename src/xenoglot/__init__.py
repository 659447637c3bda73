"""Xenoglot lets any LLM client talk to any model.

    import xenoglot

    with xenoglot.Client("anthropic", model="claude-sonnet-4-5") as client:
        print(client.complete("Hello").text)

    body = xenoglot.translate(body, "chat", "messages")

Importing this package opens no socket, starts no thread and loads nothing but the codecs. The client and the
gateway are loaded at the first use of their names.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from xenoglot.codec.loss import Loss, Losses
from xenoglot.errors import (
    AuthenticationError,
    BillingError,
    ConfigurationError,
    ConflictError,
    ConnectionFailedError,
    ContextOverflowError,
    DeadlineError,
    FailureError,
    GrammarError,
    IncompleteError,
    InvalidRequestError,
    LossError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    RateLimitError,
    RequestCancelledError,
    TooLargeError,
    UnsupportedError,
    UpstreamError,
    WireError,
    XenoglotError,
)
from xenoglot.moved_modules import install as install_moved_modules
from xenoglot.moved_modules import renamed
from xenoglot.python_gateway import configured, serve
from xenoglot.translate import stream_translator, translate, translate_request, translate_response

if TYPE_CHECKING:
    from xenoglot.backends.http.timeouts import Deadlines
    from xenoglot.backends.wrappers.emulation_settings import Emulation
    from xenoglot.client.async_ import AsyncClient
    from xenoglot.client.call.answer_stream import AsyncReplyStream
    from xenoglot.client.results.parsed import AnswerRefusedError, AnswerTruncatedError, Parsed, ParseError
    from xenoglot.client.results.result import EmbeddingReply, Reply
    from xenoglot.client.sync import Client
    from xenoglot.client.sync_streams import ReplyStream
    from xenoglot.model.content import Image, Inline, Text, ToolCall, ToolResult
    from xenoglot.model.request import MediaOutput, Message, OutputFormat, Request, Thinking, Tool, ToolChoice
    from xenoglot.model.response import Response, Usage
    from xenoglot.policy.target_health import Retry
    from xenoglot.providers.costs import Cost, Price, Prices, sum_costs
    from xenoglot.tools.budget import Budget
    from xenoglot.tools.compaction import Compaction
    from xenoglot.tools.context import ToolContext
    from xenoglot.tools.mcp.tools import mcp_tools
    from xenoglot.tools.result import RunResult
    from xenoglot.tools.tool import Approval, tool
    from xenoglot.tools.tool_output import ToolError, ToolOutput

__version__: str
"""The version of the installed distribution, looked up at its first use."""

_LATER = {
    "AnswerTruncatedError": "xenoglot.client.results.parsed",
    "AnswerRefusedError": "xenoglot.client.results.parsed",
    "Approval": "xenoglot.tools.tool",
    "AsyncClient": "xenoglot.client.async_",
    "AsyncReplyStream": "xenoglot.client.call.answer_stream",
    "Budget": "xenoglot.tools.budget",
    "Client": "xenoglot.client.sync",
    "Compaction": "xenoglot.tools.compaction",
    "Cost": "xenoglot.providers.costs",
    "Deadlines": "xenoglot.backends.http.timeouts",
    "EmbeddingReply": "xenoglot.client.results.result",
    "Emulation": "xenoglot.backends.wrappers.emulation_settings",
    "Image": "xenoglot.model.content",
    "Inline": "xenoglot.model.content",
    "Message": "xenoglot.model.request",
    "MediaOutput": "xenoglot.model.request",
    "OutputFormat": "xenoglot.model.request",
    "ParseError": "xenoglot.client.results.parsed",
    "Parsed": "xenoglot.client.results.parsed",
    "Price": "xenoglot.providers.costs",
    "Prices": "xenoglot.providers.costs",
    "Reply": "xenoglot.client.results.result",
    "ReplyStream": "xenoglot.client.sync_streams",
    "Request": "xenoglot.model.request",
    "Response": "xenoglot.model.response",
    "Retry": "xenoglot.policy.target_health",
    "RunResult": "xenoglot.tools.result",
    "Text": "xenoglot.model.content",
    "Thinking": "xenoglot.model.request",
    "Tool": "xenoglot.model.request",
    "ToolCall": "xenoglot.model.content",
    "ToolChoice": "xenoglot.model.request",
    "ToolContext": "xenoglot.tools.context",
    "ToolError": "xenoglot.tools.tool_output",
    "ToolOutput": "xenoglot.tools.tool_output",
    "ToolResult": "xenoglot.model.content",
    "Usage": "xenoglot.model.response",
    "mcp_tools": "xenoglot.tools.mcp.tools",
    "sum_costs": "xenoglot.providers.costs",
    "tool": "xenoglot.tools.tool",
}
"""Modules of the names that are loaded at their first use."""

__all__ = [
    "AnswerRefusedError",
    "AnswerTruncatedError",
    "Approval",
    "AsyncClient",
    "AsyncReplyStream",
    "AuthenticationError",
    "BillingError",
    "Budget",
    "Client",
    "Compaction",
    "ConfigurationError",
    "ConflictError",
    "ConnectionFailedError",
    "ContextOverflowError",
    "Cost",
    "DeadlineError",
    "Deadlines",
    "EmbeddingReply",
    "Emulation",
    "FailureError",
    "GrammarError",
    "Image",
    "IncompleteError",
    "Inline",
    "InvalidRequestError",
    "Loss",
    "LossError",
    "Losses",
    "MediaOutput",
    "Message",
    "NotFoundError",
    "OutputFormat",
    "OverloadedError",
    "ParseError",
    "Parsed",
    "PermissionDeniedError",
    "Price",
    "Prices",
    "RateLimitError",
    "Reply",
    "ReplyStream",
    "Request",
    "RequestCancelledError",
    "Response",
    "Retry",
    "RunResult",
    "Text",
    "Thinking",
    "TooLargeError",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolContext",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "UnsupportedError",
    "UpstreamError",
    "Usage",
    "WireError",
    "XenoglotError",
    "__version__",
    "configured",
    "mcp_tools",
    "serve",
    "stream_translator",
    "sum_costs",
    "tool",
    "translate",
    "translate_request",
    "translate_response",
]

install_moved_modules()


def __getattr__(name: str) -> object:
    """Load what is here by its name alone."""
    if name == "__version__":
        return _version()
    module = _LATER.get(name)
    if module is None:
        return renamed(__name__, name)
    found: object = getattr(import_module(module), name)
    globals()[name] = found
    return found


def _version() -> str:
    """Return the version of the installed distribution; that of a copy that is not installed is not known."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  thirty modules that few need

    try:
        return version("xenoglot")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
