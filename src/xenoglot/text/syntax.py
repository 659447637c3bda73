"""The fields of a syntax row: how a model family writes tool calls and reasoning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from xenoglot.text.declared_tools import DeclaredTools

if TYPE_CHECKING:
    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.parser.parser_input import ParserInput, Reading

Place: TypeAlias = Literal["anywhere", "sentence", "line", "start"]
"""Where a marker counts: anywhere in the words, before all words or after a sentence (and after no call), at the
start of a line, or only before all words (after whitespace, reasoning and other calls)."""


class TextParser(Protocol):
    """A stage from text to pieces."""

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        ...

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over. `stopped`: the model ended it; no limit cut it off."""
        ...


class Payload(Protocol):
    """How one call is written, or several: the grammar between two markers, and its inverse."""

    @property
    def starts(self) -> str:
        """The characters it can begin with; they show that another call follows where no marker does."""
        ...

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call, or a list of them, from `section`.

        Raises:
            Mismatch: it is no call.
        """
        ...

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return calls (name, arguments as JSON) as the model writes them: one text for each, or one for a list."""
        ...


class CallSyntax(Struct, frozen=True, kw_only=True):
    """A form in which calls are written: `begin`, then calls, each between `open` and `close`, then `end`.

    Every marker may have several spellings, of which the first is the one to write; none means that there is no such
    marker. `between` are separators that may stand between two calls. Whitespace between markers is markup too. A form
    without `begin` and `open` is known by the characters that its payload starts with, and only before all words.
    `padding` is written after `open` and before `close`, or, where neither is, within `begin` and `end`; `joint`
    between two calls that have no separator.
    `lines`: each call stands on a line of its own, so that a line that is none does not end the calls.
    `echoed`: models repeat the calls with their `end`; the repetition has no effect.
    `auto` is whether the form is recognised where nothing is known of the model.
    """

    payload: Payload
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    padding: str = ""
    joint: str = "\n"
    place: Place = "anywhere"
    lines: bool = False
    echoed: bool = False
    auto: bool = True

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers that begin calls; none for a bare form."""
        return self.begin or self.open


class ReasoningSyntax(Struct, frozen=True, kw_only=True):
    """How reasoning is marked.

    `implied`: the prompt ends in the opening marker, so the answer begins inside, unless the request wants no
    reasoning; with `asked`, only where it wants some.

    `calls`: a call inside ends the reasoning, and is one; with `line`, only at the start of a line. `until` are other
    markers that end it, and mean nothing where no reasoning is open. `auto` is whether it is looked for where nothing
    is known of the model.
    """

    open: tuple[str, ...]
    close: tuple[str, ...]
    until: tuple[str, ...] = ()
    implied: bool = False
    asked: bool = False
    calls: bool = False
    line: bool = False
    place: Place = "start"
    auto: bool = True

    def begun(self, thinking: bool | None) -> bool:  # noqa: FBT001  what a request says of it, if anything
        """Return whether an answer begins inside, to a request that wants reasoning, wants none, or leaves it open."""
        return self.implied and thinking is not False and (thinking is True or not self.asked)


class ToolPromptSyntax(Struct, frozen=True, kw_only=True):
    """How a family's prompt describes tools, and returns results.

    `tools` goes into the system turn; `{tools}` in it are the tools, each as `tool` writes one (`openai`: as
    `{"type": "function", "function": …}`; `function`: the inner object alone; `python`: a signature with a docstring),
    with `separator` between them; `{example}` is a call as the family writes it. `result` is what a tool returned, with
    `{name}`, `{id}` and `{content}`, in a turn of the user; where `escaped`, the content stands in it as a JSON string.
    Results that follow each other are joined by line breaks in one turn.

    `own_id` is the pattern of the ids that the family writes, `made_id` what the id of another call is written as
    (`{number}`: the call's number in the conversation, from 0 on), `named` how a call with such an id is named in the
    prompt.
    """

    tools: str
    tool: Literal["openai", "function", "python"] = "openai"
    separator: str = "\n"
    result: str = "<tool_response>\n{content}\n</tool_response>"
    escaped: bool = False
    own_id: str = ""
    made_id: str = ""
    named: str = ""


class Syntax(Struct, frozen=True, kw_only=True):
    """One row: what a family's text looks like, and the source for it.

    `models` are patterns (`*` is any number of characters) of the last part of a model's name in lower case. `title`
    names the family for people. `dropped` are control tokens: removed in every place among words. `source` is
    the address of the chat template or of the documentation, `note` what is peculiar.
    """

    name: str
    title: str
    source: str
    note: str = ""
    models: tuple[str, ...] = ()
    calls: tuple[CallSyntax, ...] = ()
    slips: tuple[CallSyntax, ...] = ()
    """Forms that its models are not taught, and slip into: they are read, and never requested."""
    thoughts: tuple[ReasoningSyntax, ...] = ()
    dropped: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    """Control tokens after which a message begins: what counts at the start of an answer counts there too."""
    strays: tuple[str, ...] = ()
    """Control tokens inside of calls and at their ends: removed among words, where no begun call was left as words.

    A row need not name those that end its calls (`rows.ROWS` adds them)."""
    citations: bool = False
    """Whether parts of the words stand between marks that name their sources (`<co>…</co: 0:[1]>`)."""
    telling: ToolPromptSyntax | None = None
    own: Callable[[DeclaredTools], TextParser] | None = None
    """A parser of its own, for a format that is no section of calls between words."""
    opens: tuple[str, ...] = ()
    """What every text that is for the parser of its own may begin with; nothing else begins so."""
    write: Callable[[Sequence[tuple[str, str]]], str] | None = None
    """How calls (name, arguments as JSON) are written there."""


def without_openings(tokens: tuple[str, ...], calls: Sequence[CallSyntax]) -> tuple[str, ...]:
    """Return those of `tokens` that begin none of `calls`."""
    begins = {marker for form in calls for marker in form.markers}
    return tuple(token for token in tokens if token not in begins)
