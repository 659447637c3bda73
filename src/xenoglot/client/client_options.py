"""Options of a client: the keyword arguments of `Client` and `AsyncClient`, as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from xenoglot.client.call.open_upstream import UpstreamOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.http.timeouts import Deadlines
    from xenoglot.backends.wrappers.emulation_settings import Emulation
    from xenoglot.client.call.execute import OnLoss
    from xenoglot.client.call.retry import ClientEnvironment
    from xenoglot.policy.target_health import Retry
    from xenoglot.providers.costs import Prices


class ClientOptions(TypedDict, total=False):
    """The keyword arguments; see `AsyncClient` for their meaning and `ClientSettings` for their defaults."""

    model: str | None
    dialect: str | None
    key: str | None
    key_env: str | None
    auth: str | None
    sign_in: Mapping[str, object] | None
    headers: Mapping[str, str] | None
    settings: Mapping[str, str] | None
    deadlines: Deadlines | None
    retry: Retry | None
    on_loss: OnLoss
    proxy: str | None
    text_syntax: str | None
    emulate: Emulation | None
    prices: Prices | None
    world: ClientEnvironment | None


class ClientSettings(UpstreamOptions, frozen=True, kw_only=True):
    """The options of a client with their defaults. Raises `TypeError` for an unknown option."""

    retry: Retry | None = None
    on_loss: OnLoss = "warn"
    prices: Prices | None = None
    world: ClientEnvironment | None = None
