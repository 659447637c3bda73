"""The OpenAPI document of every endpoint, made from the route table and the table of the administration.

https://spec.openapis.org/oas/v3.1.1.html. Bodies of the administration are described by the structs that decode and
encode them; bodies of a dialect are those of its vendor's API, so here they are any object. `x-access` is the policy of
a row of the route table.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

import msgspec

from xenoglot.gateway.admin.route import ADMIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from msgspec import Struct

    from xenoglot.gateway.admin.route import AdminRoute
    from xenoglot.gateway.endpoint.routes import EndpointRow
    from xenoglot.model.json import JSON, JSONObject

VERSION: Final = "3.1.1"
MEDIA_TYPE: Final = "application/json"

SUMMARIES: Final = {
    "/": "Return a line of text about the gateway.",
    "/admin/v1/{path}": "Administer the gateway.",
    "/api/hello": "Return 200.",
    "/health": "Return 200 while the process serves.",
    "/health/ready": "Return 200 while new requests are accepted, else 503.",
    "/metrics": "Return metrics in the text format of Prometheus.",
    "/openapi.json": "Return this document.",
    "/livez": "Return 200 while the process serves.",
    "/readyz": "Return 200 while new requests are accepted, else 503.",
    "/v1/key": "Return what the caller's key may do.",
    "/v1/models": "List the models, in the form of the client's dialect.",
    "/v1/models/{model}": "Return one model.",
    "/v1/parse": "Parse tool calls and reasoning in a text. No model is used.",
    "/v1/usage": "Sum the usage of the caller.",
}
"""What endpoints of the gateway itself do, by path."""

ACCESS: Final = {
    "open": "No key is needed.",
    "key": "Needs a client's key, if the gateway has any.",
    "admin": "Needs a key with the role admin or viewer, if there is one.",
    "view": "Needs a key with the role admin or viewer.",
    "manage": "Needs a key with the role admin.",
}

_SCHEMES: Final = ("bearer", "x-api-key", "api-key", "x-goog-api-key")
_VARIABLE = re.compile(r"\{(\w+)\}")
_REFERENCE: Final = "#/components/schemas/{name}"

_ERROR: Final[JSONObject] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "The path of the field that is wrong."},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def openapi_document(rows: Sequence[EndpointRow], routes: Sequence[AdminRoute]) -> JSONObject:
    """Return the document of the `rows` of the route table and the `routes` of the administration."""
    kinds = dict.fromkeys(kind for route in routes for kind in (route.query, route.takes, route.returns) if kind)
    schemas, components = msgspec.json.schema_components(list(kinds), ref_template=_REFERENCE)
    found = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, JSONObject] = {}
    described = {(route.method, route.full_path) for route in routes}
    for row in rows:
        if not row.path.startswith(ADMIN) and (row.method, row.path) not in described:
            paths.setdefault(row.path, {}).setdefault(row.method.lower(), _operation(row))
    for route in routes:
        operation = _admin_operation(route, found, components)
        paths.setdefault(route.full_path, {})[route.method.lower()] = operation
    return {
        "openapi": VERSION,
        "info": {
            "title": "Xenoglot",
            "version": _version(),
            "description": "A gateway between the APIs of language models. Paths also work without `/v1` at the"
            " beginning, and with a slash at the end.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Error": _ERROR, **components},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                **{name: {"type": "apiKey", "in": "header", "name": name} for name in _SCHEMES[1:]},
            },
        },
        "tags": [{"name": name} for name in sorted({*_tags(rows), "administration"})],
    }


def _operation(row: EndpointRow) -> JSONObject:
    """Return the description of a row of the route table."""
    body: JSONObject = {"type": "object"}
    media = "multipart/form-data" if row.form else MEDIA_TYPE
    content: JSONObject = {MEDIA_TYPE: {"schema": {}}}
    if row.generates:
        content |= {_stream_type(row): {"schema": {"type": "string"}}}
    headers = [_header("idempotency-key", "A repeated request with the same key gets the same response.")]
    operation: JSONObject = {
        "operationId": _operation_id(row.method, row.path),
        "summary": _summary(row),
        "description": ACCESS[row.policy],
        "tags": list(_tags([row])),
        "parameters": [*_variables(row.path), *(headers if row.once else ())],
        "responses": {"200": {"description": "The result.", "content": content}, **_failures(row)},
        "security": _security(row.policy),
        "x-access": row.policy,
    }
    if row.method == "POST":
        operation["requestBody"] = {"content": {media: {"schema": body}}}
    return operation


def _admin_operation(
    route: AdminRoute, schemas: dict[type[Struct], JSONObject], components: dict[str, JSONObject]
) -> JSONObject:
    """Return the description of a route of the administration."""
    policy = "view" if route.method == "GET" else "manage"
    content: JSONObject = {MEDIA_TYPE: {"schema": _result(route, schemas)}}
    content |= {media.partition(";")[0]: {"schema": {"type": "string"}} for media in route.media_types}
    error = {"description": "An error.", "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    operation: JSONObject = {
        "operationId": _operation_id(route.method, route.full_path),
        "summary": route.summary,
        "description": ACCESS[policy],
        "tags": ["administration"],
        "parameters": [*_variables(route.full_path), *_query(schemas[route.query], components)],
        "responses": {str(route.status): {"description": "The result.", "content": content}, "default": error},
        "security": _security(policy),
        "x-access": policy,
    }
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": {MEDIA_TYPE: {"schema": schemas[route.takes]}}}
    return operation


def _result(route: AdminRoute, schemas: dict[type[Struct], JSONObject]) -> JSONObject:
    """Return the schema of a route's response."""
    if route.returns is None:
        return {"type": "object"}
    row = schemas[route.returns]
    if not route.paged:
        return row
    return {
        "type": "object",
        "required": ["object", "data", "has_more", "next"],
        "properties": {
            "object": {"const": "list"},
            "data": {"type": "array", "items": row},
            "has_more": {"type": "boolean"},
            "next": {"type": ["string", "null"], "description": "The value of `after` for the following page."},
        },
    }


def _query(schema: JSONObject, components: dict[str, JSONObject]) -> Iterator[JSONObject]:
    """Yield the parameters of a query, from the schema of its struct."""
    described = components[str(schema["$ref"]).rpartition("/")[2]]
    required = described.get("required", [])
    for name, kind in described.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in required, "schema": kind}


def _failures(row: EndpointRow) -> JSONObject:
    described = "An error, in the form of the client's dialect." if row.dialect is None else "An error of this dialect."
    return {"default": {"description": described, "content": {MEDIA_TYPE: {"schema": {"type": "object"}}}}}


def _summary(row: EndpointRow) -> str:
    """Return what a row is for, in one sentence."""
    if row.dialect is None:
        return SUMMARIES.get(row.path, f"Serve {row.path}.")
    if row.generates:
        return f"Have a model answer, in the dialect {row.dialect.name}."
    return f"As in the API of the dialect {row.dialect.name}."


def _stream_type(row: EndpointRow) -> str:
    media = None if row.dialect is None else row.dialect.framing.media_type
    return (media or "text/event-stream").partition(";")[0]


def _tags(rows: Iterable[EndpointRow]) -> Iterator[str]:
    """Yield the group of each row: its dialect, or the gateway."""
    for row in rows:
        yield "gateway" if row.dialect is None else row.dialect.name


def _variables(path: str) -> Iterator[JSONObject]:
    for name in _VARIABLE.findall(path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _header(name: str, described: str) -> JSONObject:
    return {"name": name, "in": "header", "description": described, "schema": {"type": "string"}}


def _security(policy: str) -> list[JSON]:
    """Return how a key can be shown: in one of several headers, or not at all."""
    return [] if policy == "open" else [{name: []} for name in _SCHEMES]


def _operation_id(method: str, path: str) -> str:
    return re.sub(r"\W+", "_", f"{method.lower()}_{path}").strip("_")


def _version() -> str:
    """Return the version of the gateway, which a copy that is not installed does not know."""
    try:
        return version("xenoglot")
    except PackageNotFoundError:
        return "0"
