"""Schema of a program's row: how to find it, its dialect, and how to configure its base URL."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from xenoglot.errors import ConfigurationError
from xenoglot.model.json import JSON

ModelRule: TypeAlias = Literal["own", "needed"]
"""Whether the program has models of its own, or needs a model's name."""


class ProgramFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file in the folder of the run: text as is, any other value as JSON (which YAML accepts too)."""

    name: str
    content: JSON


class ProgramLogin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is set in place of a program's usual settings where it keeps its own login and sends it to the gateway.

    The gateway's key goes in a header of its own, `x-xenoglot-key`.
    """

    arguments: tuple[tuple[str, ...], ...] = ()
    env: dict[str, JSON] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    files: tuple[ProgramFile, ...] = ()


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row.

    In all texts of `arguments`, `env` and `files` stand `{url}` for the gateway's address without `/v1`, `{key}` for
    the key it takes, `{model}` for the requested model, `{"model"}` for the model in quotes, `{context}` for
    its context window in tokens, and `{folder}` for the folder of the run; `{=context}` alone is the window as a
    number. Where no model or no window is known, what names one is left out: a group of arguments, a variable, a key,
    the object around a number. A variable that is no text is written as JSON.

    `prompt_tokens` is about how long its first prompt is before the user has typed anything, if that was measured: a
    model with a smaller context window cannot answer it.

    `commands` are the names under which it is installed; none where it is named on the command line. `unset` are
    variables that would send it elsewhere. `login` is set in place of all that where the program keeps its own login.
    `install` is how its own documentation installs it. `tested` is the version last tested so, up to an answer.
    `sources` have the documentation of each fact: `env`, `arguments`, `files`, `unset`, `login`.
    """

    name: str
    title: str
    docs: str
    dialect: str
    commands: tuple[str, ...] = ()
    install: str = ""
    model: ModelRule = "own"
    prompt_tokens: int = 0
    arguments: tuple[tuple[str, ...], ...] = ()
    env: dict[str, JSON] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    files: tuple[ProgramFile, ...] = ()
    login: ProgramLogin | None = None
    tested: str | None = None
    note: str = ""
    sources: dict[str, str] = field(default_factory=dict)

    def with_login(self) -> Program:
        """Return the row for a run in which the program keeps its own login.

        Raises:
            ConfigurationError: it has none that it sends to a gateway.
        """
        login = self.login
        if login is None:
            raise ConfigurationError(f"--auth client: {self.title} sends no login of its own to a gateway; set a key")
        return replace(self, arguments=login.arguments, env=login.env, unset=login.unset, files=login.files)

    @property
    def wants_context(self) -> bool:
        """Whether the program has a setting for the context window of its model."""
        return "context}" in repr((self.arguments, self.env, self.files))
