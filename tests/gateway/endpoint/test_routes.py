"""The route table: paths as they stand, templates by the longest text of their own, and nothing else."""

import pytest

from xenoglot import dialect_registry as dialects
from xenoglot.gateway.endpoint.routes import EndpointRow, Routes


async def _nobody(*_: object) -> None:
    raise AssertionError


ROUTES = Routes(
    [
        EndpointRow(method=method, path=path, policy="key", handler=_nobody, dialect=dialects.get("chat"))
        for method, path in (
            ("GET", "/v1/models"),
            ("GET", "/v1/models/{model}"),
            ("POST", "/v1beta/models/{model}:generate"),
            ("POST", "/v1beta/models/{model}:count"),
            ("GET", "/v1/answers/{id}"),
            ("DELETE", "/v1/answers/{id}"),
            ("GET", "/v1/answers/{id}/items"),
            ("GET", "/v1/talks/{id}/items/{item}"),
        )
    ]
)


@pytest.mark.parametrize(
    ("path", "template", "variables"),
    [
        pytest.param("/v1/models", "/v1/models", {}, id="exact"),
        pytest.param("/v1/models/", "/v1/models", {}, id="slash"),
        pytest.param("/models", "/v1/models", {}, id="without-version"),
        pytest.param("/v1/models/a/b", "/v1/models/{model}", {"model": "a/b"}, id="slashes-at-the-end"),
        pytest.param("/models/m", "/v1/models/{model}", {"model": "m"}, id="template-without-version"),
        pytest.param("/v1beta/models/a/b:count", "/v1beta/models/{model}:count", {"model": "a/b"}, id="model-inside"),
        pytest.param("/v1beta/models/%2e:generate", "/v1beta/models/{model}:generate", {"model": "%2e"}, id="escapes"),
        pytest.param("/v1/answers/a/items", "/v1/answers/{id}/items", {"id": "a"}, id="longest"),
        pytest.param("/v1/talks/t/items/i", "/v1/talks/{id}/items/{item}", {"id": "t", "item": "i"}, id="two"),
    ],
)
def test_found(path: str, template: str, variables: dict[str, str]) -> None:
    found = ROUTES.find(path)
    assert {row.path for row in found.rows.values()} == {template}
    assert found.variables == variables


@pytest.mark.parametrize("path", ["/v1//models", "/v1/%2e%2e/models", "/v1/talks/t/u/items/i", "/v1/models//x\n", "/x"])
def test_not_found(path: str) -> None:
    rows = ROUTES.find(path).rows.values()
    assert [row.path for row in rows if row.path != "/v1/models/{model}"] == []


def test_methods_share_a_path() -> None:
    assert sorted(ROUTES.find("/v1/answers/a").rows) == ["DELETE", "GET"]
