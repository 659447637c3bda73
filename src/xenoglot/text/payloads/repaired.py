"""Payload of malformed JSON calls: repairs the text up to the end marker."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.errors import WireError
from xenoglot.model.json import JSON
from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError
from xenoglot.text.payloads.json_calls import JSONCalls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading
    from xenoglot.text.syntax import CallSyntax, Syntax

Repair: TypeAlias = Callable[[str, JSON], str | None]
"""Text that is no JSON, and the schema of what it should be -> what was meant, as JSON; `None` if unknown."""


def repairing(syntax: Syntax, repair: Repair) -> Syntax:
    """Return `syntax` with a second form for each marked form in JSON: what only the second one reads is repaired."""
    calls, slips = (
        tuple(both for form in forms for both in _with_twin(form, repair)) for forms in (syntax.calls, syntax.slips)
    )
    own = syntax.own
    if isinstance(own, partial):  # it chooses between parsers; the usual one reads what stands here
        usual, *others = own.args
        own = partial(own.func, repairing(usual, repair), *others)
    return replace(syntax, calls=calls, slips=slips, own=own)


def _with_twin(form: CallSyntax, repair: Repair) -> Iterator[CallSyntax]:
    yield form
    if isinstance(form.payload, JSONCalls) and form.markers:
        yield replace(form, payload=RepairedCalls(form.payload, repair))


class RepairedCalls(Struct, frozen=True):
    """Calls as `form` has them, written by a model that does not know JSON well."""

    form: JSONCalls
    repair: Repair
    starts: str = ""

    def read(self, section: ParserInput, /) -> Reading:
        """Read up to the marker that ends the calls, or to the end."""
        section.begin()
        text = yield from _up_to_stop(section)
        for number, (name, arguments) in enumerate(self._calls(text)):
            if number:
                section.begin()
            section.lost("tool_call", "its JSON could not be read, and was mended", "approximated")
            section.name(name)
            section.arguments(arguments)
            section.complete()
            section.end()

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return calls as they should have been written."""
        return self.form.write(calls)

    def _calls(self, text: str) -> Sequence[tuple[str, str]]:
        mended = self.repair(text, None)
        try:
            value = None if mended is None else decode_json(mended)
        except WireError:
            value = None
        found = [self._call(item) for item in (value if isinstance(value, list) else [value])]
        calls = [call for call in found if call is not None]
        if not calls or len(calls) < len(found):
            raise MismatchError
        return calls

    def _call(self, value: JSON) -> tuple[str, str] | None:
        """Return name and arguments of what was repaired, if it is a call."""
        if not isinstance(value, dict):
            return None
        if self.form.keyed:
            return next(((name, to_text(arguments)) for name, arguments in value.items()), None)
        for wrapper in self.form.wrapper:
            if isinstance(inner := value.get(wrapper), dict):
                value = inner
        name = next((said for key in self.form.name if isinstance(said := value.get(key), str)), None)
        arguments: JSON = next((value[key] for key in self.form.arguments if key in value), {})
        if name is None:
            return None
        return name, arguments if isinstance(arguments, str) else to_text(arguments or {})


def _up_to_stop(section: ParserInput) -> Generator[None, None, str]:
    """Read up to the marker that ends the calls."""
    said: list[str] = []
    try:
        while not (yield from section.at_stop()):
            yield from section.peek()
            said.append(section.take(1))
    except IncompleteInputError:
        pass
    return "".join(said)
