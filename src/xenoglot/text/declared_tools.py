"""The tools that a request declares, found by the names that models write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.requests.custom_tools import PARAMETERS
from xenoglot.codec.requests.names import fit, qualified
from xenoglot.model.json import JSON
from xenoglot.model.request import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.model.request import Request

NAME_LIMITS: Final = (64, 128)
"""To how many characters the dialects fit the names of tools: a model may have read either."""

_NUMBERED = re.compile(r":\d{1,6}$")
_NAME = re.compile(r"[\w.:/-]{1,128}")
_PREFIXES = ("functions.", "function.", "tools.", "tool.")


class DeclaredTool(Struct, frozen=True):
    """A tool as its client knows it, with the schema of its arguments."""

    name: str
    namespace: str | None = None
    schema: JSON = None


class DeclaredTools:
    """Tools by the names that stand in text."""

    __slots__ = ("_known",)

    def __init__(self, known: Mapping[str, DeclaredTool]) -> None:
        self._known = dict(known)

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> DeclaredTools:
        """Return `tools`, each by its name as every dialect writes it."""
        known: dict[str, DeclaredTool] = {}
        for tool in tools:
            schema = tool.parameters if tool.kind == "function" else PARAMETERS
            whole = qualified(tool.name, tool.namespace)
            for name in (whole, *(fit(whole, limit) for limit in NAME_LIMITS)):
                known.setdefault(name, DeclaredTool(tool.name, tool.namespace, schema))
        return cls(known)

    @classmethod
    def by(cls, request: Request) -> DeclaredTools:
        """Return the tools that an answer to `request` may call: none where it forbids calls."""
        choice = request.tool_choice
        if choice is not None and choice.mode == "none":
            return cls({})
        wanted = () if choice is None else choice.names
        tools = [tool for tool in request.tools if isinstance(tool, Tool) and (not wanted or tool.name in wanted)]
        return cls.of(tools)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._known)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._known)

    def resolve(self, name: str) -> str | None:
        """Return the declared name that `name` means: itself, or without `functions.` before it and `:3` after it.

        A namespace may be repeated: `read.read` is `read`, `repo.repo.read` is `repo.read` (Muse Glimmer).
        """
        name = name.strip()
        if name in self._known:
            return name
        bare = _NUMBERED.sub("", name)
        for prefix in _PREFIXES:
            bare = bare.removeprefix(prefix)
        space, _, rest = bare.partition(".")
        if bare not in self._known and rest.partition(".")[0] == space:
            bare = rest
        return bare if bare in self._known else None

    @property
    def only(self) -> str | None:
        """The name of the one tool that is declared; `None` where there are several."""
        tools = {(known.name, known.namespace) for known in self._known.values()}
        return next(iter(self._known)) if len(tools) == 1 else None

    def fitting(self, arguments: Mapping[str, JSON]) -> str | None:
        """Return the one tool that has all of `arguments`, and some; `None` where several have, or none has."""
        tools = {(known.name, known.namespace): name for name, known in reversed(self._known.items())}
        fits = [name for name in tools.values() if arguments and arguments.keys() <= self._parameters(name)]
        return fits[0] if len(fits) == 1 else None

    def _parameters(self, name: str) -> set[str]:
        schema = self._known[name].schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        return set(properties) if isinstance(properties, dict) else set()

    def tool(self, name: str) -> DeclaredTool:
        """Return the tool that is declared by `name`."""
        return self._known[name]

    def schema(self, name: str) -> JSON:
        """Return the schema of the arguments of `name`, as it was declared; `None` where there is none."""
        known = self.resolve(name)
        return None if known is None else self._known[known].schema


class UndeclaredTools(DeclaredTools):
    """Accepts calls of any name: for text whose tools are not known."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__({})

    def __bool__(self) -> bool:
        return True

    def resolve(self, name: str) -> str | None:
        """Return `name` without its prefix and number, if it can be the name of a tool."""
        name = _NUMBERED.sub("", name.strip())
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        return name if _NAME.fullmatch(name) else None

    def tool(self, name: str) -> DeclaredTool:
        """Return a tool without a schema."""
        return DeclaredTool(name)

    def schema(self, name: str) -> JSON:  # noqa: ARG002  any tool
        """Return no schema."""
        return None
