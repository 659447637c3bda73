"""Loads the hooks of a configuration: those of this package, those of installed packages, and objects of the user's.

A hook is named by an entry point of the group `xenoglot.hooks`, or as `module:object`. A class or a function is called
with the options as keyword arguments, and returns the hook; any other object, a module too, is the hook itself.
"""

from __future__ import annotations

from inspect import isclass, isfunction
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from xenoglot.backends.local_models.load_object import load
from xenoglot.backends.user_traceback import USER_CODE, has_user_frames, user_traceback
from xenoglot.entry_points import PluginEntry, entries
from xenoglot.errors import ConfigurationError
from xenoglot.hooks.hook import (
    AFTER_RESPONSE,
    BEFORE_REQUEST,
    METHODS,
    ON_EVENT,
    AfterResponse,
    BeforeRequest,
    HookSettings,
    OnEvent,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GROUP: Final = "xenoglot.hooks"
OWN: Final = {
    name: PluginEntry(name, f"xenoglot.hooks.{module}")
    for name, module in (
        ("deny_list", "deny_list:DenyList"),
        ("redact", "redact:Redact"),
        ("webhook", "webhook:Webhook"),
    )
}
"""The hooks of this package."""


class LoadedHook(Struct, frozen=True, kw_only=True):
    """A hook with its settings, and its methods; `None` where it has none."""

    settings: HookSettings
    hook: object
    before_request: BeforeRequest | None = None
    on_event: OnEvent | None = None
    after_response: AfterResponse | None = None

    @property
    def name(self) -> str:
        """The name of the hook in the log."""
        return self.settings.use

    @property
    def sees_answers(self) -> bool:
        """Whether it has anything to do with answers."""
        return self.on_event is not None or self.after_response is not None


def load_hooks(settings: Sequence[HookSettings]) -> tuple[LoadedHook, ...]:
    """Return the hooks of `settings`, in order. Their modules are imported, so their code runs.

    Raises:
        ConfigurationError: one cannot be loaded, or is none.
    """
    known = {**entries(GROUP), **OWN} if settings else {}
    return tuple(_loaded(one, f"hooks[{index}]", known) for index, one in enumerate(settings))


def _loaded(settings: HookSettings, path: str, known: Mapping[str, PluginEntry]) -> LoadedHook:
    hook = _made(_found(settings.use, path, known), settings, path)
    methods = {name: method for name in METHODS if callable(method := getattr(hook, name, None))}
    if not methods:
        expected = ", ".join(f"`{name}`" for name in METHODS)
        raise ConfigurationError(f"{path}.use: `{settings.use}` is no hook; it has none of the methods {expected}")
    return LoadedHook(
        settings=settings,
        hook=hook,
        before_request=methods.get(BEFORE_REQUEST),
        on_event=methods.get(ON_EVENT),
        after_response=methods.get(AFTER_RESPONSE),
    )


def _found(name: str, path: str, known: Mapping[str, PluginEntry]) -> Any:  # noqa: ANN401  it can be anything
    """Return what `name` stands for."""
    entry = known.get(name)
    if entry is None and ":" not in name:
        names = ", ".join(f"`{one}`" for one in sorted(known))
        raise ConfigurationError(f"{path}.use: found `{name}`; expected one of {names}, or `module:object`")
    try:
        return load(name if entry is None else entry.value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}.use: {error}") from error


def _made(found: Any, settings: HookSettings, path: str) -> object:  # noqa: ANN401  as above
    """Return the hook that `found` is, or makes."""
    if not isclass(found) and not isfunction(found):
        if settings.options:
            raise ConfigurationError(f"{path}.options: `{settings.use}` is an object, which takes none")
        hook: object = found
        return hook
    try:
        made: object = found(**settings.options)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}.options: {error}") from error
    except Exception as error:
        if has_user_frames(error):
            USER_CODE.error("hook `%s` cannot be made:\n%s", settings.use, user_traceback(error))
        raise ConfigurationError(
            f"{path}.options: `{settings.use}` cannot be made: {type(error).__name__}: {error}"
        ) from error
    return made
