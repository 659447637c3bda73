"""The OpenAPI document: valid by the specification, and with every endpoint that is served and no other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx2
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.gateway.running_gateway import TIMEOUT, config_for, run_gateway
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.admin.route import ADMIN
from xenoglot.gateway.app import Gateway

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminRoute
    from xenoglot.gateway.endpoint.routes import EndpointRow
    from xenoglot.model.json import JSONObject


@pytest.fixture(scope="module")
def document() -> JSONObject:
    """Return the document as a gateway serves it, without a key."""
    with run_gateway({"scripted": Scripted(HELLO)}) as running:
        answer = httpx2.get(f"{running.url}/openapi.json", timeout=TIMEOUT)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found: JSONObject = answer.json()
    return found


@pytest.fixture(scope="module")
def tables() -> tuple[tuple[EndpointRow, ...], tuple[AdminRoute, ...]]:
    """Return the route table, and that of the administration."""
    gateway = Gateway(config_for("scripted"), {"scripted": Scripted(HELLO)})
    return gateway.routes.endpoints, gateway.admin_routes()


def operations(document: JSONObject) -> list[tuple[str, str, JSONObject]]:
    return [
        (method.upper(), path, one) for path, methods in document["paths"].items() for method, one in methods.items()
    ]


def test_the_document_is_valid(document: JSONObject) -> None:
    assert document["openapi"] == "3.1.1"
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_every_route_is_in_it_and_nothing_else(
    document: JSONObject, tables: tuple[tuple[EndpointRow, ...], tuple[AdminRoute, ...]]
) -> None:
    rows, routes = tables
    served = {(row.method, row.path) for row in rows if not row.path.startswith(ADMIN)}
    served |= {(route.method, route.full_path) for route in routes}
    assert sorted((method, path) for method, path, _ in operations(document)) == sorted(served)


def test_an_operation_says_which_key_it_needs(document: JSONObject) -> None:
    open_paths = {path for _, path, one in operations(document) if one["security"] == []}
    assert {"/health", "/health/ready", "/openapi.json"} <= open_paths
    assert not any(path.startswith(ADMIN) or path == "/v1/chat/completions" for path in open_paths)


def test_each_operation_has_a_name_a_summary_and_its_variables(document: JSONObject) -> None:
    found = operations(document)
    names = [one["operationId"] for _, _, one in found]
    assert len(names) == len(set(names))
    for _, path, one in found:
        assert one["summary"].endswith("."), path
        variables = [parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"]
        assert variables == re.findall(r"\{(\w+)\}", path)


def test_the_administration_has_the_schemas_of_its_structs(document: JSONObject) -> None:
    usage = document["paths"]["/admin/v1/usage"]["get"]
    parameters = {one["name"]: one for one in usage["parameters"]}
    assert parameters["from"]["schema"] == {"type": "string", "default": "30d"}
    assert parameters["limit"]["schema"]["maximum"] == 10_000
    assert set(usage["responses"]["200"]["content"]) == {"application/json", "text/csv"}
    translation = document["paths"]["/admin/v1/translate"]["post"]["requestBody"]["content"]["application/json"]
    assert translation["schema"] == {"$ref": "#/components/schemas/TranslationRequest"}
    assert document["components"]["schemas"]["TranslationRequest"]["required"] == ["from", "to"]
