"""What the answer must look like: the choice of a tool and the form of the output, as a grammar for the runtime.

A model this small cannot be asked for a form, it can only be held to it. Where it may or must call a tool, the grammar
lets it write nothing but `{"name": …, "arguments": …}`, or, where words will do too, `{"reply": …}`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.engine.failures import refused
from xenoglot.engine.grammar.free import free_object, free_text, written
from xenoglot.engine.grammar.gbnf import Rules, literal
from xenoglot.engine.grammar.keywords import wrong
from xenoglot.engine.grammar.schema import SchemaGrammar
from xenoglot.engine.turns import ends_in_results
from xenoglot.errors import FailureError
from xenoglot.model.request import Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON
    from xenoglot.model.request import OutputFormat, Request

MOST_TOOLS: Final = 256

TOOLS: Final = "You are a function calling assistant. You have these functions:"
CALL: Final = 'Reply only with a JSON object {"name": <function name>, "arguments": <arguments object>}.'
JSON_ONLY: Final = "Reply only with a JSON object."
VALID_JSON: Final = "Reply only with JSON that is valid for this schema:"
CALL_OR_REPLY: Final = (
    'Reply only with a JSON object {"name": <function name>, "arguments": <arguments object>}, '
    'or, if no function is of use, with {"reply": <your answer>}.'
)


class Branch(Struct, frozen=True):
    """One thing the answer may be: it begins with `prefix`, what counts follows, and one more `}` ends it.

    `form` is what becomes of it: arguments of the function `name`, the free text of the custom tool `name`, words that
    were written as a JSON string, or words as they are.
    """

    prefix: str
    form: Literal["arguments", "input", "reply", "value"]
    name: str = ""


class Constraint(Struct, frozen=True):
    """What an answer is held to, and what to tell the model about it.

    `branches` are what the grammar lets pass; none if that simply is the text of the answer.
    """

    grammar: str
    branches: tuple[Branch, ...] = ()
    instructions: str = ""


def constrain(request: Request, losses: Losses) -> Constraint | None:
    """Return what holds the answer of `request` to its form; `None` where any words will do.

    Takes up to a tenth of a second for the largest schemas.

    Raises:
        FailureError: the choice is impossible, or a schema is wrong; the failure names the tool or the format.
    """
    try:
        return _constrain(request, losses)
    except RecursionError:
        raise refused("$.tools" if request.tools else "$.response_format", "a schema is nested too deeply") from None


def _constrain(request: Request, losses: Losses) -> Constraint | None:
    choice = request.tool_choice or ToolChoice(mode="auto")
    tools = _offered(request, choice, losses)
    forced = choice.mode == "required"
    if forced and not tools:
        raise refused("$.tool_choice", "a tool must be called, and there is none")
    if not tools or (ends_in_results(request) and not forced):
        return _form(request.output, losses)
    rules = Rules()
    branches = [_call(rules, index, tool, losses) for index, tool in tools.items()]
    if not forced:
        branches.append(_reply(rules, request.output, losses))
    grammar = rules.text(" | ".join(f'{literal(branch.prefix)} {value} "}}"' for branch, value in branches))
    told = [TOOLS, *(_told(tool) for tool in tools.values()), CALL if forced else CALL_OR_REPLY]
    return Constraint(grammar, tuple(branch for branch, _ in branches), "\n".join(told))


def _offered(request: Request, choice: ToolChoice, losses: Losses) -> dict[int, Tool]:
    """Return the tools that may be called, by their place in the request."""
    known: dict[int, Tool] = {}
    for index, tool in enumerate(request.tools):
        if isinstance(tool, Tool):
            known[index] = tool
        else:
            losses.dropped(f"$.tools[{index}]", "tool", "only its provider runs it")
    if len(known) > MOST_TOOLS:
        raise refused("$.tools", f"found {len(known)} tools, expected at most {MOST_TOOLS}")
    names = {tool.name for tool in known.values()}
    for name in choice.names:
        if name not in names:
            raise refused("$.tool_choice", f"`{name[:64]}` is not among the tools")
    if choice.mode == "none":
        return {}
    return {index: tool for index, tool in known.items() if not choice.names or tool.name in choice.names}


def _call(rules: Rules, index: int, tool: Tool, losses: Losses) -> tuple[Branch, str]:
    start = f'{{"name": {written(tool.name)}, '
    if tool.kind == "custom":
        if tool.format is not None:
            losses.approximated(f"$.tools[{index}]", "format", "the embedded model writes free text")
        return Branch(f'{start}"input": ', "input", tool.name), free_text(rules)
    where = f"$.tools[{index}].parameters"
    unheld = _unheld(losses, where, strict=tool.strict is True)
    with _named(f"the parameters of the tool `{tool.name[:64]}`", where):
        arguments = SchemaGrammar(rules, _parameters(tool.parameters), "$", unheld).root()
    return Branch(f'{start}"arguments": ', "arguments", tool.name), arguments


def _parameters(schema: JSON) -> JSON:
    """Return the schema of a function's arguments, which are an object; none at all where nothing is said."""
    if schema is None or schema == {}:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        return schema
    if "type" in schema and schema["type"] != "object":
        wrong("$.type", schema["type"], "`object`")
    return {**schema, "type": "object"}


def _reply(rules: Rules, output: OutputFormat | None, losses: Losses) -> tuple[Branch, str]:
    prefix = '{"reply": '
    if output is None or output.kind == "text":
        return Branch(prefix, "reply"), free_text(rules)
    return Branch(prefix, "value"), _value(rules, output, losses)


def _form(output: OutputFormat | None, losses: Losses) -> Constraint | None:
    if output is None or output.kind == "text":
        return None
    rules = Rules()
    told = JSON_ONLY if output.kind == "json" else f"{VALID_JSON}\n{written(output.schema)}"
    return Constraint(rules.text(_value(rules, output, losses)), instructions=told)


def _value(rules: Rules, output: OutputFormat, losses: Losses) -> str:
    if output.kind == "json":
        return free_object(rules)
    unheld = _unheld(losses, "$.output.schema", strict=output.strict is not False)
    with _named("the schema of the output (`response_format`, `output_config`)", "$.response_format"):
        return SchemaGrammar(rules, output.schema, "$", unheld).root()


def _told(tool: Tool) -> str:
    """Return one tool as the model is told of it."""
    said = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return written({key: value for key, value in said.items() if value is not None})


def _unheld(losses: Losses, where: str, *, strict: bool) -> Callable[[str, str], None]:
    def note(path: str, keyword: str) -> None:
        if strict:
            raise refused(path, f"the model cannot be held to `{keyword}`; leave it out, or say `strict: false`")
        losses.approximated(where + path.removeprefix("$"), keyword, "the embedded model is not held to it")

    return note


@contextmanager
def _named(what: str, param: str) -> Generator[None]:
    """Say of which schema a failure tells."""
    try:
        yield
    except FailureError as error:
        failure = error.failure
        path = param + (failure.param or "$").removeprefix("$")
        raise FailureError(replace(failure, message=f"{what}: {failure.message}", param=path)) from None
