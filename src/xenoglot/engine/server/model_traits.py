"""Traits of the loaded weights: tool support of the chat template, and syntax of calls and reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.engine.prompting.call_formats import CallFormat, form_of, texts_around
from xenoglot.text import registry
from xenoglot.text.registry import AUTO, OFF
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax

if TYPE_CHECKING:
    from collections.abc import Iterable

SWITCH: Final = "enable_thinking"
"""What chat templates that can have their model not think ask for."""


class ModelTraits(Struct, frozen=True, kw_only=True):
    """How a model generates calls and reasoning.

    `tools`: its chat template describes tools. `syntax` is the syntax of calls and reasoning, `form` the call format if
    a grammar can enforce it, `thoughts` the tags of reasoning.
    """

    tools: bool = False
    syntax: Syntax | None = None
    form: CallFormat | None = None
    thoughts: ReasoningSyntax | None = None

    @property
    def otherwise(self) -> bool:
        """Whether calls may begin in other ways than in `form`, too: they are read, but nothing holds them."""
        held, row = self.form, self.syntax
        forms = () if row is None else (*row.calls, *row.slips)
        return held is not None and any(held.marker not in calls.markers for calls in forms)


UNTAUGHT: Final = ModelTraits()
"""Weights without training for calls or reasoning."""


class ChatTemplate(Struct, frozen=True, kw_only=True):
    """A chat template: its text, whether it describes tools, and the ends of its prompts.

    `ends` are for reasoning switched on, switched off, or not set (`None`); empty if the model does not reason.
    """

    text: str = ""
    tools: bool = False
    ends: Mapping[bool | None, str] = {}


def traits_of(template: ChatTemplate, model: str, policy: str = AUTO) -> ModelTraits:
    """Return how the weights `model` with this chat template speak; `policy` is a row's name, `auto` or `off`."""
    row = _row(template, model, policy)
    thoughts = None if policy == OFF else _thoughts(template, row)
    if row is None:
        return ModelTraits(thoughts=thoughts)
    known = row.own is None and row.name != AUTO and template.tools
    forms = [form for calls in (_in(template, row) if known else ()) if (form := form_of(calls)) is not None]
    return ModelTraits(
        tools=template.tools,
        syntax=replace(row, thoughts=() if thoughts is None else (thoughts,)),
        form=forms[0] if forms else None,
        thoughts=thoughts,
    )


def thinks(manner: ModelTraits, template: ChatTemplate, *, wanted: bool | None) -> ReasoningSyntax | None:
    """Return the tags of the reasoning of an answer; `wanted` is whether reasoning is turned on."""
    tags = manner.thoughts
    return None if tags is None else replace(tags, implied=template.ends.get(wanted, "").rstrip().endswith(tags.open))


def has_thoughts(text: str) -> bool:
    """Return whether a chat template names the tags of reasoning."""
    return any(_both(text, tags) for tags in _all_thoughts())


def _row(template: ChatTemplate, model: str, policy: str) -> Syntax | None:
    if policy not in {AUTO, OFF}:
        return registry.get(policy)
    if policy == OFF or not template.tools:
        return None
    return registry.for_model(model) or _likeliest(template.text)


def _likeliest(text: str) -> Syntax:
    """Return the row of whose calls the most stands in a chat template, its marker at least; `auto` if it is none's.

    Of rows with the same calls it is the one that names them first.
    """
    best: tuple[tuple[int, int], Syntax] = ((0, 0), registry.get(AUTO))
    for row in map(registry.get, registry.names()):
        for index, calls in enumerate(row.calls):
            found = [piece for piece in (*calls.markers[:1], *texts_around(calls)) if piece in text]
            score = (sum(map(len, found)), -index)
            if score > best[0] and calls.markers and calls.markers[0] in found:
                best = (score, row)
    return best[1]


def _in(template: ChatTemplate, row: Syntax) -> list[CallSyntax]:
    """Return the forms of the row, those of which the template speaks first."""
    return sorted(row.calls, key=lambda calls: not any(marker in template.text for marker in calls.markers))


def _thoughts(template: ChatTemplate, row: Syntax | None) -> ReasoningSyntax | None:
    """Return the reasoning syntax of a model with this template: that of its row, or the template's."""
    known = [*(row.thoughts if row is not None else ()), *_all_thoughts()]
    return next((tags for tags in known if _both(template.text, tags)), None)


def _both(text: str, tags: ReasoningSyntax) -> bool:
    return any(tag in text for tag in tags.open) and any(tag in text for tag in tags.close)


def _all_thoughts() -> Iterable[ReasoningSyntax]:
    return (tags for name in registry.names() for tags in registry.get(name).thoughts)
