"""Xenoglot lets any LLM client talk to any model.

    import xenoglot

    losses = xenoglot.Losses()
    xenoglot.translate_request(body, "chat", "messages", losses)

Importing this package opens no socket, starts no thread and loads nothing but the codecs.
"""

from xenoglot.codec.loss import Loss, Losses
from xenoglot.errors import (
    ConfigurationError,
    FailureError,
    GrammarError,
    LossError,
    WireError,
    XenoglotError,
)
from xenoglot.serving import serve
from xenoglot.translate import stream_translator, translate, translate_request, translate_response

__version__ = "0.1.0"

__all__ = [
    "ConfigurationError",
    "FailureError",
    "GrammarError",
    "Loss",
    "LossError",
    "Losses",
    "WireError",
    "XenoglotError",
    "__version__",
    "serve",
    "stream_translator",
    "translate",
    "translate_request",
    "translate_response",
]
