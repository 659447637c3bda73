"""System fingerprint of an answer: changes with the build, the weights and the template."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.engine.server.server_process import Settings
    from xenoglot.engine.server.weights import Weights

RUNTIME = "xllamacpp"


def fingerprint(weights: Weights, settings: Settings) -> str:
    """Return the fingerprint; it uses the name and size of the weights, not their content."""
    try:
        size = weights.path.stat().st_size
    except OSError:  # it is reported when the model is started
        size = 0
    facts = (_version("xenoglot"), _version(RUNTIME), weights.path.name, str(size), settings.template)
    return f"fp_{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:10]}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
