"""Loads the object that the command line names as `module:object`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

from xenoglot.errors import ConfigurationError

_FORM: Final = "expected `module:object`, as in `my_model:answer`"


def load(reference: str) -> Any:  # noqa: ANN401  it can be anything
    """Import a module, from the working directory too, and return the object in it.

    The module's code runs, with all rights of this process. What is named is the object itself: it is not called to
    make one.

    Raises:
        ConfigurationError: there is no such module or object, or the module does not load.
    """
    module, colon, path = reference.partition(":")
    if not (colon and all(name.isidentifier() for name in (*module.split("."), *path.split(".")))):
        raise ConfigurationError(f"found `{reference}`; {_FORM}")
    found = _import(module)
    for place, name in enumerate(path.split(".")):
        holder = ".".join([module, *path.split(".")[:place]])
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ConfigurationError(f"`{holder}`{_origin(found)} has no `{name}`") from None
        except Exception as error:
            raise ConfigurationError(f"`{name}` of `{holder}` cannot be had: {_described(error)}") from error
    return found


def _origin(holder: object) -> str:
    """Return where a module came from: one of another place may bear the name that was meant."""
    path = getattr(holder, "__file__", None)
    return f" ({path})" if path else ""


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _import(module: str) -> Any:  # noqa: ANN401  a module
    if (here := str(Path.cwd())) not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            hint = f"; write `{module.removesuffix('.py')}`, without `.py`" if module.endswith(".py") else ""
            raise ConfigurationError(
                f"there is no module `{error.name}` in {here} or where Python looks{hint}"
            ) from None
        raise ConfigurationError(f"`{module}` imports `{error.name}`, which is not installed") from error
    except (Exception, SystemExit) as error:  # a script that parses its own command line, say, ends the process
        raise ConfigurationError(f"`{module}` failed when it was imported: {_described(error)}") from error
