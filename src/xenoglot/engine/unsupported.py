"""Request features that the embedded model does not support: rejected, or recorded as losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import CORE, STATELESS, Fields, FieldTexts
from xenoglot.codec.invalid_request import refused
from xenoglot.engine.errors import context_overflow
from xenoglot.engine.extras import unknown_fields
from xenoglot.engine.prompting.prompt import strings
from xenoglot.engine.prompting.text_turns import ENGINE
from xenoglot.engine.sampling import SUPPORTED
from xenoglot.model.request import OutputFormat, Request, Sampling, Thinking, Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON

MOST_STOPS: Final = 64
LONGEST_TOKEN: Final = 64
"""No text has fewer tokens than one for so many characters."""

_NO_SETTING: Final = "the embedded model has no such setting"
_REQUEST: Final = Fields(
    Request, "$", (*CORE, "parallel_tool_calls", "thinking"), neutral=STATELESS, texts=FieldTexts(_NO_SETTING)
)
_SAMPLING: Final = Fields(Sampling, "$.sampling", SUPPORTED, texts=FieldTexts(_NO_SETTING))
_OUTPUT: Final = Fields(
    OutputFormat,
    "$.output",
    ("kind", "schema", "strict", "name"),
    texts=FieldTexts("the model is shown the schema alone"),
)
_TOOL: Final = Fields(
    Tool,
    "$.tools",
    ("name", "description", "parameters", "strict", "kind", "format", "namespace", "definition"),
    texts=FieldTexts("the model is shown the name, the description and the schema alone"),
)
"""`strict`: arguments are held to the schema in any case."""

_THINKING: Final = Fields(
    Thinking,
    "$.thinking",
    ("mode", "effort", "budget_tokens"),
    texts=FieldTexts("thoughts are shown as the model writes them"),
)


def check_size(said: Sequence[JSON], context: int) -> None:
    """Refuse what is too long before its tokens are counted, which takes a second for a megabyte.

    Raises:
        FailureError: it has more tokens than `context`, however few they are.
    """
    tokens = sum(map(len, strings(said))) // LONGEST_TOKEN
    if tokens > context:
        raise context_overflow(tokens, context)


def note_losses(request: Request, losses: Losses, *heeded: str) -> None:
    """Record what the model will not do; `heeded` are fields that no dialect defines and this answer heeds.

    Raises:
        FailureError: without it the answer would be to another question.
    """
    losses.carry(unknown_fields(request.extra, *heeded), "$", ENGINE)
    if request.previous is not None:
        raise refused("$.previous_response_id", "the embedded model keeps no state; send the whole conversation")
    _REQUEST.note_unsupported(request, losses)
    _SAMPLING.note_unsupported(request.sampling, losses)
    if request.output is not None:
        _OUTPUT.note_unsupported(request.output, losses)
    if request.thinking is not None:
        _THINKING.note_unsupported(request.thinking, losses)
    for index, tool in enumerate(request.tools):
        if isinstance(tool, Tool):
            _TOOL.note_unsupported(tool, losses, f"$.tools[{index}]")
    for name in ("tool_choice", "parallel_tool_calls"):
        if not request.tools and getattr(request, name) is not None:
            losses.dropped("$", name, "there are no tools")


def stop_words(request: Request) -> list[str]:
    """Return the strings that end the answer.

    Raises:
        FailureError: there are too many.
    """
    words = [word for word in request.sampling.stop or () if word]
    if len(words) > MOST_STOPS:
        raise refused("$.stop", f"found {len(words)} strings, expected at most {MOST_STOPS}")
    return words
