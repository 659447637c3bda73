"""Settings of a model with several targets: the targets, their order, retries and failover.

[[models]]
name = "large"
affinity = "session"
targets = [
{ upstream = "east", model = "large-v2", weight = 3 },
{ upstream = "west", model = "large-v2", weight = 1 },
{ upstream = "spare", model = "large-v1", tier = 1, when = { lacks = ["images"] } },
]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from xenoglot.gateway.config.schema import join, shown, unknown
from xenoglot.model.request import Sampling
from xenoglot.policy.capabilities import RequestCondition

if TYPE_CHECKING:
    from collections.abc import Collection

    from xenoglot.gateway.config.schema import Problems

Affinity: TypeAlias = Literal["none", "session", "prefix"]

RANGES: dict[str, tuple[float, float]] = {
    "max_tokens": (1, 2**31),
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (0, 2**31),
    "min_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "top_logprobs": (0, 20),
    "n": (1, 128),
}
"""What a default may be."""


class Caps(Struct, frozen=True, kw_only=True):
    """Upper limits of a request; a reduction is a reported loss."""

    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    n: Annotated[int, Meta(ge=1)] | None = None


class StreamBuffer(Struct, frozen=True, kw_only=True):
    """For how long, and how much of, a stream is held back so that another target can still take its place."""

    seconds: Annotated[float, Meta(ge=0, le=0.75)] = 0.0
    bytes: Annotated[int, Meta(ge=0, le=65_536)] = 65_536


class ModelTarget(Struct, frozen=True, kw_only=True):
    """One that answers to a model's name.

    Those of a lower `tier` are tried before those of a higher one; within a tier `weight` is how often each is
    first. It is passed over where `when` does not hold of a request, unless that is so for all.
    """

    upstream: str | None = None
    model: str | None = None
    weight: Annotated[float, Meta(ge=0, le=1_000_000)] = 1.0
    tier: Annotated[int, Meta(ge=0, le=100)] = 0
    when: RequestCondition = RequestCondition()
    defaults: Sampling = Sampling()
    caps: Caps = Caps()


def check_target(target: ModelTarget, path: str, backends: Collection[str], problems: Problems) -> None:
    """Note what is wrong with a target at `path`; `backends` are the names of all that answer."""
    if target.model is not None and (not target.model or not target.model.isprintable()):
        problems.add(join(path, "model"), f"found {shown(target.model)}; expected a name of printable characters")
    if target.model is not None and "*" in target.model:
        problems.add(join(path, "model"), f"found {shown(target.model)}; only `name` can be a pattern")
    if target.upstream is None and len(backends) != 1:
        problems.add(join(path, "upstream"), f"required where there is more than one: {', '.join(backends)}")
    elif target.upstream is not None and target.upstream not in backends:
        problems.add(join(path, "upstream"), f"found {shown(target.upstream)}: {unknown(target.upstream, backends)}")
    check_defaults(target.defaults, path, problems)


def check_defaults(defaults: Sampling, path: str, problems: Problems) -> None:
    """Note the defaults at `path` that no server takes."""
    for key, (low, high) in RANGES.items():
        value = getattr(defaults, key)
        if value is not None and not low <= value <= high:
            problems.add(f"{path}.defaults.{key}", f"found {value}; expected {low} to {high}")
