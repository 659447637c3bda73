"""Local tools: functions that a model may call and that run in this process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, ParamSpec, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct

from xenoglot.errors import ConfigurationError
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Tool
from xenoglot.model.short_repr import described, short_repr
from xenoglot.moved_modules import renamed
from xenoglot.signatures import defaults_of, show_options
from xenoglot.tools.context import ToolContext
from xenoglot.tools.function.function_schema import Signature, checked_name, name_of, read_signature
from xenoglot.tools.tool_output import ToolError, ToolOutput

__all__ = ["Approval", "FunctionTool", "LocalTool", "SchemaTool", "ToolContext", "ToolError", "ToolOutput", "tool"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Approval(Struct, frozen=True, kw_only=True):
    """Decision about a tool call that needs approval, returned by `approve` of a run.

    Args:
        allowed: Whether the call may run.
        reason: Why it is denied; sent to the model.
        arguments: Replace the arguments of the call. `None` keeps them.

    Example:
        >>> import xenoglot
        >>> def approve(call):
        ...     return xenoglot.Approval(allowed=call.name != "delete", reason="deleting is not allowed")
        >>> approve(xenoglot.ToolCall(id="1", name="delete")).allowed
        False
    """

    allowed: bool
    reason: str | None = None
    arguments: JSONObject | None = None

    __repr__ = short_repr


class LocalTool:
    """Base class of tools that run here; see also `SchemaTool` and `@tool`.

    `spec` is sent to the model. `needs_approval` requests approval before each call, `time_limit` is in seconds, an
    `exclusive` tool never runs in parallel to others. `asynchronous` means that `run` returns an awaitable and does not
    block; any other tool runs in a thread. A tool that does not `take_context` may run in the caller's own thread.
    """

    spec: Tool
    needs_approval: bool = False
    time_limit: float | None = None
    exclusive: bool = False
    asynchronous: bool = False
    takes_context: bool = True

    def __repr__(self) -> str:
        limits = {"needs_approval": self.needs_approval or None, "time_limit": self.time_limit}
        spec = getattr(self, "spec", None)
        return described(self, name=spec and spec.name, description=spec and spec.description, **limits)

    def check(self, arguments: JSONObject) -> None:
        """Check the arguments before approval is requested. A custom tool has its text as `input`.

        Raises:
            ToolError: not valid; the text names the argument and the reason.
        """

    def run(self, arguments: JSONObject, context: ToolContext) -> object:
        """Return the result: JSON, text, message parts, a `ToolOutput`, or an awaitable of one.

        Exceptions are reported to the model.
        """
        raise NotImplementedError


class ToolOptions(TypedDict, total=False):
    """Keyword options of every local tool; see `LocalTool`."""

    needs_approval: bool
    time_limit: float | None
    exclusive: bool


class SchemaToolOptions(ToolOptions, total=False):
    """Keyword options of a `SchemaTool`. `asynchronous` is read from the function by default."""

    asynchronous: bool | None
    check: Callable[[JSONObject], None] | None


class FunctionToolOptions(ToolOptions, total=False):
    """Keyword options of `tool`. `name` and `description` are read from the function by default."""

    name: str | None
    description: str | None


class _ToolSettings(Struct, frozen=True, kw_only=True):
    needs_approval: bool = False
    time_limit: float | None = None
    exclusive: bool = False


class _SchemaToolSettings(_ToolSettings, frozen=True, kw_only=True):
    asynchronous: bool | None = None
    check: Callable[[JSONObject], None] | None = None


class _FunctionToolSettings(_ToolSettings, frozen=True, kw_only=True):
    name: str | None = None
    description: str | None = None


class SchemaTool(LocalTool):
    """A tool with a given `spec`; `function(arguments, context)` runs it, `check(arguments)` validates them before.

    Raises:
        ConfigurationError: not a valid tool name.
    """

    def __init__(
        self, spec: Tool, function: Callable[[JSONObject, ToolContext], object], **options: Unpack[SchemaToolOptions]
    ) -> None:
        settings = _SchemaToolSettings(**options)
        checked_name(spec.name)
        self.spec = spec
        self.needs_approval = settings.needs_approval
        self.time_limit = settings.time_limit
        self.exclusive = settings.exclusive
        self.asynchronous = is_asynchronous(function) if settings.asynchronous is None else settings.asynchronous
        self._function = function
        self._check = settings.check

    def check(self, arguments: JSONObject) -> None:
        """Call the given check."""
        if self._check is not None:
            self._check(arguments)

    def run(self, arguments: JSONObject, context: ToolContext) -> object:
        """Call the function."""
        return self._function(arguments, context)


class FunctionTool(LocalTool, Generic[_P, _R]):
    """A typed function as a tool; called, it is the function itself. See `tool`."""

    def __init__(self, function: Callable[_P, _R], **options: Unpack[FunctionToolOptions]) -> None:
        settings = _FunctionToolSettings(**options)
        self.function = function
        self.needs_approval = settings.needs_approval
        self.time_limit = settings.time_limit
        self.exclusive = settings.exclusive
        self.asynchronous = is_asynchronous(function)
        self._name = name_of(function, settings.name)
        self._description = settings.description
        functools.update_wrapper(self, function, updated=())
        if not _is_method(function):  # a method is read when it is bound: until then it takes `self`
            self.signature  # noqa: B018  a mistake is told where the function stands

    def __repr__(self) -> str:
        limits = {"needs_approval": self.needs_approval or None, "time_limit": self.time_limit}
        return described(self, name=self._name, description=self._description, **limits)

    @functools.cached_property
    def signature(self) -> Signature:
        """The function's parameters."""
        return read_signature(self.function, self._name)

    @functools.cached_property
    def spec(self) -> Tool:  # type: ignore[override]  # made when it is first asked for
        """The tool's definition for the model."""
        said = self.signature.description if self._description is None else self._description
        return Tool(name=self._name, description=said or None, parameters=self.signature.schema)

    @property
    def takes_context(self) -> bool:  # type: ignore[override]  # as above
        """Whether one of its parameters is a `ToolContext`."""
        return self.signature.context is not None

    def check(self, arguments: JSONObject) -> None:
        """Convert the arguments, to see whether they can be."""
        self.signature.convert(arguments)

    def run(self, arguments: JSONObject, context: ToolContext) -> object:
        """Call the function with the arguments converted to its annotations."""
        positional, named = self.signature.call(arguments, context)
        function: Callable[..., object] = self.function
        return function(*positional, **named)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., _R]:
        """Return the tool of a method that is bound to `instance`."""
        bind = getattr(self.function, "__get__", None)
        if instance is None or bind is None:
            return self
        return FunctionTool(
            bind(instance, owner),
            name=self._name,
            description=self._description,
            needs_approval=self.needs_approval,
            time_limit=self.time_limit,
            exclusive=self.exclusive,
        )


@overload
def tool(function: Callable[_P, _R], /) -> FunctionTool[_P, _R]: ...


@overload
def tool(function: Callable[_P, _R], /, **options: Unpack[FunctionToolOptions]) -> FunctionTool[_P, _R]: ...


@overload
def tool(**options: Unpack[FunctionToolOptions]) -> Callable[[Callable[_P, _R]], FunctionTool[_P, _R]]: ...


@show_options(FunctionToolOptions, defaults_of(_FunctionToolSettings))
def tool(
    function: Callable[_P, _R] | None = None, /, **options: Unpack[FunctionToolOptions]
) -> FunctionTool[_P, _R] | Callable[[Callable[_P, _R]], FunctionTool[_P, _R]]:
    """Make a tool of a typed function: as a decorator, with or without options, or as a function.

    The model gets the function's name, its docstring (Google, NumPy or Sphinx style) and its annotations. Arguments are
    converted to the annotations before the call. The function may be asynchronous, a method, a `functools.partial` or a
    callable object. A parameter annotated `ToolContext` is hidden from the model and gets the call.

    Args:
        function: The function; without it, a decorator is returned.

    Keyword Args:
        needs_approval: Whether `approve` of the run is called before each call. Default: `False`.
        time_limit: Seconds for a call; after that the model gets an error. `None` is the limit of the run.
        exclusive: Whether it never runs in parallel to other calls. Default: `False`.
        name: The tool's name. `None` is that of the function.
        description: The text for the model. `None` is the docstring.

    Returns:
        The tool; called, it is the function itself.

    Raises:
        ConfigurationError: Not a valid tool name or time limit, a variadic parameter, or a parameter of a type that
            cannot be read from JSON.
        TypeError: An option has an unknown name.

    Example:
        >>> import xenoglot
        >>> @xenoglot.tool(time_limit=10)
        ... def weather(city: str, days: int = 1) -> str:
        ...     '''Return the weather of a city.
        ...
        ...     Args:
        ...         city: The name of the city.
        ...         days: How many days from today.
        ...     '''
        ...     return f"rain in {city}"
        >>> weather.spec.name, weather.spec.parameters["properties"]["city"]["description"]
        ('weather', 'The name of the city.')
        >>> weather("Oslo")
        'rain in Oslo'
    """
    time_limit = _FunctionToolSettings(**options).time_limit
    if time_limit is not None and not time_limit > 0:
        raise ConfigurationError(f"`time_limit`: found {time_limit}; expected more than 0 seconds, or `None`")

    def made(function: Callable[_P, _R]) -> FunctionTool[_P, _R]:
        return FunctionTool(function, **options)

    return made if function is None else made(function)


def is_asynchronous(function: Callable[..., object]) -> bool:
    """Return whether a call of `function` returns an awaitable."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  an object whose `__call__` is a coroutine function


def _is_method(function: Callable[..., object]) -> bool:
    """Return whether `function` is an unbound method: its first parameter is `self` or `cls`."""
    if not inspect.isfunction(function) or "." not in function.__qualname__.rpartition("<locals>")[2].lstrip("."):
        return False
    return next(iter(inspect.signature(function).parameters), None) in ("self", "cls")


if not TYPE_CHECKING:  # type checkers report the old names

    def __getattr__(name: str) -> object:
        """Return what an old name is today."""
        return renamed(__name__, name)
