"""Compiles tool choice and output format of a request (JSON, choices, patterns, grammars) to a grammar.

A model this small does not follow format instructions reliably, so the grammar enforces them. A model without tool
training, if it may or must call a tool, can generate only `{"name": …, "arguments": …}` or, if text is allowed too,
`{"reply": …}`. A model with tool training generates free text; its family's marker starts a call, and the call is
constrained to the tools.

The runtime supports grammars that start at a marker (`grammar_lazy`). But a token may contain the end of a marker and
more, which no grammar takes back: such a request fails. Free text is therefore part of the grammar, as all texts
without the marker.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.requests.custom_tools import WRAPPED
from xenoglot.codec.requests.names import qualified
from xenoglot.engine.decoding.tool_calls import Branch
from xenoglot.engine.extras import demanded_format
from xenoglot.engine.grammar.ambiguity import too_ambiguous
from xenoglot.engine.grammar.client_grammar import ClientGrammarError, translated
from xenoglot.engine.grammar.free_output import (
    BLANKS,
    free_object,
    free_text,
    thought,
    words_not_from,
    words_until,
    written,
)
from xenoglot.engine.grammar.gbnf import GrammarRules, GrammarTooLargeError, either, literal, repeat
from xenoglot.engine.grammar.keywords import wrong
from xenoglot.engine.grammar.patterns import Bounds, PatternError, translate
from xenoglot.engine.grammar.schema import SchemaGrammar
from xenoglot.engine.prompting.call_formats import PLAIN
from xenoglot.engine.prompting.template_messages import function
from xenoglot.engine.prompting.text_turns import ends_in_results
from xenoglot.engine.sampling import DEFAULT_MAX_TOKENS
from xenoglot.engine.server.model_traits import UNTAUGHT
from xenoglot.errors import FailureError
from xenoglot.model.request import Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.engine.extras import Demand
    from xenoglot.engine.prompting.call_formats import CallFormat
    from xenoglot.engine.server.model_traits import ModelTraits
    from xenoglot.model.json import JSON
    from xenoglot.model.request import OutputFormat, Request


MOST_CHOICES: Final = 256
LONGEST_CHOICES: Final = 64 * 1024
"""Characters of all choices together."""

AMBIGUOUS: Final = "too much in it can begin alike: the runtime would follow all of it at once"


def format_expression(rules: GrammarRules, demand: Demand) -> str:
    """Return the expression for the form that a request demands.

    Raises:
        FailureError: it is wrong, too large or too ambiguous for the runtime.
    """
    try:
        root = rules.add(_expression(rules, demand))
    except (PatternError, ClientGrammarError) as error:
        raise refused(demand.path, str(error)) from None
    except GrammarTooLargeError:
        raise refused(demand.path, "too large for the embedded model") from None
    if too_ambiguous(rules.bodies, root):
        raise refused(demand.path, AMBIGUOUS)
    return root


def _expression(rules: GrammarRules, demand: Demand) -> str:
    match demand.kind, demand.value:
        case "regex", str(pattern):
            return translate(pattern, Bounds(), plain=True).text
        case "grammar", str(text):
            return translated(rules, text)
        case _, choices:
            if len(choices) > MOST_CHOICES or sum(map(len, choices)) > LONGEST_CHOICES:
                raise GrammarTooLargeError
            return either(map(literal, choices))


MOST_TOOLS: Final = 256
MOST_CALLS: Final = 8
MOST_UNTAUGHT_CALLS: Final = 4
"""How many calls may follow each other in one answer: small models go round in circles, and would never end; one that
has not learnt to call does so soon."""

CHARACTERS_PER_TOKEN: Final = 3
"""For reasoning; a little less than in English, so that the bound comes before that of the answer."""

TOOLS: Final = "You are a function calling assistant. You have these functions:"
CALL: Final = 'Reply only with a JSON object {"name": <function name>, "arguments": <arguments object>}.'
JSON_ONLY: Final = "Reply only with a JSON object."
VALID_JSON: Final = "Reply only with JSON that is valid for this schema:"
CALL_OR_REPLY: Final = (
    'Reply only with a JSON object {"name": <function name>, "arguments": <arguments object>}, '
    'or, if no function is of use, with {"reply": <your answer>}.'
)


class Constraint(Struct, frozen=True):
    """The grammar of an answer, and the text about it for the prompt.

    `grammar` is "" for an unconstrained answer. `branches` are the alternatives of our own grammar; empty if the text
    is the answer itself, or is written in the syntax of the model's family. `told` are the tools that the model's own
    template describes, `instructions` is added to the system prompt.
    """

    grammar: str = ""
    branches: tuple[Branch, ...] = ()
    instructions: str = ""
    told: tuple[Tool, ...] = ()

    @property
    def calls(self) -> bool:
        """Whether there may be calls in the answer."""
        return bool(self.branches or self.told)


def constrain(
    request: Request, losses: Losses, manner: ModelTraits = UNTAUGHT, longest: int = DEFAULT_MAX_TOKENS
) -> Constraint | None:
    """Return what holds the answer of `request` to its form; `None` where any words will do.

    `manner` has the model's formats. If it reasons before a constrained answer, the reasoning may take half of the
    `longest` answer, in tokens. Takes up to a tenth of a second for the largest schemas.

    Raises:
        FailureError: the choice is impossible, or a schema is wrong; the failure names the tool or the format.
    """
    try:
        return _Constraining(request, losses, manner, longest).constraint()
    except RecursionError:
        raise refused("$.tools" if request.tools else "$.response_format", "a schema is nested too deeply") from None


class _Constraining:
    """Compiles the constraint of one request."""

    def __init__(self, request: Request, losses: Losses, manner: ModelTraits, longest: int) -> None:
        self._request = request
        self._losses = losses
        self._manner = manner
        self._longest = longest
        self._rules = GrammarRules()
        self._forced = request.tool_choice is not None and request.tool_choice.mode == "required"
        self._output = None if request.output is None or request.output.kind == "text" else request.output
        self._demand = demanded_format(request)

    def constraint(self) -> Constraint | None:
        tools = _offered(self._request, self._request.tool_choice or ToolChoice(mode="auto"), self._losses)
        form = self._manner.form
        if self._forced and not tools:
            raise refused("$.tool_choice", "a tool must be called, and there is none")
        if self._demand is not None:
            if tools:
                raise refused(self._demand.path, "tools may be called, and a call has a form of its own")
            return Constraint(self._thoughtful(format_expression(self._rules, self._demand)))
        if not tools:
            return self._formed()
        if form is not None and (form.marker or self._forced or self._output is None):
            return self._by_template(form, tools)
        if self._manner.tools and form is None and not self._forced and self._output is None:
            return self._unheld(tools)
        if ends_in_results(self._request) and not self._forced:
            return self._formed()
        return self._in_plain_json(tools)

    def _unheld(self, tools: dict[int, Tool]) -> Constraint:
        """Leave a model free whose calls no grammar holds."""
        self._note_unheld(tools, "no grammar holds the calls of this family of models")
        return Constraint(told=tuple(tools.values()))

    def _note_unheld(self, tools: dict[int, Tool], why: str) -> None:
        if self._request.parallel_tool_calls is False:
            self._losses.approximated("$", "parallel_tool_calls", why)
        for index, tool in tools.items():
            if tool.strict:
                self._losses.approximated(f"$.tools[{index}]", "strict", why)

    def _formed(self) -> Constraint | None:
        """Constrain the text to the form of the output, if one is requested."""
        if self._output is None:
            return None
        grammar = self._thoughtful(_value(self._rules, self._output, self._losses))
        return Constraint(grammar, instructions=_described(self._output))

    def _in_plain_json(self, tools: dict[int, Tool]) -> Constraint:
        """Hold a model that knows no calls to ours: one object in a line for each, or one with its reply."""
        branches, ways = self._calls(PLAIN, tools)
        if not self._forced:
            branch, value = _reply(self._rules, self._output, self._losses)
            branches.append(branch)
            ways = f"{ways} | {literal(branch.prefix)} {value} {literal(branch.foot)}"
        told = [TOOLS, *(written(function(tool)) for tool in tools.values()), CALL if self._forced else CALL_OR_REPLY]
        return Constraint(self._rules.text(ways), tuple(branches), "\n".join(told))

    def _by_template(self, form: CallFormat, tools: dict[int, Tool]) -> Constraint:
        """Describe the tools with the model's own template, and constrain it to the calls of its training."""
        branches, calls = self._calls(form, tools)
        whole, told = _row(form.lead, calls), tuple(tools.values())
        if self._forced:
            return Constraint(self._thoughtful(whole), told=told)
        if self._output is not None:
            value = _value(self._rules, self._output, self._losses)
            return Constraint(self._thoughtful(f"{whole} | {value}"), (), _described(self._output), told)
        if form.marker:
            if self._manner.otherwise:
                self._note_unheld(tools, "no grammar holds the other ways in which this family of models calls")
            return Constraint(self._free(form, f"{BLANKS} {_row(form.lead[1:], calls)}"), told=told)
        words = words_not_from(self._rules, {(*form.lead, branch.prefix)[0][0] for branch in branches})
        return Constraint(self._thoughtful(f"{whole} | {words}"), told=told)

    def _calls(self, form: CallFormat, tools: dict[int, Tool]) -> tuple[list[Branch], str]:
        """Return what the calls begin with, and the expression for one of them, or several."""
        found = [self._call(form, index, tool) for index, tool in tools.items()]
        one = self._rules.add(
            either(f"{literal(branch.prefix)} {arguments} {literal(branch.foot)}" for branch, arguments in found)
        )
        further = self._most(form) - 1
        gap = "" if "".join(form.joint).isspace() else BLANKS
        more = repeat(f"({gap} {_row(form.joint, one)})", 0, further) if further else ""
        return [branch for branch, _ in found], _row((), f"{one} {more}", form.tail)

    def _most(self, form: CallFormat) -> int:
        """Return the most calls, if the request does not set whether there may be several.

        A client that names a tool needs that call; a model that was not trained for calls would only repeat it.
        """
        choice, several = self._request.tool_choice, self._request.parallel_tool_calls
        named = choice is not None and choice.mode == "required" and len(choice.names) == 1
        if not (several if several is not None else self._manner.tools and not named):
            return 1
        return MOST_UNTAUGHT_CALLS if form is PLAIN else MOST_CALLS

    def _call(self, form: CallFormat, index: int, tool: Tool) -> tuple[Branch, str]:
        head, foot = form.spell(qualified(tool.name, tool.namespace))
        branch = Branch(head, "arguments", tool.name, tool.namespace, foot)
        if tool.kind == "custom":
            if tool.format is not None:
                self._losses.approximated(f"$.tools[{index}]", "format", "the embedded model writes free text")
            wrapped = replace(branch, prefix=f'{head}{{"{WRAPPED}": ', form="input", foot="}" + foot)
            return wrapped, free_text(self._rules)
        where = f"$.tools[{index}].parameters"
        unheld = _unheld(self._losses, where, strict=tool.strict is True)
        with _named(f"the parameters of the tool `{tool.name[:64]}`", where):
            arguments = SchemaGrammar(self._rules, _parameters(tool.parameters), "$", unheld).root()
        return branch, arguments

    def _thoughtful(self, value: str) -> str:
        """Return the grammar for `value`; a model that thinks may do so before, and comes to an end with it."""
        tags = self._manner.thoughts
        if tags is None:
            return self._rules.text(value)
        longest = self._longest * CHARACTERS_PER_TOKEN // 2
        before = thought(self._rules, "" if tags.implied else tags.open[0], tags.close[0], longest)
        return self._rules.text(f"{before if tags.implied else f'({before})?'} ({value})")

    def _free(self, form: CallFormat, calls: str) -> str:
        """Return the grammar for free reasoning and text, in which the form's marker is the beginning of `calls`."""
        tags, words = self._manner.thoughts, words_until(self._rules, form.marker, calls, form.place)
        if tags is None:
            return self._rules.text(words)
        thinking = words_until(self._rules, tags.close[0], words)
        return self._rules.text(thinking if tags.implied else f"{literal(tags.open[0])} {thinking} | {words}")


def _row(before: Sequence[str], middle: str, after: Sequence[str] = ()) -> str:
    """Return the expression for an expression between literals, with optional white space around visible ones."""
    started = [f"{literal(text)} {BLANKS if text.strip() else ''}" for text in before]
    ended = [f"{BLANKS if text.strip() else ''} {literal(text)}" for text in after]
    return " ".join([*started, middle, *ended])


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


def _parameters(schema: JSON) -> JSON:
    """Return the schema of a function's arguments, which are an object; without a schema it has no properties."""
    if schema is None or schema == {}:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        return schema
    if "type" in schema and schema["type"] != "object":
        wrong("$.type", schema["type"], "`object`")
    return {**schema, "type": "object"}


def _reply(rules: GrammarRules, output: OutputFormat | None, losses: Losses) -> tuple[Branch, str]:
    prefix = '{"reply": '
    if output is None or output.kind == "text":
        return Branch(prefix, "reply"), free_text(rules)
    return Branch(prefix, "value"), _value(rules, output, losses)


def _described(output: OutputFormat) -> str:
    return JSON_ONLY if output.kind == "json" else f"{VALID_JSON}\n{written(output.schema)}"


def _value(rules: GrammarRules, output: OutputFormat, losses: Losses) -> str:
    if output.kind == "json":
        return free_object(rules)
    unheld = _unheld(losses, "$.output.schema", strict=output.strict is not False)
    with _named("the schema of the output (`response_format`, `output_config`)", "$.response_format"):
        return SchemaGrammar(rules, output.schema, "$", unheld).root()


def _unheld(losses: Losses, where: str, *, strict: bool) -> Callable[[str, str], None]:
    def note(path: str, keyword: str) -> None:
        if strict:
            raise refused(path, f"the model cannot be held to `{keyword}`; leave it out, or say `strict: false`")
        losses.approximated(where + path.removeprefix("$"), keyword, "the embedded model is not held to it")

    return note


@contextmanager
def _named(what: str, param: str) -> Generator[None]:
    """Add the schema to failures."""
    try:
        yield
    except FailureError as error:
        failure = error.failure
        path = param + (failure.param or "$").removeprefix("$")
        raise FailureError(replace(failure, message=f"{what}: {failure.message}", param=path)) from None
