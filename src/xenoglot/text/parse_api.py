"""Parses the text of one answer: request and response of `/v1/parse`.

Source of the fields that are not ours alone: `/parse_function_call` and `/separate_reasoning` of SGLang
(`ParseFunctionCallReq` and `SeparateReasoningReqInput` in `srt/managers/io_struct.py`, `ToolCallItem` in
`srt/function_call/core_types.py`).
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict

from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.stage import through
from xenoglot.errors import WireError
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, TextDelta
from xenoglot.model.fold import Folder
from xenoglot.model.request import Tool
from xenoglot.model.response import Candidate, Finish
from xenoglot.text.declared_tools import DeclaredTools, UndeclaredTools
from xenoglot.text.registry import AUTO, OFF, chosen
from xenoglot.text.stage import TextStage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.text.payloads.repaired import Repair

_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
"""What the dialects call the schema of a tool's arguments."""


class ParseRequest(Struct, frozen=True, kw_only=True):
    """What is to be parsed.

    `syntax` names a row, or is `auto`, which goes by `model`; `thinking` is whether the prompt began reasoning, where
    the family's does; `repair` whether broken JSON is repaired. `unknown` are the fields that mean nothing here.
    """

    text: str
    model: str = ""
    syntax: str = AUTO
    tools: tuple[Tool, ...] = ()
    thinking: bool | None = None
    repair: bool = False
    unknown: tuple[str, ...] = ()


class ParsedText(Struct, frozen=True, kw_only=True):
    """The content of a text, and the name of the row by which it was read."""

    candidate: Candidate
    syntax: str


def parse(  # noqa: PLR0913  what a policy is made of
    text: str,
    losses: Losses,
    *,
    syntax: str = AUTO,
    model: str = "",
    tools: Sequence[Tool] = (),
    any_tool: bool = False,
    thinking: bool | None = None,
    repair: Repair | None = None,
) -> ParsedText:
    """Return the content of `text`, the whole of an answer. The same text gives the same ids of calls.

    Only `tools` can be called; with `any_tool`, every name can.

    Raises:
        ConfigurationError: there is no syntax of that name.
    """
    row = chosen(syntax, model)
    events: list[Event] = [BlockStarted(part=Text(text="")), TextDelta(text=text), BlockEnded()]
    if not text:
        events.clear()
    events.append(Finished(finish=Finish(reason="stop")))
    if row is not None:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        stage = TextStage(
            row,
            UndeclaredTools() if any_tool else DeclaredTools.of(tools),
            lambda _, number: f"call_{digest}_{number}",
            losses,
            repair=repair,
            thinking=thinking,
        )
        events = list(through(events, stage))
    folder = Folder()
    for event in events:
        folder.feed(event)
    return ParsedText(candidate=folder.response().candidates[0], syntax=OFF if row is None else row.name)


def undeclared_calls(parsed: ParsedText, text: str) -> list[str]:
    """Return the names of the calls in `text` that are not in `parsed`, because no declared tool has that name."""
    anything = parse(text, Losses(), syntax=parsed.syntax, any_tool=True)
    missing = Counter(_call_names(anything)) - Counter(_call_names(parsed))
    return [*missing.elements()]


def _call_names(parsed: ParsedText) -> Iterator[str]:
    return (part.name for part in parsed.candidate.content if isinstance(part, ToolCall))


def decode_parse(body: JSON) -> ParseRequest:
    """Return what `body` asks.

    Raises:
        WireError: it asks for nothing, or not in these fields.
    """
    reader = Reader(body)
    text = reader.take("text", str) if "text" in reader else reader.take("input", str)
    if text is None:
        raise WireError("$.text", "required, expected str")
    thinking, repair = reader.take("thinking", bool), reader.take("repair", bool)
    return ParseRequest(
        text=text,
        model=reader.take("model", str) or "",
        syntax=reader.take("syntax", str) or AUTO,
        tools=tuple(_tools(reader)),
        thinking=thinking,
        repair=repair is True,
        unknown=tuple(name for name, value in reader.rest().items() if value is not None),
    )


def decode_tools(body: JSON) -> tuple[Tool, ...]:
    """Return the tools of a list, or of any request that has one under `tools`, in the words of whichever dialect.

    Raises:
        WireError: it is none.
    """
    return tuple(_tools(Reader(body if isinstance(body, dict) else {"tools": body})))


def encode_parsed(parsed: ParsedText, losses: Losses) -> JSONObject:
    """Return the answer: `content` in the order of the text, and the same in the fields of SGLang's endpoints."""
    content, finish = parsed.candidate.content, parsed.candidate.finish
    said = "".join(part.text for part in content if isinstance(part, Text))
    calls = [part for part in content if isinstance(part, ToolCall)]
    return {
        "syntax": parsed.syntax,
        "content": [_part(part) for part in content],
        "finish_reason": None if finish is None else finish.reason,
        "text": said,
        "normal_text": said,
        "reasoning_text": "".join(part.text or "" for part in content if isinstance(part, Reasoning)),
        "calls": [
            {"tool_index": index, "name": call.name, "parameters": call.arguments} for index, call in enumerate(calls)
        ],
        "losses": [asdict(loss) for loss in losses],
    }


def _part(part: Part) -> JSONObject:
    match part:
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case Reasoning():
            return {"type": "reasoning", "text": part.text or ""}
        case Text():
            return {"type": "text", "text": part.text}
        case _:
            raise TypeError(f"a parser of text made a `{type(part).__name__}`")


def _tools(reader: Reader) -> Iterator[Tool]:
    """Yield the tools in the words of any dialect; those that a provider runs are none of the client's."""
    for index, item in enumerate(reader.take("tools", list) or ()):
        tool = Reader(item, f"{reader.at('tools')}[{index}]")
        if "functionDeclarations" in tool:
            for declared in tool.objects("functionDeclarations"):
                yield _tool(declared)
        elif "function" in tool:
            yield _tool(Reader(tool.take("function", dict), tool.at("function")))
        elif "name" in tool or tool.peek("type") in (None, "function", "custom"):
            yield _tool(tool)


def _tool(reader: Reader) -> Tool:
    name = reader.need("name", str)
    key = next((key for key in _SCHEMAS if key in reader), _SCHEMAS[0])
    schema = reader.take_any(key)
    if schema is not None and not isinstance(schema, dict | bool):
        raise expected(reader.at(key), "object", schema)
    description = reader.take_if("description", str)
    if reader.peek("type") == "custom":
        return Tool(name=name, description=description, kind="custom")
    return Tool(name=name, description=description, parameters=schema)
