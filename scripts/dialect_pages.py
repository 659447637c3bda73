"""The tables of docs/dialects/, made from the dialects' field tables and encoders: `make dialect-pages`.

    python scripts/dialect_pages.py

It replaces the text of each page between its marks; the rest of the page stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.dialects.chat import finish as chat_finish
from xenoglot.dialects.chat.request import fields as chat
from xenoglot.dialects.completions.request import fields as completions
from xenoglot.dialects.converse import usage as converse_usage
from xenoglot.dialects.converse.request import fields as converse
from xenoglot.dialects.gemini import usage as gemini_usage
from xenoglot.dialects.gemini.request import fields as gemini
from xenoglot.dialects.interactions import usage as interactions_usage
from xenoglot.dialects.interactions.request import fields as interactions
from xenoglot.dialects.llama_stack import usage as llama_stack_usage
from xenoglot.dialects.llama_stack.request import fields as llama_stack
from xenoglot.dialects.messages import response as messages_response
from xenoglot.dialects.messages import usage as messages_usage
from xenoglot.dialects.messages.request import fields as messages
from xenoglot.dialects.ollama import finish as ollama_finish
from xenoglot.dialects.ollama.request import fields as ollama
from xenoglot.dialects.openai import usage as openai_usage
from xenoglot.dialects.responses import usage as responses_usage
from xenoglot.dialects.responses.request import fields as responses
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.fold import unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from xenoglot.codec.fields import Fields
    from xenoglot.model.json import JSON, JSONObject

DOCS = Path(__file__).parent.parent / "docs" / "dialects"
BEGIN, END = "<!-- made by `make dialect-pages`: begin -->\n", "<!-- made by `make dialect-pages`: end -->\n"


class FinishTable(NamedTuple):
    """The words of the wire for the end of an answer, and where an answer has it."""

    reasons: Mapping[str, FinishReason]
    word: Callable[[JSONObject], JSON]


class PageTables(NamedTuple):
    """What a page shows: tables of request fields by the path of their object, usage, and finish reasons if any.

    A page with finish reasons also shows errors and stream events.
    """

    requests: tuple[tuple[str, str, Fields], ...]
    usage: tuple[str, Fields]
    finish: FinishTable | None = None


_USAGE = ("usage.", openai_usage.USAGE)

PAGES: dict[str, PageTables] = {
    "chat": PageTables(
        (
            ("", "", chat.REQUEST),
            ("", "sampling.", chat.SAMPLING),
            ("reasoning.", "thinking.", chat.REASONING),
            ("thinking.", "thinking.", chat.BUDGET),
        ),
        _USAGE,
        FinishTable(chat_finish.REASONS, lambda body: body["choices"][0]["finish_reason"]),
    ),
    "completions": PageTables(
        (("", "", completions.REQUEST), ("", "prompt.", completions.PROMPT), ("", "sampling.", completions.SAMPLING)),
        _USAGE,
    ),
    "converse": PageTables(
        (
            ("", "", converse.REQUEST),
            ("inferenceConfig.", "sampling.", converse.INFERENCE),
            ("additionalModelRequestFields.", "sampling.", converse.ADDITIONAL),
        ),
        ("usage.", converse_usage.USAGE),
    ),
    "gemini": PageTables(
        (("", "", gemini.REQUEST), ("generationConfig.", "sampling.", gemini.SAMPLING)),
        ("usageMetadata.", gemini_usage.USAGE),
    ),
    "interactions": PageTables(
        (("", "", interactions.REQUEST), ("generation_config.", "sampling.", interactions.SAMPLING)),
        ("usage.", interactions_usage.USAGE),
    ),
    "llama_stack": PageTables(
        (("", "", llama_stack.REQUEST), ("sampling_params.", "sampling.", llama_stack.SAMPLING)),
        ("metrics.", llama_stack_usage.USAGE),
    ),
    "messages": PageTables(
        (("", "", messages.REQUEST), ("", "sampling.", messages.SAMPLING)),
        ("usage.", messages_usage.USAGE),
        FinishTable(messages_response.REASONS, lambda body: body["stop_reason"]),
    ),
    "ollama": PageTables(
        (
            ("", "", ollama.REQUEST),
            ("options.", "sampling.", ollama.OPTIONS),
            ("", "sampling.", ollama.LOGPROBS),
        ),
        ("", ollama_finish.USAGE),
    ),
    "responses": PageTables(
        (
            ("", "", responses.REQUEST),
            ("", "sampling.", responses.SAMPLING),
            ("reasoning.", "thinking.", responses.REASONING),
        ),
        ("usage.", responses_usage.USAGE),
    ),
}
"""The pages by the dialect that they describe."""

ANSWER = Response(
    id="id",
    model="m",
    created=1,
    candidates=(
        Candidate(
            content=(Reasoning(text="Hm"), Text(text="Hi"), ToolCall(id="c", name="f", arguments="{}")),
            finish=Finish(reason="tool_calls"),
        ),
    ),
    usage=Usage(input_tokens=1, output_tokens=2),
)
"""The answer whose stream is shown."""


def page(name: str, text: str) -> str:
    """Return the page `text` of the dialect `name` with its current tables."""
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        message = f"{name}.md has lost the marks between which its tables stand"
        raise ValueError(message)
    return f"{head}{BEGIN}\n{tables(name)}\n{END}{tail}"


def tables(name: str) -> str:
    """Return the tables of a page."""
    shown = PAGES[name]
    lines = ["### Request fields", "", *_table(("the wire", "canonical", "values"), _request_rows(shown))]
    prefix, usage = shown.usage
    lines += ["", "### Usage fields", "", *_table(("the wire", "canonical"), _usage_rows(prefix, usage))]
    if shown.finish is not None:
        lines += ["", "### Finish reasons", "", *_finish(name, shown.finish)]
        lines += ["", "### Errors", "", *_table(("failure", "status", "fields of `error`"), _error_rows(name))]
        lines += ["", "### Stream events", "", *_table(("canonical event", "the wire"), _event_rows(name))]
    return "\n".join(lines) + "\n"


def _request_rows(shown: PageTables) -> Iterator[tuple[str, ...]]:
    for prefix, path, fields in shown.requests:
        for row in fields.documented(prefix):
            yield _codes(row.keys), code(path + row.name), f"{row.values}; {row.note}" if row.note else row.values


def _usage_rows(prefix: str, usage: Fields) -> Iterator[tuple[str, ...]]:
    for row in usage.documented(prefix):
        yield _codes(row.keys), code(f"usage.{row.name}") + (f" ({row.note})" if row.note else "")


def _finish(name: str, finish: FinishTable) -> list[str]:
    """Return what is read, and what is written for each canonical reason."""
    read = ((code(word), code(reason)) for word, reason in finish.reasons.items())
    written = []
    for reason in get_args(FinishReason):
        losses = Losses()
        text = Candidate(content=(Text(text="Hi"),), finish=Finish(reason=reason))
        body = get(name).encode_response(
            Response(id="id", model="m", created=1, candidates=(text,)), Request(model="m"), losses
        )
        word = code(str(finish.word(body)))
        lossy = any("finish" in f"{loss.where}.{loss.what}" for loss in losses)
        written.append((code(reason), f"{word} (approximated)" if lossy else word))
    return [
        "Read; any other word is `unknown`:",
        "",
        *_table(("the wire", "canonical"), read),
        "",
        "Written:",
        "",
        *_table(("canonical", "the wire"), written),
    ]


def _error_rows(name: str) -> Iterator[tuple[str, ...]]:
    for kind in get_args(FailureKind):
        status, body = get(name).encode_error(Failure(kind=kind, message="m"))
        fields = {key: value for key, value in body["error"].items() if key != "message" and value is not None}
        yield code(kind), str(status), ", ".join(f"{code(key)} {code(value)}" for key, value in fields.items())


def _event_rows(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the events of a stream with reasoning, text and a tool call, and what each becomes."""
    encoder = get(name).stream_encoder(Request(model="m", stream=True, stream_usage=True), Losses())
    for event in unfold(ANSWER):
        kind = type(event).__name__
        yield code(kind), ", ".join(code(_label(frame.data)) for frame in encoder.feed(event)) or "-"
    yield "the end", ", ".join(code(_label(frame.data)) for frame in encoder.close())


def _label(data: bytes) -> str:
    """Return what kind of event this is: its type, or the fields of its delta."""
    try:
        body = json.loads(data)
    except ValueError:
        return data.decode()
    inner = body.get("delta") or body.get("content_block") or {}
    if "type" in body:
        kind = str(body["type"])
        return f"{kind} ({inner['type']})" if "type" in inner else kind
    if not body["choices"]:
        return "usage"
    choice = body["choices"][0]
    if choice["finish_reason"] is not None:
        return "finish_reason"
    return "delta." + next(key for key in reversed(choice["delta"]) if choice["delta"][key] is not None)


def _codes(keys: Iterable[str]) -> str:
    return ", ".join(map(code, keys))


def code(text: str) -> str:
    """Return `text` as code in a cell."""
    return f"`{text}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(cells)} |" if cells[0] != "---" else f"|{'|'.join(cells)}|" for cells in lines]


def main() -> None:
    """Write the tables of all pages."""
    for name in PAGES:
        path = DOCS / f"{name}.md"
        path.write_text(page(name, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
