"""Further dialects of an upstream, whose clients are answered without translation."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.codec.glob import matches
from xenoglot.codec.target import Target
from xenoglot.gateway.config.schema import join, shown, unknown_name, url_problem
from xenoglot.providers.provider import Auth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config.schema import Problems
    from xenoglot.model.json import JSON
    from xenoglot.providers.provider import Provider, ProviderEndpoint


class ModelOverrides(Struct, frozen=True, kw_only=True):
    """What is known of some models of an upstream, where it is not what is known of all of them."""

    names: tuple[str, ...]
    """Their names, or patterns of them; of several rows that fit the first holds."""
    context: int | None = None
    """The most tokens of prompt and answer together."""
    target: Target = Target()
    text_syntax: str | None = None


class ExtraEndpoint(Struct, frozen=True, kw_only=True):
    """A further dialect of an upstream. What is not set is that of the upstream."""

    dialect: str
    models: tuple[str, ...] = ()
    """Patterns of the models that are called in it; none: all."""
    base_url: str | None = None
    hosted_by: str | None = None
    """The dialect whose servers take the bodies of `dialect`."""
    path: str | None = None
    """Where requests are posted, if that is not the dialect's own path."""
    stream_path: str | None = None
    count_path: str | None = None
    auth: Auth | None = None
    target: Target | None = None
    model_overrides: tuple[ModelOverrides, ...] = ()

    def has(self, model: str | None) -> bool:
        """Return whether `model` is called in it; without a model, whether any is."""
        return model is None or not self.models or any(matches(pattern, model) for pattern in self.models)


def default_endpoints(dialect: JSON, row: Provider | None = None) -> list[JSON]:
    """Return the dialects in addition to the main one that no file has to name.

    Of a provider's dialects those for a single prompt count: a conversation is translated into the main dialect.
    """
    if dialect not in dialects.names():
        return []
    prompts = [
        face.dialect
        for face in (() if row is None else row.faces)
        if face.dialect in dialects.names() and not dialects.get(face.dialect).turns
    ]
    found = dict.fromkeys((*dialects.get(str(dialect)).also, *prompts))
    return [name for name in found if name != dialect]


def tables(said: list[JSON]) -> list[JSON]:
    """Return each entry of `also` as a table: a name alone is the dialect."""
    return [{"dialect": one} if isinstance(one, str) else one for one in said]


def moved(address: str, main: ProviderEndpoint, other: ProviderEndpoint) -> str:
    """Return where the `other` face of a provider is, whose `main` face is at this address and not that of its row."""
    scheme, host, path, query, _ = urlsplit(address)
    ours, theirs = (urlsplit(face.base_url).path for face in (main, other))
    stem = path.rstrip("/")
    return urlunsplit((scheme, host, stem.removesuffix(ours) + theirs if stem.endswith(ours) else stem, query, ""))


def check_extra_endpoints(main: str, also: Sequence[ExtraEndpoint], path: str, problems: Problems) -> None:
    """Note further dialects that do not exist or are set twice, and addresses that are none."""
    taken = {main}
    for index, one in enumerate(also):
        place = f"{join(path, 'also')}[{index}]"
        if one.dialect not in dialects.names():
            problems.add(join(place, "dialect"), unknown_name(one.dialect, dialects.names(), dialects.other_names()))
        elif one.dialect in taken:
            problems.add(join(place, "dialect"), f"found {shown(one.dialect)}, which is set already")
        if one.base_url is not None and (problem := url_problem(one.base_url)):
            problems.add(join(place, "base_url"), problem)
        taken.add(one.dialect)
