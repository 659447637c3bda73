"""What the endpoints that answer in one piece, and with no words of a model, have in common."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from xenoglot.codec.loss import Losses
from xenoglot.gateway.observability.request_log import LOSSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.routing.router import Route
    from xenoglot.model.json import JSON
    from xenoglot.model.limits import RateLimits


def with_path_model(body: JSON, variables: Mapping[str, str]) -> JSON:
    """Return the body with the model that stands in the path, where one does."""
    if isinstance(body, dict) and "model" in variables:
        return body | {"model": unquote(variables["model"])}
    return body


def note_route(record: RequestLog, route: Route) -> Losses:
    """Note who answers, and return where to record what is lost on the way there."""
    record.routed(route)
    losses = Losses(strict=route.on_loss == "refuse")
    record.losses = () if route.on_loss == "ignore" else losses
    return losses


def report_headers(record: RequestLog, dialect: Dialect, limits: RateLimits | None = None) -> list[tuple[str, str]]:
    """Return the headers that tell what was lost, and what the upstream allows."""
    headers = [] if limits is None else [*dialect.encode_limits(limits, time.time())]
    if said := record.tell_losses():
        headers.append((LOSSES, said))
    return headers
