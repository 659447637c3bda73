"""JSON Schema of a Python function's parameters, and conversion of JSON to its arguments."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from xenoglot.errors import ConfigurationError
from xenoglot.tools.arguments import coerce_arguments
from xenoglot.tools.context import ToolContext
from xenoglot.tools.function.docstring import read_docstring
from xenoglot.tools.function.struct_schema import from_plain, schema_of
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON, JSONObject

LONGEST_NAME: Final = 256
"""Characters of a tool's name. Wires with a lower limit get a shortened name, restored in answers."""

_MANY: Final[Mapping[object, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Signature:
    """Parameters of a function: `schema` for the model, and the name of the `context` parameter."""

    def __init__(
        self,
        struct: type[msgspec.Struct],
        schema: JSONObject,
        description: str,
        positional: Mapping[str, object],
        context: str | None,
    ) -> None:
        self.schema = schema
        self.description = description
        self.context = context
        self._struct = struct
        self._positional = positional

    def convert(self, arguments: JSONObject) -> dict[str, object]:
        """Return the arguments converted to their annotations, without omitted ones.

        Common mistakes of models are accepted: a number as text, an object as its JSON text, one value for a list.

        Raises:
            ToolError: not convertible; the text has the path of the argument.
        """
        fields = self._struct.__struct_fields__
        strange = sorted(set(arguments) - set(fields))
        if strange:
            taken = ", ".join(f"`{name}`" for name in fields) or "none"
            raise ToolError(f"bad arguments: there is no `{strange[0]}`; the tool takes {taken}")
        properties = self.schema["properties"]
        given = coerce_arguments(arguments, self.schema)
        try:
            made = msgspec.convert(given, self._struct, strict=False, dec_hook=from_plain)
        except (msgspec.ValidationError, RecursionError) as error:
            raise ToolError(f"bad arguments: {_problem(error)}") from None
        values = {name: getattr(made, name) for name in properties}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}

    def call(self, arguments: JSONObject, context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """Return the positional and keyword arguments of the function's call.

        Raises:
            ToolError: as `convert`.
        """
        named = self.convert(arguments)
        if self.context is not None:
            named[self.context] = context
        positional: list[object] = []
        for name, default in self._positional.items():
            positional.append(named.pop(name, default))
        return positional, named


def read_signature(function: Callable[..., object], name: str) -> Signature:
    """Return the parameters of `function`; `name` is for messages.

    Raises:
        ConfigurationError: a variadic parameter, or a type that cannot be read from JSON.
    """
    description, said = read_docstring(_documentation(function))
    hints = _hints(function, name)
    parameters = _parameters(function, name)
    context = next((key for key in parameters if _is_context(hints.get(key))), None)
    fields: list[tuple[str, Any, Any]] = []
    for key, parameter in parameters.items():
        if key == context:
            continue
        kind = _described(_annotation(hints.get(key, Any)), said.get(key))
        if parameter.default is parameter.empty:
            fields.append((key, kind, msgspec.NODEFAULT))
        else:
            fields.append((key, typing.Union[kind, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007  `|` takes no `Any`
    try:
        struct = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        schema = schema_of(struct)
    except (TypeError, ValueError, NameError, RuntimeError) as error:
        first = str(error).replace("\n", " ")
        raise ConfigurationError(
            f"the tool `{name}` has a parameter of which no JSON Schema can be made: {first}"
        ) from None
    _add_defaults(schema, parameters)
    positional = {
        key: parameter.default for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY
    }
    return Signature(struct, schema, description, positional, context)


def name_of(function: Callable[..., object], name: str | None = None) -> str:
    """Return the tool name of `function`: `name`, or the function's own.

    Raises:
        ConfigurationError: not a valid tool name.
    """
    inner: object = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    own: str = getattr(inner, "__name__", type(inner).__name__)
    if name is None and not own.isidentifier():
        raise ConfigurationError(f"the name of a tool: found `{own}`, which is not an identifier; set one with `name`")
    return checked_name(own if name is None else name)


def checked_name(name: str) -> str:
    """Return `name`.

    Raises:
        ConfigurationError: it is empty or too long, or has spaces or control characters.
    """
    if 0 < len(name) <= LONGEST_NAME and name.isprintable() and " " not in name:
        return name
    raise ConfigurationError(
        f"the name of a tool: found `{name}`; expected 1 to {LONGEST_NAME} printable characters without spaces"
    )


def _documentation(function: Callable[..., object]) -> str | None:
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if isinstance(getattr(inner, "__self__", None), type):  # `getdoc` would ask the class for it, which gives the tool
        return inspect.cleandoc(inner.__doc__ or "")
    if inspect.isroutine(inner):
        return inspect.getdoc(inner)
    return inspect.getdoc(type(inner).__call__) or inspect.getdoc(type(inner))


def _hints(function: Callable[..., object], name: str) -> Mapping[str, Any]:
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not inspect.isclass(inner):
        inner = type(inner).__call__
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"the tool `{name}` has an annotation that cannot be read: {error}; import it where it runs, too"
        ) from None
    except TypeError:  # a function of C has none
        return {}


def _parameters(function: Callable[..., object], name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters that a call may set; those bound by a `partial` are not."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ConfigurationError(f"the signature of the tool `{name}` cannot be read") from None
    for key, parameter in found.items():
        if (stars := _MANY.get(parameter.kind)) is not None:
            raise ConfigurationError(
                f"the tool `{name}` takes `{stars}{key}`; each parameter needs a name, for the model's schema"
            )
    taken = function.keywords if isinstance(function, functools.partial) else {}
    return {key: parameter for key, parameter in found.items() if key not in taken}


def _is_context(hint: Any) -> bool:  # noqa: ANN401  an annotation may be anything
    return hint is ToolContext or ToolContext in typing.get_args(hint)


def _annotation(hint: Any) -> Any:  # noqa: ANN401  as above
    return Any if hint is object else hint


def _described(kind: Any, said: str | None) -> Any:  # noqa: ANN401  as above
    """Return the type with the docstring's description, unless it has a description of its own."""
    metas = getattr(kind, "__metadata__", ())
    if any(isinstance(meta, msgspec.Meta) and meta.description for meta in metas):
        return kind
    words = (meta if isinstance(meta, str) else getattr(meta, "description", None) for meta in metas)  # pydantic's, too
    told = next((one for one in words if isinstance(one, str) and one), said)
    return kind if not told else Annotated[kind, msgspec.Meta(description=told)]


def _add_defaults(schema: JSONObject, parameters: Mapping[str, inspect.Parameter]) -> None:
    properties = schema["properties"]
    for key in properties:
        default = parameters[key].default
        if default is inspect.Parameter.empty:
            continue
        try:
            plain: JSON = msgspec.to_builtins(default, str_keys=True)
        except (TypeError, ValueError, RecursionError):
            continue  # the model need not know
        properties[key] = {**properties[key], "default": plain}


def _problem(error: BaseException) -> str:
    """Return the problem, with the path of the argument without its `$.` prefix."""
    if isinstance(error, RecursionError):
        return "they are nested too deeply"
    problem, at, path = str(error).rpartition(" - at `")
    if not at:
        return str(error)
    return f"`{path[:-1].removeprefix('$').removeprefix('.') or 'arguments'}`: {problem}"
