"""What a request or an answer says, apart from how: its things, each with its path, in a form that can be compared."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from tests.laws.paths import inside, is_field, places
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Loss
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    Extra,
    File,
    HostedCall,
    HostedResult,
    Image,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.context import ClearThinking, ContextManagement
from xenoglot.model.hosted import HostedTool
from xenoglot.model.json import JSON
from xenoglot.model.request import Message, Request, RequestTool, Thinking, Tool
from xenoglot.model.response import Candidate, Response

ROLES = {"developer": "system", "tool": "user"}
"""Respelling: two roles of one meaning. Results of tools stand in turns of their own, or in the user's."""

NO_PARAMETERS = {"type": "object", "properties": {}}
"""Respelling: a function of which no parameters were said takes none."""

DEFAULTS: dict[str, tuple[JSON, ...]] = {
    "$.store": (False,),
    "$.stream": (False,),
    "$.cache_key": ("",),
    "$.context_management.edits": ((), []),
    "$.sampling.n": (1,),
    "$.sampling.temperature": (1,),
    "$.sampling.top_p": (1,),
    "$.sampling.top_k": (-1, 0),
    "$.sampling.min_p": (0,),
    "$.sampling.repetition_penalty": (1,),
    "$.sampling.frequency_penalty": (0,),
    "$.sampling.presence_penalty": (0,),
    "$.sampling.logprobs": (False,),
    "$.sampling.top_logprobs": (0,),
    "$.output.kind": ("text",),
    "$.media.modalities": (("text",), ["text"]),
    "$.usage.input_audio": (0,),
    "$.usage.output_audio": (0,),
    "$.usage.cache_write_1h": (0,),
    "$.usage.web_searches": (0,),
    "$.usage.page_fetches": (0,),
    "$.usage.estimated": (False,),
    "$.parallel_tool_calls": (True,),
    "$.prompt.best_of": (1,),
    "$.prompt.echo": (False,),
    "$.prompt.suffix": ("",),
    "$.tool_choice.mode": ("auto",),
    "$.tool_choice.names": ((),),
    "$.tool_choice.kind": ("function",),
}
"""Respelling: what is the case where nothing is said."""

ALWAYS = {
    "$.stream_usage",
    "$.context_management.resumes",
    "$.candidates.finish.raw",
    "$.candidates.finish.dialect",
}
"""Not compared: what some dialects always send; what follows from the turns; the word of a wire beside ours."""

LISTS = {"$.messages", "$.tools"}
CONTENT_FIELDS = {name for part in (Message, Tool, Text, ToolCall) for name in part.__struct_fields__} - {"role"}
"""A loss of one of these fields somewhere in a list is one of that field alone."""

WHOLE = {"role", "content"}
"""Fields of a turn whose loss is one of all that it says."""

NAMED = {"prefill", "order", "turn", "turns"}
"""What losses name that is no field: nothing is gone for it, and it excuses nothing that is."""

SPOKEN = ("$.messages[", "$.candidates[")

_INDEX = re.compile(r"\[\d+\]")


class Thing(Struct, frozen=True):
    """One thing that a request or an answer says; a run of parts that is one thing stands at several `paths`.

    `fields` are those of the part that make it up; what else the part says are things of their own. `words` are
    what it is and says, where that is text.
    """

    paths: tuple[str, ...]
    said: bytes
    fields: tuple[str, ...] = ()
    words: tuple[str, str] = ("", "")

    @property
    def path(self) -> str:
        return self.paths[0]

    @property
    def place(self) -> str:
        """The kind of place where it stands."""
        return _INDEX.sub("", self.path)

    @property
    def kind(self) -> tuple[str, bytes]:
        """What it is and says, wherever it stands."""
        return self.place, self.said

    def may_vanish(self, loss: Loss) -> bool:
        """Whether nothing need be left of it where it was: something near what a part said beside its words must.

        Unless that is told of the answer it is in, where the dialect keeps such things together.
        """
        return loss.how != "approximated" or self._is_part(self.path) or ".content[" not in loss.where

    def covered_by(self, loss: Loss, whole: Struct) -> bool:
        """Whether `loss`, which `whole` met with, tells of this thing, of something in it, or of what it is in."""
        found = [loss.where] if loss.what in WHOLE else places(whole, loss.where, loss.what)
        return any(self._covered(path, replace(loss, where=where), whole) for path in self.paths for where in found)

    def _covered(self, path: str, loss: Loss, whole: Struct) -> bool:
        named = f"{loss.where}.{loss.what}"
        if inside(path, named) or (inside(named, path) and self._has(named.removeprefix(path))):
            return True
        if loss.what in NAMED:
            return False
        if loss.where in LISTS and loss.what in CONTENT_FIELDS:
            return inside(path, loss.where) and (loss.what in self.fields or path.endswith(f".{loss.what}"))
        if loss.where == "$" or (loss.what not in WHOLE and is_field(whole, loss.where, loss.what)):
            return False
        if inside(path, loss.where):
            return loss.how == "dropped" or self._is_part(path) or path.rpartition(".")[2].startswith(loss.what)
        return inside(loss.where, path) and self._has(loss.where.removeprefix(path))

    def _is_part(self, path: str) -> bool:
        """Whether this is a part, a tool, or a field of the whole, and not one of what a part says beside its words.

        What a part became tells nothing of what it said beside them: that has losses of its own.
        """
        return bool(self.fields) or not path.startswith(SPOKEN)

    def _has(self, place: str) -> bool:
        """Whether what is at `place` in the part belongs to this thing, and is none of its own."""
        name = place.removeprefix(".").partition(".")[0].partition("[")[0]
        return not self.fields or name in self.fields


def things(request: Request) -> Iterator[Thing]:
    """Yield all that a request says. Where one turn ends and the next of the same speaker begins is a respelling."""
    for index, message in enumerate(request.messages):
        where = f"$.messages[{index}]"
        role = ROLES.get(message.role, message.role)
        for number, part in enumerate(message.content):
            yield from _part(f"{where}.content[{number}]", part, role)
        if message.name is not None:
            yield Thing((f"{where}.name",), encode(message.name))
        yield from _extras(where, message.extra)
    for index, tool in enumerate(request.tools):
        yield from _tool(f"$.tools[{index}]", tool)
    for name in Request.__struct_fields__:
        if name not in {"messages", "tools", "extra"}:
            value = getattr(request, name)
            yield from _fields(f"$.{name}", _said(value))
    yield from _extras("$", request.extra)


def _said(value: object) -> object:
    match value:
        case Thinking():
            return _thought(value)
        case ContextManagement():
            return _acting(value)
        case _:
            return value


def _acting(context: ContextManagement) -> ContextManagement | None:
    """Respelling: an edit that keeps all thinking changes nothing."""
    edits = tuple(edit for edit in context.edits if not (isinstance(edit, ClearThinking) and edit.keep == "all"))
    left = replace(context, edits=edits)
    return None if left == ContextManagement() else left


def _thought(thinking: Thinking) -> Thinking:
    """Respelling: thinking is off, or its effort is none; it is on where is said how much."""
    if thinking == Thinking(effort="none"):
        return Thinking(mode="disabled")
    said = thinking.effort not in (None, "none") or thinking.budget_tokens is not None
    return replace(thinking, mode=None) if said and thinking.mode == "enabled" else thinking


def answered(response: Response) -> Iterator[Thing]:
    """Yield all that an answer says. Where one text ends and the next begins is a respelling."""
    for index, candidate in enumerate(response.candidates):
        where = f"$.candidates[{index}]"
        for paths, part in _joined(where, candidate.content):
            yield from _part(paths[0], _unmarked(part), str(index), paths)
        if candidate.finish is not None:
            yield from _fields(f"{where}.finish", replace(candidate.finish, reason=_reason(candidate)))
        yield from _extras(where, candidate.extra)
    for name in ("id", "model", "service_tier", "usage"):
        yield from _fields(f"$.{name}", getattr(response, name))
    yield from _extras("$", response.extra)


def _unmarked(part: Part) -> Part:
    """Respelling: there is nothing to cache in an answer."""
    return replace(part, cache=None) if isinstance(part, Text | ToolCall) else part


def _reason(candidate: Candidate) -> str | None:
    """Respelling: what stops beside calls waits for their results, beside a refusal or a summary it is one."""
    reason = candidate.finish.reason if candidate.finish is not None else None
    if reason == "compaction" and any(isinstance(part, CompactedHistory) for part in candidate.content):
        return "stop"
    if reason != "stop":
        return reason
    if any(isinstance(part, ToolCall) for part in candidate.content):
        return "tool_calls"
    refusals = [part.text for part in candidate.content if isinstance(part, Refusal)]
    return reason if not refusals else "refusal" if any(refusals) else None


def _joined(where: str, parts: tuple[Part, ...]) -> Iterator[tuple[tuple[str, ...], Part]]:
    """Yield the parts, runs of texts, refusals or unsealed thoughts as one; what has no words parts no run."""
    runs: list[tuple[tuple[str, ...], Part]] = []
    for number, part in enumerate(parts):
        path = f"{where}.content[{number}]"
        last = next((place for place in range(len(runs) - 1, -1, -1) if not _silent(runs[place][1])), None)
        joined = None if last is None else _join(runs[last][1], part)
        if last is None or joined is None:
            runs.append(((path,), part))
        else:
            runs[last] = ((*runs[last][0], path), joined)
    return iter(runs)


def _silent(part: Part) -> bool:
    return isinstance(part, Opaque) and part.text is None


def _is_sealed(part: Reasoning) -> bool:
    return part.signature is not None or part.encrypted is not None


def _join(before: Part, part: Part) -> Part | None:
    """Return two parts as one, where it makes no difference."""
    match before, part:
        case Text(), Text():
            citations, logprobs = (*before.citations, *part.citations), (*before.logprobs, *part.logprobs)
            return replace(before, text=before.text + part.text, citations=citations, logprobs=logprobs)
        case Refusal(), Refusal():
            return replace(before, text=before.text + part.text, logprobs=(*before.logprobs, *part.logprobs))
        case Reasoning(summary=None), Reasoning(summary=None) if not (_is_sealed(before) or _is_sealed(part)):
            return replace(before, text=(before.text or "") + (part.text or ""))
        case _:
            return None


MADE_OF: dict[type, tuple[str, ...]] = {
    Text: ("text",),
    Image: ("source",),
    Audio: ("source", "format", "transcript"),
    Video: ("source",),
    File: ("source",),
    Reasoning: ("text", "summary"),
    ToolCall: ("id", "name", "namespace", "arguments", "kind"),
    ToolResult: ("call_id", "content"),
    HostedCall: ("kind", "name", "arguments", "server"),
    HostedResult: ("kind", "content", "error"),
    HostedTool: ("kind", "server"),
    Refusal: ("text",),
    CompactedHistory: ("text", "encrypted"),
    Opaque: ("dialect", "data", "text"),
    Tool: ("name", "namespace", "description", "parameters", "kind"),
}
"""Part -> the fields without which it is another; the rest it can lose one by one."""

BOOKKEEPING = {
    Text: (),
    Audio: ("id", "expires_at"),
    Reasoning: ("id", "origin", "redacted"),
    ToolCall: ("item_id",),
    ToolResult: ("name", "kind"),
    CompactedHistory: ("id", "origin", "replaces"),
    HostedCall: ("id",),
    HostedResult: ("call_id", "name"),
}
"""Respelling: what a wire keeps beside a part for its own use, or what follows from the rest."""


def _part(path: str, part: Part, speaker: str, paths: tuple[str, ...] = ()) -> Iterator[Thing]:
    plain = _plain(part)
    made_of = MADE_OF[type(part)]
    core = {name: _bare(getattr(plain, name)) for name in made_of}
    if any(said not in (None, "", []) for said in core.values()):  # respelling: empty text says nothing
        kind = type(part).__name__
        words = (kind, (part.text or "") if isinstance(part, Text | Reasoning | Refusal) else "")
        yield Thing(paths or (path,), encode([speaker, kind, core], order="sorted"), made_of, words)
    for name in plain.__struct_fields__:
        if name not in {*made_of, *BOOKKEEPING.get(type(part), ()), "extra", "text"}:
            for said in value if isinstance(value := getattr(plain, name), tuple) else (value,):
                if said is not None:
                    places = tuple(f"{at}.{name}" for at in paths or (path,))
                    yield Thing(places, encode(_bare(said), order="sorted"))
    yield from _extras(path, getattr(part, "extra", None))


def _tool(path: str, tool: RequestTool) -> Iterator[Thing]:
    yield from _part(path, tool, "tool")  # type: ignore[arg-type]


def _extras(path: str, extra: Extra | None) -> Iterator[Thing]:
    """Yield the fields that only their own dialect knows."""
    for name, value in ({} if extra is None else extra.fields).items():
        if value is not None:
            yield Thing((f"{path}.{name}",), encode(value, order="sorted"))


def settled(response: Response) -> Response:
    """Return the answer without what a stream may say otherwise than the whole.

    That is the spelling of arguments (some wires hold the text, some the value), and what says nothing: nulls that were
    carried, and the spellings of understood fields.
    """
    settled_response: Response = _settled(response)
    return settled_response


def _settled(value: Any) -> Any:  # noqa: ANN401  whatever stands in a struct
    match value:
        case Extra():
            fields = {name: item for name, item in value.fields.items() if item is not None}
            return Extra(dialect=value.dialect, fields=fields) if fields else None
        case Struct():
            if isinstance(value, HostedCall) or (isinstance(value, ToolCall) and value.kind == "function"):
                value = replace(value, arguments=_value(value.arguments))
            return replace(value, **{name: _settled(getattr(value, name)) for name in value.__struct_fields__})
        case tuple():
            return tuple(_settled(item) for item in value)
        case _:
            return value


def _fields(path: str, value: object) -> Iterator[Thing]:
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            if name == "extra":
                yield from _extras(path, getattr(value, name))
            else:
                yield from _fields(f"{path}.{name}", getattr(value, name))
    elif value not in (None, {}, *DEFAULTS.get(path, ())) and _INDEX.sub("", path) not in ALWAYS:
        said = 0.0 if path == "$.sampling.temperature" and value == 0 else value  # respelling: 0 is 0.0
        yield Thing((path,), encode(said, order="sorted"))  # respelling: nothing in a map


def _plain(part: Part | Tool) -> Part | Tool:
    """Return a part or a tool as it can be compared."""
    match part:
        case Tool(kind="function", parameters=None):
            part = replace(part, parameters=NO_PARAMETERS)
        case ToolCall():
            part = replace(_settled(part), item_id=None)
        case HostedCall(kind="web_fetch"):  # respelling: a page fetch is one tool, whatever a wire calls it
            part = replace(_settled(part), name=None)
        case HostedCall():
            part = _settled(part)
        case ToolResult():  # respelling: not an error, or nothing said of errors; empty text says nothing
            content = tuple(inner for inner in part.content if getattr(inner, "text", inner))
            part = replace(part, is_error=part.is_error or None, content=content)
        case Opaque():
            part = replace(part, text=None)
        case Reasoning():
            part = replace(part, origin=None, text=part.text or None)
        case _:
            pass  # the same on every wire
    return part


def _value(arguments: str) -> str:
    """Respelling: the blanks between the tokens of arguments, and nothing where there are none (pitfall-94)."""
    try:
        return encode(decode_json(arguments or "{}")).decode()
    except WireError:
        return arguments


def _bare(value: object) -> JSON:
    """Return a struct as JSON, without its extras and without what is not said."""
    if isinstance(value, Extra):
        return None
    if isinstance(value, Struct):
        kind = type(value).__name__
        fields = {name: _bare(getattr(value, name)) for name in value.__struct_fields__}
        return [kind, {name: said for name, said in fields.items() if said not in (None, [])}]
    if isinstance(value, tuple):
        return [_bare(item) for item in value]
    return value
