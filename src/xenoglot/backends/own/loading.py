"""An object that the operator names on the command line, as `module:object`."""

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
        try:
            found = getattr(found, name)
        except AttributeError:
            holder = ".".join([module, *path.split(".")[:place]])
            raise ConfigurationError(f"`{holder}` has no `{name}`") from None
    return found


def _import(module: str) -> Any:  # noqa: ANN401  a module
    if (here := str(Path.cwd())) not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"there is no module `{error.name}` in {here} or where Python looks") from None
        raise ConfigurationError(f"`{module}` imports `{error.name}`, which is not installed") from error
    except Exception as error:
        raise ConfigurationError(f"`{module}` failed when it was imported: {type(error).__name__}: {error}") from error
