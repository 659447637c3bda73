"""The vectors of text: what models write, and what is to be made of it; read whole, or cut anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, convert

from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, Finished, Started, TextDelta
from xenoglot.model.fold import fold
from xenoglot.model.json import JSON
from xenoglot.model.request import Tool
from xenoglot.model.response import Finish, FinishReason, Response
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.stage import TextStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.text.payloads.repaired import Repair
    from xenoglot.text.syntax import Syntax

ROOT: Final = Path(__file__).parent.parent / "vectors" / "text"

Made: TypeAlias = dict[str, str]
"""`{"text": …}`, `{"reasoning": …}` or `{"call": …, "arguments": …}`, with the `id` that the model wrote."""


class Declaration(Struct, frozen=True):
    """A tool of `tools.json`."""

    name: str
    description: str | None = None
    parameters: JSON = None


class Difference(Struct, frozen=True, kw_only=True):
    """What the parser of a server makes of a text in its own test `case`, and why (`why`) ours makes something else."""

    case: str
    parts: list[Made]
    why: str


class Vector(Struct, frozen=True, kw_only=True):
    """One text, where it is from (`note`), and what is to be made of it.

    `marker` is whether the family can be told by the markers alone, `model` a name of a model that tells it. `thinking`
    is whether the request asked for thoughts. `agrees` names, for each server, the test case that has this text and
    expects the same; `differs` the one that expects something else.
    """

    note: str
    text: str
    parts: list[Made]
    model: str | None = None
    thinking: bool | None = None
    agrees: dict[str, str] = {}
    differs: dict[str, Difference] = {}
    tools: list[Declaration] | None = None
    finish: FinishReason = "stop"
    ends: FinishReason | None = None
    losses: list[tuple[str, str, str]] = []
    repair: str | None = None
    marker: bool = True

    @property
    def ending(self) -> FinishReason:
        """Why the answer is to end."""
        called = any("call" in part for part in self.parts)
        return self.ends or ("tool_calls" if called and self.finish == "stop" else self.finish)

    @property
    def outcome(self) -> Outcome:
        """All that is to be made of it."""
        return Outcome(self.parts, self.ending, self.losses)


class Outcome(Struct, frozen=True):
    """What was made of a text."""

    parts: list[Made]
    ends: FinishReason | None
    losses: list[tuple[str, str, str]] = []


TOOLS: Final = convert(json.loads((ROOT / "tools.json").read_text(encoding="utf-8")), list[Declaration])


def names() -> Iterator[tuple[str, str]]:
    """Yield the row and the case of every vector."""
    for path in sorted(ROOT.glob("*/*.json")):
        yield path.parent.name, path.stem


def load(row: str, case: str) -> Vector:
    """Return the vector `case` of `row`."""
    said = json.loads((ROOT / row / f"{case}.json").read_text(encoding="utf-8"))
    return convert(said, Vector)


def declared(tools: Iterable[Declaration] | None = None) -> DeclaredTools:
    """Return `tools`, or those that every vector means that says nothing of them."""
    chosen = TOOLS if tools is None else tools
    return DeclaredTools.of([Tool(name=one.name, parameters=one.parameters) for one in chosen])


def events(chunks: Iterable[str], finish: FinishReason = "stop") -> Iterator[Event]:
    """Yield a stream that says `chunks`."""
    yield Started()
    yield BlockStarted(part=Text(text=""))
    for chunk in chunks:
        yield TextDelta(text=chunk)
    yield BlockEnded()
    yield Finished(finish=Finish(reason=finish, raw="as it came"))


def made(  # noqa: PLR0913  what a vector tells
    syntax: Syntax,
    known: DeclaredTools,
    chunks: Sequence[str],
    finish: FinishReason = "stop",
    repair: Repair | None = None,
    *,
    thinking: bool | None = None,
) -> Outcome:
    """Return what `syntax` makes of a lawful stream of `chunks`; what it makes has to be lawful too."""
    losses = Losses()
    stage = TextStage(
        syntax,
        known,
        lambda candidate, number: f"call_{candidate}_{number}",
        losses,
        repair=repair,
        thinking=thinking,
    )
    response = fold(through(events(chunks, finish), Pipeline(stage, Grammar())))
    assert isinstance(response, Response)
    answer = response.candidates[0]
    assert answer.finish is not None
    told: list[tuple[str, str, str]] = [(loss.where, loss.what, loss.how) for loss in losses]
    return Outcome(_joined(answer.content), answer.finish.reason, told)


def _joined(content: Iterable[Part]) -> list[Made]:
    """Return the parts, texts that follow each other as one."""
    parts: list[Made] = []
    for part in content:
        said = _said(part)
        if "text" in said and parts and "text" in parts[-1]:
            parts[-1] = {"text": parts[-1]["text"] + said["text"]}
        elif said.get("text") != "":
            parts.append(said)
    return parts


def _said(part: Part) -> Made:
    match part:
        case Text():
            return {"text": part.text}
        case Reasoning():
            return {"reasoning": part.text or ""}
        case ToolCall():
            said = {"call": part.name, "arguments": part.arguments}
            return said if part.id.startswith("call_") else {**said, "id": part.id}
        case _:
            return {"part": type(part).__name__}
