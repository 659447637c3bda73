"""Payloads of JSON calls: an object with name and arguments, a list of them, or a name followed by an object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.text.json import text as json_text
from xenoglot.text.parser.parser_input import LONGEST_HELD, IncompleteInputError, MismatchError
from xenoglot.text.payloads.bare_values import escaped, members

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading

_SILENT: Final = frozenset({"type", "id", "call_id", "tool_call_id", "index"})
"""Keys next to name and arguments that are ignored: the call gets a new id, and its kind is known."""

_NAMES: Final = ("tool_name", "function_name", "tool")
_ARGUMENTS: Final = ("input", "args", "params")
"""Keys that models write between markers in place of their own."""

_FENCES: Final = ("```json", "```")


_PLAIN: Final = "{name}"
_NUMBERED: Final = re.compile(r":\d{1,6}\Z")

NO_FIELD: Final = "a call has no such field"


class JSONCalls(Struct, frozen=True, kw_only=True):
    """`{"name": …, "arguments": {…}}`, or a list of them.

    `name`, `arguments` and `wrapper` are the keys that the family uses, the first of each the one to write; what is
    under a `wrapper` is read as the call itself. `keyed` is the form `{"<name>": {…}}`. `listed` is whether calls are
    written as a list; both are read. `strict`: an object with another key before its name is none; for text without
    a marker. `ids` are the keys under which the family writes the id of a call; it counts where it stands before the
    arguments.
    """

    name: tuple[str, ...] = ("name", "function")
    arguments: tuple[str, ...] = ("arguments", "parameters")
    wrapper: tuple[str, ...] = ("function", "tool_call", "function_call")
    keyed: bool = False
    listed: bool = False
    strict: bool = False
    ids: tuple[str, ...] = ()
    starts: str = "{["

    def read(self, section: ParserInput, /) -> Reading:
        """Read one object, or a list."""
        fenced = bool(section.stops) and (yield from section.accept(_FENCES))
        yield from section.blank()
        if (yield from section.peek()) == "[":
            section.take(1)
            yield from self._list(section)
        else:
            yield from self._object(section)
        if fenced:
            yield from section.accept(_FENCES[1:])

    def _list(self, section: ParserInput) -> Reading:
        yield from self._object(section)
        while (yield from section.accept((",",))):
            if (yield from section.accept(("]",))):
                return
            if (yield from section.follows("{")):
                yield from self._object(section)
            else:
                yield from _no_call(section)
        yield from section.accept(("]",))

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one object for each call, or one list."""
        said = [self._written(name, arguments) for name, arguments in calls]
        return [f"[{', '.join(said)}]"] if self.listed else said

    def _written(self, name: str, arguments: str) -> str:
        told = encode_json(name).decode()
        if self.keyed:
            return f"{{{told}: {arguments or '{}'}}}"
        return f'{{"{self.name[0]}": {told}, "{self.arguments[0]}": {arguments or "{}"}}}'

    def _object(self, section: ParserInput) -> Reading:
        section.begin()
        yield from section.expect(("{",))
        doubled = yield from section.accept(("{",), blanks=False)  # a prompt told so: it escaped them for a template
        call = _Call(section)
        whole = yield from self._members(section, call)
        if not call.told:
            call.tell()
        if whole:
            section.complete()
        section.end()
        if doubled:
            yield from section.accept(("}",), blanks=False)
        yield from _surplus(section)

    def _members(self, section: ParserInput, call: _Call) -> Generator[None, None, bool]:
        """Read the members of an object up to its end; return whether it has one."""
        while True:
            yield from section.blank()
            char = yield from section.peek()
            if char == "}":
                section.take(1)
                return True
            if char == ",":
                section.take(1)
            elif char == '"':
                if not (yield from self._member(section, call)):
                    return False
            elif call.told:
                return False  # the rest is not JSON: the call is what there is of it
            else:
                raise MismatchError

    def _member(self, section: ParserInput, call: _Call) -> Generator[None, None, bool]:
        key = yield from json_text.name(section)
        yield from section.expect((":",))
        yield from section.blank()
        if self.keyed and call.name is None:
            call.name = key
            return (yield from call.read_arguments())
        if key in self.wrapper and not call.wrapped and (yield from section.peek()) == "{":
            call.wrapped = True
            section.take(1)
            return (yield from self._members(section, call))
        if call.name is None and (yield from self._is_name(section, key)):
            call.name = yield from json_text.name(section)
            return True
        if not call.has_arguments and (yield from self._is_arguments(section, key)):
            return (yield from call.read_arguments())
        return (yield from self._other(section, call, key))

    def _is_name(self, section: ParserInput, key: str) -> Generator[None, None, bool]:
        if key not in self.name and (self.strict or key not in _NAMES):
            return False
        return (yield from section.peek()) == '"' or key == self.name[0]

    def _is_arguments(self, section: ParserInput, key: str) -> Generator[None, None, bool]:
        if key in self.arguments:
            return True
        return not self.strict and key in _ARGUMENTS and (yield from section.peek()) == "{"

    def _other(self, section: ParserInput, call: _Call, key: str) -> Generator[None, None, bool]:
        if self.strict and not call.told and key not in _SILENT:
            raise MismatchError
        if key in self.ids and not call.told and (yield from section.peek()) == '"':
            call.id = yield from json_text.name(section)
            return True
        if key in _SILENT:
            return (yield from json_text.raw_value(section, lambda _: None))
        if call.told:
            section.lost(key, NO_FIELD)
            return (yield from json_text.raw_value(section, lambda _: None))
        return (yield from json_text.raw_value(section, call.beside(key)))


def _no_call(section: ParserInput) -> Reading:
    """Pass over a value among the calls of a list that is none."""
    yield from section.blank()
    said: list[str] = []
    if not (yield from json_text.raw_value(section, said.append)) or not said:
        raise MismatchError
    section.lost("a value among calls", "it is no call")


def _surplus(section: ParserInput) -> Reading:
    """Pass over closing braces that nothing opened, where a marker of the end is to come (small models miscount)."""
    while section.stops and not (yield from section.at_stop()) and (yield from section.accept(("}",), blanks=False)):
        section.lost("}", "nothing had opened it")


class Named(Struct, frozen=True, kw_only=True):
    """A name with a JSON object after it: `prefix`, the name, `infix`, the object, `suffix`.

    Each of them may have several spellings. Between name and `infix` may stand `mark` followed by an id. Where there
    is no `infix`, the name ends where whitespace or the object begins. `spelled` is how a name is written, of the call
    that is `{number}` from 0 on; a name that has a number is so spelled, and is the id of the call. `space` ends a
    namespace, or a name for people, that may stand before the name. `void` in place of the object: it has no arguments.
    `gap` is written between name and object where there is no `infix`.
    """

    prefix: tuple[str, ...] = ()
    infix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    mark: tuple[str, ...] = ()
    spelled: str = _PLAIN
    space: str = ""
    void: tuple[str, ...] = ()
    gap: str = " "
    starts: str = ""

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call."""
        section.begin()
        yield from section.expect(self.prefix)
        call = _Call(section)
        name = yield from self._name(section)
        call.name = name.rpartition(self.space)[2] if self._spaced(section, name) else name
        if self.spelled != _PLAIN:
            self._numbered(section, call, name)
        if (yield from section.accept(self.mark)):
            call.id = yield from self._name(section)
        yield from section.expect(self.infix)
        if self._bare(section) or (yield from section.accept(self.void)):
            call.tell()
            section.complete()
        else:
            yield from section.blank()
            if (yield from section.peek()) != "{":
                raise MismatchError
            whole = yield from call.read_arguments()
            if not call.told:
                call.infer()
            if whole:
                section.complete()
        section.end()
        if not (yield from section.accept(self.suffix)):
            section.drop_cut(self.suffix)

    def _spaced(self, section: ParserInput, name: str) -> bool:
        """Return whether `name` has an undeclared namespace."""
        return bool(self.space) and self.space in name and section.declared.resolve(name) is None

    @staticmethod
    def _numbered(section: ParserInput, call: _Call, name: str) -> None:
        """Take what stands where a name is spelled with a number: that is the id."""
        if _NUMBERED.search(name):
            call.id = name
        elif name.isdigit():  # the number alone
            call.id, call.name = name, section.declared.only

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one text for each call."""
        prefix, infix, suffix = ((spellings or ("",))[0] for spellings in (self.prefix, self.infix, self.suffix))
        between = infix or self.gap
        names = (self._spelled(name, number) for number, (name, _) in enumerate(calls))
        return [
            f"{prefix}{name}{between}{arguments or '{}'}{suffix}"
            for name, (_, arguments) in zip(names, calls, strict=True)
        ]

    def _spelled(self, name: str, number: int) -> str:
        if self.spelled == _PLAIN or _NUMBERED.search(name):
            return name
        return self.spelled.format(name=name, number=number)

    @staticmethod
    def _bare(section: ParserInput) -> bool:
        """Whether the answer ends after the name of a call without arguments."""
        return section.ended and not section.rest.strip()

    def _name(self, section: ParserInput) -> Generator[None, None, str]:
        """Read up to what ends a name."""
        yield from section.blank()
        ends = (*self.infix, *self.mark)
        said = ""
        while len(said) <= json_text.LONGEST_NAME:
            try:
                char = yield from section.peek()
            except IncompleteInputError:
                if not ends and said:
                    return said
                raise
            if char.isspace() or char in "{[(<\"'" or any(end.startswith(char) for end in ends):
                break
            said += section.take(1)
        if not said:
            raise MismatchError
        return said


class _Inner:
    """What stands in a string in place of an object: an object, passed on as it is, or a string after all."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._object: bool | None = None

    def add(self, text: str) -> None:
        """Take more of it."""
        if self._object is None and text.strip():
            self._object = text.lstrip().startswith("{")
            self._emit("" if self._object else '"')
        if self._object is not None:
            self._emit(text if self._object else escaped(text))

    def end(self) -> None:
        """Take its end."""
        if self._object is False:
            self._emit('"')


class _Call:
    """One call as it is read: its name may come after its arguments."""

    def __init__(self, section: ParserInput) -> None:
        self.name: str | None = None
        self.id = ""
        self.told = False
        self.has_arguments = False
        self.wrapped = False
        self._section = section
        self._early: list[str] = []
        self._early_size = 0
        self._said = False  # something of the arguments was
        self._beside: dict[str, list[str]] = {}

    def beside(self, key: str) -> Callable[[str], None]:
        """Return what takes the value of the member `key`, which may be an argument next to the name."""
        parts = self._beside[key] = []
        return parts.append

    def tell(self) -> None:
        """Begin the call, its name being known.

        Raises:
            MismatchError: it is not.
        """
        if self.name is None:
            raise MismatchError
        given = "".join(self._early) if self.has_arguments else self._given()
        for key in self._beside:
            self._section.lost(key, NO_FIELD)
        self.told = True
        self._section.name(self.name, self.id)
        self._section.arguments(given)

    def infer(self) -> None:
        """Begin the call of the one tool that has all the arguments, which were read.

        Raises:
            MismatchError: several have, or none has.
        """
        self.name = self._section.declared.fitting(members("".join(self._early)) or {})
        self.tell()

    def _given(self) -> str:
        """Return as arguments what stands next to the name, and is a parameter of the tool; all else is lost."""
        schema = self._section.schema(self.name or "")
        known = schema.get("properties") if isinstance(schema, dict) else None
        names = [key for key in self._beside if isinstance(known, dict) and key in known]
        values = [f"{encode_json(key).decode()}: {''.join(self._beside.pop(key))}" for key in names]
        if values:
            self._section.lost("arguments", "they stood beside the name", "approximated")
        return f"{{{', '.join(values)}}}"

    def read_arguments(self) -> Generator[None, None, bool]:
        """Read the value of the arguments, and pass it on as soon as it is known whose they are."""
        section = self._section
        char = yield from section.peek()
        self.has_arguments = True
        if self.name is not None:
            self.tell()
        if char == '"':  # the object, written as a string
            inner = _Inner(self._emit)
            yield from json_text.string(section, inner.add)
            inner.end()
            whole = True
            if not self._said:
                self._emit("{}")
        elif char == "n":
            whole = yield from json_text.raw_value(section, lambda _: None)
            self._emit("{}")
        else:
            whole = yield from json_text.raw_value(section, self._emit)
        if whole and self.told:
            section.complete()
        return whole

    def _emit(self, text: str) -> None:
        self._said = self._said or bool(text)
        if self.told:
            self._section.arguments(text)
            return
        self._early.append(text)
        self._early_size += len(text)
        if self._early_size > LONGEST_HELD:
            raise MismatchError
