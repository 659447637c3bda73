"""The table of the console: the routes of every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.endpoint import ConsoleEndpoint
from xenoglot.gateway.console.fidelity.fidelity_page import FidelityPage
from xenoglot.gateway.console.inspection.request_page import InspectionPages
from xenoglot.gateway.console.login import LoginPages
from xenoglot.gateway.console.management.audit import AuditPage
from xenoglot.gateway.console.management.budgets import BudgetPages
from xenoglot.gateway.console.management.keys import KeyPages
from xenoglot.gateway.console.overview import OverviewPage
from xenoglot.gateway.console.pages.configuration import ConfigurationPages
from xenoglot.gateway.console.pages.connection import ConnectPage
from xenoglot.gateway.console.pages.playground import PlaygroundPage
from xenoglot.gateway.console.pages.translation import TranslationPage
from xenoglot.gateway.console.pages.upstreams import UpstreamPages
from xenoglot.gateway.console.pages.usage import UsagePages
from xenoglot.gateway.console.requests import RequestPages
from xenoglot.gateway.console.sessions import Sessions

if TYPE_CHECKING:
    from xenoglot.gateway.admin.endpoint import AdminEndpoint
    from xenoglot.gateway.admin.services import AdminServices


def console_endpoint(services: AdminServices, admin: AdminEndpoint) -> ConsoleEndpoint:
    """Return what serves the console."""
    sessions, calls = Sessions(services, services.auth), AdminCalls(admin)
    parts = (
        LoginPages(sessions),
        OverviewPage(calls),
        RequestPages(calls),
        InspectionPages(calls),
        TranslationPage(calls),
        PlaygroundPage(calls),
        UsagePages(calls),
        UpstreamPages(calls),
        ConfigurationPages(calls),
        FidelityPage(),
        ConnectPage(calls),
        KeyPages(calls),
        BudgetPages(calls),
        AuditPage(calls),
    )
    routes = [route for part in parts for route in part.routes()]
    return ConsoleEndpoint(routes, sessions, services.bodies)
