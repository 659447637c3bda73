"""The table of the administration: the routes of every part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.gateway.admin.budgets import BudgetRoutes
from xenoglot.gateway.admin.configuration import ConfigRoutes
from xenoglot.gateway.admin.endpoint import AdminEndpoint
from xenoglot.gateway.admin.keys import KeyRoutes
from xenoglot.gateway.admin.organization import OrganizationRoutes
from xenoglot.gateway.admin.prices import PriceRoutes
from xenoglot.gateway.admin.requests import RequestRoutes
from xenoglot.gateway.admin.translation import TranslationRoutes
from xenoglot.gateway.admin.upstreams import UpstreamRoutes
from xenoglot.gateway.admin.usage import UsageRoutes

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminRoute
    from xenoglot.gateway.admin.services import AdminServices


def admin_routes(services: AdminServices) -> tuple[AdminRoute, ...]:
    """Return the routes of the administration."""
    parts = (
        UsageRoutes(services),
        RequestRoutes(services),
        UpstreamRoutes(services),
        ConfigRoutes(services),
        TranslationRoutes(services),
        PriceRoutes(services),
        KeyRoutes(services, services.auth.stored),
        OrganizationRoutes(services),
        BudgetRoutes(services),
    )
    return tuple(route for part in parts for route in part.routes())


def admin_endpoint(services: AdminServices) -> AdminEndpoint:
    """Return what serves the administration."""
    return AdminEndpoint(admin_routes(services), services.bodies, services.auth, services.routes.endpoints)
