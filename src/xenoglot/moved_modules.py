"""Old import paths and names that are public: each works for one release, with a deprecation warning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

MOVED = {
    "xenoglot.agent.workspace": "xenoglot.agent.sandbox.workspace",
    "xenoglot.backends.own": "xenoglot.backends.local_models",
    "xenoglot.backends.own.recognise": "xenoglot.backends.local_models.adapt",
    "xenoglot.backends.structured": "xenoglot.backends.wrappers.json_output",
    "xenoglot.backends.transport": "xenoglot.backends.http.client",
    "xenoglot.client.costs": "xenoglot.providers.costs",
    "xenoglot.client.results.costs": "xenoglot.providers.costs",
    "xenoglot.client.schemas": "xenoglot.client.results.schemas",
    "xenoglot.client.sdks": "xenoglot.client.sdk.answers",
    "xenoglot.codec.names": "xenoglot.codec.requests.names",
    "xenoglot.codec.sse": "xenoglot.codec.framing.sse",
    "xenoglot.gateway.asgi": "xenoglot.gateway.http.asgi",
    "xenoglot.policy.verdict": "xenoglot.policy.failure_policy",
    "xenoglot.text.parsing": "xenoglot.text.parse_api",
    "xenoglot.text.partial_json": "xenoglot.text.json.partial",
    "xenoglot.text.repair": "xenoglot.text.json.repair",
}
"""Modules that the documentation of the last release imports, with their paths of today."""

RENAMED = {
    "xenoglot": {"AnswerCutError": "xenoglot.client.results.parsed.AnswerTruncatedError"},
    "xenoglot.agent.agent": {"Manner": "xenoglot.agent.agent.AgentSettings"},
    "xenoglot.backends.remote": {"Remote": "xenoglot.backends.remote.backend.Remote"},
    "xenoglot.gateway.limits": {
        "MemoryLimiter": "xenoglot.gateway.limits.limiter.MemoryLimiter",
        "Scope": "xenoglot.policy.limits.usage_ledger.Scope",
        "Window": "xenoglot.policy.limits.usage_ledger.Window",
    },
    "xenoglot.tools.events": {
        "Added": "xenoglot.tools.events.MessagesAdded",
        "ApprovalAsked": "xenoglot.tools.events.ApprovalRequested",
        "ApprovalGiven": "xenoglot.tools.events.ApprovalReceived",
        "BrokenOff": "xenoglot.tools.events.AnswerAborted",
    },
    "xenoglot.tools.tool": {"GivenTool": "xenoglot.tools.tool.SchemaTool"},
}
"""Names that it imports from modules which still exist, with what they are today."""


class MovedModules:
    """Finds a moved module by its old path. It stands last among the finders: existing modules never reach it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a moved module, or `None` for any other name."""
        del path, target
        return ModuleSpec(fullname, self) if fullname in MOVED else None  # type: ignore[arg-type]  # a loader by shape

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module at its new path in the place of the one at its old path; warns about the old path."""
        old = module.__name__
        warnings.warn(f"`{old}` has moved to `{MOVED[old]}`", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(MOVED[old])


def renamed(module: str, name: str) -> object:
    """Return what `name` of `module` is today; warns about the old name.

    Raises:
        AttributeError: the module never had such a name.
    """
    new = RENAMED.get(module, {}).get(name)
    if new is None:
        raise AttributeError(f"module `{module}` has no attribute `{name}`")
    warnings.warn(f"`{module}.{name}` is now `{new}`", DeprecationWarning, stacklevel=3)
    home, _, current = new.rpartition(".")
    found: object = getattr(import_module(home), current)
    return found


def install() -> None:
    """Add the finder, once."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
