"""Payload of calls written as markup: a tag for the tool, and in it one tag for each argument."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from xenoglot.codec.json.json_io import to_text
from xenoglot.text.json import text as json_text
from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError
from xenoglot.text.payloads.bare_values import escaped, may_be_text, members, only_text, property_schema, typed
from xenoglot.text.payloads.markup_values import MarkupValue, ValueWriter, quoted_json

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.text.parser.parser_input import ParserInput, Reading

_NAME = re.compile(r"""[^\s<>"'{}\[\]]+""")
_KEY = re.compile(r"""[^<>"'\n]+""")
_BLANK = re.compile(r"\s+")
_ATTRIBUTES = re.compile(r"[^<>\n]+")
_GARBLED = re.compile(r"\w+")
_OBJECT: Final = {"type": "object"}


class Markup(Struct, frozen=True, kw_only=True):
    """`call` name `call_name_end`, then parameters, then `call_end`.

    A parameter is `parameter` name `name_end` `value` text `parameter_end`. Every tag may have several spellings, of
    which the first is the one to write. Without a `call_name_end` the name of the tool ends at whitespace or a tag.

    `call_void` ends the name of a call that has no parameters, and the call. `attributes`, where there are any, is
    what is written between the name and the `call_name_end`, of the call that is `{number}` from 1 on: the quote that
    ends the name, and other attributes. Those that stand there are read and have no effect.

    `texts` are those spellings of `name_end` that mark the value as a string, `jsons` those that mark it as
    no string; otherwise the schema decides, as it does where it admits no string. `trim` is what around a value belongs
    to its tags: one line break on each side, if one stands before the value, all whitespace, or nothing. `wrapped` is
    an inner pair of tags that a value may stand in. `object` is whether the arguments may be one JSON object in place
    of the parameters, `object_open` and `object_close` are tags around one. `loose`: nothing need follow the
    parameters, so the end of any value is its end; otherwise an end counts only where more of the call's markup, or the
    end of the answer, follows it. There an end counts even if its name is garbled (`</parameter1>`) or its `>` is
    missing. `wrappers` are parameters that models put all arguments in, as one object: where the tool has none of that
    name, but one of those in the object, and no other parameter stands next to it, the object is the arguments. If a
    parameter comes twice, the first counts. `abrupt`: the tag of another parameter ends a value whose own end was
    forgotten, whatever its name; else that of a declared one does.
    `line` stands between tags when they are written, `padded` puts a value on lines of its own.
    """

    parameter: tuple[str, ...]
    parameter_end: tuple[str, ...]
    call: tuple[str, ...] = ()
    call_name_end: tuple[str, ...] = (">",)
    call_void: tuple[str, ...] = ()
    name_end: tuple[str, ...] = (">",)
    value: tuple[str, ...] = ()
    call_end: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    jsons: tuple[str, ...] = ()
    trim: Literal["line", "blanks", "nothing"] = "line"
    wrapped: tuple[str, str] | None = None
    attributes: str = ""
    object: bool = False
    object_open: tuple[str, ...] = ()
    object_close: tuple[str, ...] = ()
    loose: bool = False
    abrupt: bool = False
    wrappers: tuple[str, ...] = ()
    line: str = "\n"
    padded: bool = False
    starts: str = "<"

    def read(self, section: ParserInput, /) -> Reading:
        """Read one call."""
        section.begin()
        yield from section.expect(self.call)
        name = yield from word(section, _NAME)
        if (yield from section.accept(self.call_void)):
            section.name(name)
            section.arguments("{}")
            section.complete()
        else:
            if self.attributes:
                yield from word(section, _ATTRIBUTES)
            yield from section.expect(self.call_name_end)
            yield from _Call(self, section, name).read()
        section.end()

    def write(self, calls: Sequence[tuple[str, str]], /) -> Sequence[str]:
        """Return one text for each call. Arguments that are no JSON object stand in it as they are."""
        return [self._written(number, *call) for number, call in enumerate(calls, start=1)]

    def _written(self, number: int, name: str, arguments: str) -> str:
        given = members(arguments)
        inner = [arguments] if given is None else [self._parameter(*item) for item in given.items()]
        end = self.attributes.format(number=number) + _first(self.call_name_end)
        return self.line.join([_first(self.call) + name + end, *inner, _first(self.call_end)])

    def _parameter(self, name: str, value: JSON) -> str:
        text = value if isinstance(value, str) else to_text(value)
        ends = (self.texts if isinstance(value, str) else self.jsons) or self.name_end
        pad = "\n" if self.padded or (self.trim == "line" and text != text.strip("\n")) else ""
        between = self.line if self.value else ""
        opening = f"{self.parameter[0]}{name}{ends[0]}{between}{_first(self.value)}"
        return f"{opening}{pad}{text}{pad}{self.parameter_end[0]}"


class _Call:
    """One call as it is read: its arguments leave as JSON."""

    def __init__(self, form: Markup, section: ParserInput, name: str) -> None:
        self._form = form
        self._section = section
        self._name = name
        self._schema = section.schema(name)
        self._next = (*form.parameter, *form.call_end)
        self._given: set[str] = set()

    def read(self) -> Reading:
        """Read what follows the name."""
        form, section = self._form, self._section
        if (yield from section.accept(form.object_open)) or (form.object and (yield from section.follows("{"))):
            yield from self._object()
            return
        try:
            yield from self._stray(form.parameter_end)
            found = yield from self._following()
        except IncompleteInputError:
            found = ""
        if found is None:
            raise MismatchError
        section.name(self._name)
        while found and found not in form.call_end:
            found = yield from self._parameter(found)
        cut = section.drop_cut(form.call_end)
        if found or cut or not section.ended or section.rest.strip() or section.stopped:
            self._end()

    def _object(self) -> Reading:
        section = self._section
        section.name(self._name)
        yield from section.blank()
        if (yield from json_text.raw_value(section, section.arguments)):
            section.complete()
        yield from section.accept(self._form.object_close)
        yield from section.accept(self._form.call_end)

    def _end(self) -> None:
        """Write the end of the arguments; there is none where the answer was cut off before."""
        self._section.arguments("}" if self._given else "{}")
        self._section.complete()

    def _following(self) -> Generator[None, None, str | None]:
        """Read the tag that continues the call, or ends it. There may be none: then the call is over, or it is none.

        Raises:
            IncompleteInputError: the text ends here.
        """
        section = self._section
        found = yield from section.accept(self._next)
        if found or self._form.loose:
            return found
        yield from section.blank()
        return "" if (yield from section.at_stop()) else None

    def _parameter(self, opening: str) -> Generator[None, None, str]:
        """Read one parameter after its opening tag, and the tag after the parameter."""
        form, section = self._form, self._section
        name, mark = self._unclosed().get(opening) or (yield from self._key())
        if mark or not (yield from section.accept(form.value)):
            following = (yield from self._after_name()) if mark else (yield from self._after_key())
            if following is not None:
                section.lost(name, "its key had no value" if mark else "its key had no end")
                return following
        if name in self._given:
            section.lost(name, "it was given before")
            return (yield from self._read_value(ValueWriter(_ignored, str)))
        if self._wraps(name):
            return (yield from self._unwrap(name))
        section.arguments(f'{", " if self._given else "{"}"{escaped(name)}": ')
        self._given.add(name)
        schema = property_schema(self._schema, name, self._schema)
        return (yield from self._read_value(self._emitter(schema, mark)))

    def _read_value(self, emitter: ValueWriter) -> Generator[None, None, str]:
        """Read a value and what ends it, and the tag after that."""
        form, section = self._form, self._section
        closers = form.parameter_end
        if form.wrapped is not None and (yield from section.accept((form.wrapped[0],))):
            closers = tuple(form.wrapped[1] + end for end in closers)
        return (yield from self._value(MarkupValue(emitter, form.trim), closers))

    def _wraps(self, name: str) -> bool:
        """Return whether the first parameter, `name`, may be an object around all of them."""
        known = self._schema.get("properties") if isinstance(self._schema, dict) else None
        return name in self._form.wrappers and not self._given and isinstance(known, dict) and name not in known

    def _unwrap(self, name: str) -> Generator[None, None, str]:
        """Read a value that may be all arguments; return the tag after it.

        It is one of them where it is no object, or where another parameter follows.
        """
        said: list[str] = []
        found = yield from self._read_value(ValueWriter(said.append, str))
        value = typed("".join(said), _OBJECT, None)
        inner = members(value)
        if not self._meant(inner) or found in (*self._form.parameter, *self._unclosed()):
            self._section.arguments(f'{{"{escaped(name)}": {value}')
            self._given.add(name)
        elif inner:
            self._section.arguments(value.strip()[:-1])
            self._given.update(inner)
        return found

    def _meant(self, inner: JSONObject | None) -> bool:
        """Return whether the object `inner` holds parameters of the tool, rather than being the value of one."""
        known = self._schema.get("properties") if isinstance(self._schema, dict) else None
        return inner is not None and (not inner or not isinstance(known, dict) or not known.keys().isdisjoint(inner))

    def _valueless(self) -> Generator[None, None, str | None]:
        """Read the tag before a value; where the call continues or ends instead, return the tag that shows it.

        `None`: a value follows, with its tag or without.
        """
        section, form = self._section, self._form
        if not form.value or (yield from section.accept(form.value)):
            return None
        try:
            return (yield from self._following())
        except IncompleteInputError:
            if section.stopped:
                return ""
            raise

    def _stray(self, tags: tuple[str, ...]) -> Reading:
        """Pass over tags that have no place here, where keys and values have tags of their own (GLM 4.7 stutters)."""
        while self._form.value and (yield from self._section.accept(tags)):
            pass

    def _key(self) -> Generator[None, None, tuple[str, str]]:
        """Read the name of a parameter, and what ends it, if that follows."""
        yield from self._stray(self._form.parameter)
        name = (yield from word(self._section, _KEY)).strip()
        return name, (yield from self._section.accept(self._form.name_end))

    def _after_key(self) -> Generator[None, None, str]:
        """Return the tag after a key that has no end: the call continues or ends there.

        Raises:
            MismatchError: it does neither.
        """
        following = yield from self._following()
        if not following and (following is None or self._form.loose):
            raise MismatchError
        return following

    def _after_name(self) -> Generator[None, None, str | None]:
        yield from self._stray(self._form.name_end)
        return (yield from self._valueless())

    def _unclosed(self) -> dict[str, tuple[str, str]]:
        """Return the tags of declared parameters that are not given yet, each with its name and what ends that.

        One of them ends a value whose own end was forgotten.
        """
        properties = self._schema.get("properties") if isinstance(self._schema, dict) else None
        names = () if not isinstance(properties, dict) else (name for name in properties if name not in self._given)
        form = self._form
        return {f"{tag}{name}{end}": (name, end) for name in names for tag in form.parameter for end in form.name_end}

    def _emitter(self, schema: JSON, mark: str) -> ValueWriter:
        section, form = self._section, self._form
        textual = only_text(schema, self._schema)
        if mark in form.jsons:
            schema = None if textual else schema
            return ValueWriter(section.arguments, lambda text: quoted_json(text) or typed(text, schema, self._schema))
        if textual or (mark in form.texts and may_be_text(schema, self._schema)):
            return ValueWriter(section.arguments, None)
        return ValueWriter(section.arguments, lambda text: typed(text, schema, self._schema))

    def _value(self, value: MarkupValue, closers: tuple[str, ...]) -> Generator[None, None, str]:
        """Read a value up to its end, and the tag after that."""
        section, unclosed = self._section, self._unclosed()
        garbled = () if self._form.loose else tuple(end[:-1] for end in closers if end[-2:-1].isalpha())
        abrupt = self._form.parameter if self._form.abrupt else ()
        ends = () if self._form.loose else self._form.call_end
        closers = (*closers, *garbled, *unclosed, *abrupt, *ends)
        firsts = {closer[0] for closer in closers} | ({"<"} if section.stops else set())
        plain = re.compile("[^" + "".join(map(re.escape, firsts)) + "]+")
        while True:
            try:
                yield from section.peek()
            except IncompleteInputError:
                if section.stopped:
                    value.end()
                    return ""
                raise
            if text := section.run(plain):
                value.add(text)
                continue
            found, passed = yield from self._ending(closers, garbled, (*unclosed, *abrupt))
            if found is not None:
                value.end(cut=found in unclosed)
                return found
            if passed:
                value.add(passed)

    def _ending(
        self, closers: tuple[str, ...], garbled: tuple[str, ...], others: tuple[str, ...]
    ) -> Generator[None, None, tuple[str | None, str]]:
        """Return the tag after a value if it ends here (`None`: it does not), and what was read of the value."""
        section = self._section
        if closer := (yield from section.accept(closers, blanks=False)):
            return (yield from self._closed(closer, garbled, others))
        if not self._form.loose and (yield from section.at_stop()):
            return (yield from self._last(""))
        if section.at_cut(closers):
            section.take(len(section.rest))
            return None, ""
        return None, section.take(1)

    def _closed(
        self, closer: str, garbled: tuple[str, ...], others: tuple[str, ...]
    ) -> Generator[None, None, tuple[str | None, str]]:
        """Return the tag with which the call continues at `closer` (`None`: it ended no value), and the text read."""
        if closer in others:
            return closer, closer
        if closer in self._form.call_end:
            found, passed = yield from self._last(closer)
        else:
            closer += (yield from self._garbled()) if closer in garbled else ""
            found, passed = yield from self._behind()
        return found, closer + passed

    def _last(self, end: str) -> Generator[None, None, tuple[str | None, str]]:
        """Return `end`, that of the call, if only markup follows: the value has none of its own. And what was read."""
        section, passed = self._section, ""
        try:
            while (yield from section.peek()).isspace() or (yield from section.at_stop()):
                passed += section.run(_BLANK) or section.take_stop()
        except IncompleteInputError:
            return end if section.stopped else None, passed
        return None, passed

    def _garbled(self) -> Generator[None, None, str]:
        """Read the rest of an end whose name is not the one that it should be; return it."""
        section, said = self._section, ""
        try:
            while (yield from section.peek()) and (more := section.run(_GARBLED)):
                said += more
            return said + (section.take(1) if (yield from section.peek()) == ">" else "")
        except IncompleteInputError:
            return said

    def _behind(self) -> Generator[None, None, tuple[str | None, str]]:
        """Return the tag after the end of a value (`None`: that was no end), and the whitespace that was read."""
        section = self._section
        if self._form.loose:
            return (yield from section.accept(self._next)), ""
        passed = ""
        try:
            while (yield from section.peek()).isspace():
                passed += section.run(_BLANK)
        except IncompleteInputError:
            return "", passed
        found = yield from section.accept(self._next, blanks=False)
        over = bool(found) or (yield from section.at_stop()) or section.at_cut(self._form.call_end)
        return found if over or (yield from section.at_other()) else None, passed


def _ignored(_text: str) -> None:
    """Take a value that has no place."""


def word(section: ParserInput, pattern: re.Pattern[str]) -> Generator[None, None, str]:
    """Read a name: all that `pattern` matches.

    Raises:
        MismatchError: there is none, or it is too long for a name.
        IncompleteInputError: the text ends in it.
    """
    yield from section.blank()
    said = ""
    while said := said + (more := section.run(pattern)):
        yield from section.peek()
        if not more or len(said) > json_text.LONGEST_NAME:
            break
    if not said or len(said) > json_text.LONGEST_NAME:
        raise MismatchError
    return said


def _first(spellings: tuple[str, ...]) -> str:
    return spellings[0] if spellings else ""
