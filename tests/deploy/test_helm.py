"""The Helm chart: linted and rendered by Helm itself, and what it renders compared with the schemas of Kubernetes."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.architecture.tree import ROOT
from tests.deploy.tools import helm, tool, validate_kubernetes, yaml
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.serve import GRACE_SECONDS

if TYPE_CHECKING:
    from xenoglot.gateway.config.load import Config

CHART = ROOT / "deploy" / "helm" / "xenoglot"
VERSIONS = ("1.30.0", "1.34.0")
"""The oldest Kubernetes that the chart supports, and a newer one."""

SECRET = {"GATEWAY_KEYS": "k" * 32, "GATEWAY_ADMIN_KEY": "a" * 32, "OPENAI_API_KEY": "o" * 32}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example/xenoglot", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "secrets": {"values": SECRET},
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
    "drain": {"preStopSeconds": 7, "seconds": 90},
    "service": {"annotations": {"a": "b"}},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a": "b"}},
    "networkPolicy": {
        "ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "web"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 443, "protocol": "TCP"}]}],
    },
    "serviceAccount": {"annotations": {"a": "b"}},
    "podMonitor": {"enabled": True},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "models"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
"""Values that switch every part of every template on."""

LITTLE: dict[str, Any] = {
    "secrets": {"existing": "keys"},
    "autoscaling": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "serviceAccount": {"create": False},
    "topologySpread": False,
}
"""Values that switch everything off."""


def resources(values: dict[str, Any]) -> dict[str, Any]:
    """Render the chart; return its resources by kind."""
    rendered: Any = helm(CHART, values)
    assert "error" not in rendered, rendered["error"]
    texts = [text for path, text in rendered.items() if path.endswith(".yaml") and text.strip()]
    documents: list[Any] = yaml("\n---\n".join(texts))
    return {document["kind"]: document for document in documents}


def container(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pod that the chart renders, and its container."""
    pod = resources(values)["Deployment"]["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def configured(values: dict[str, Any]) -> Config:
    """Return the configuration that the gateway reads in a pod."""
    text = resources(values)["ConfigMap"]["data"]["xenoglot.toml"]
    stores = {"STORE_URL": "postgresql://host/x", "LIMITS_URL": "redis://host:6379/0"}
    return check(tomllib.loads(text), SECRET | stores, "values.yaml")


@pytest.mark.parametrize("values", [{}, EVERYTHING, LITTLE], ids=["defaults", "everything", "little"])
def test_helm_lint_finds_nothing(values: dict[str, Any]) -> None:
    report: Any = helm(CHART, values, lint=True)
    notable = [message for message in report["messages"] if "icon is recommended" not in message["error"]]
    assert (notable, report["errors"]) == ([], [])


@pytest.mark.parametrize("values", [{}, EVERYTHING, LITTLE], ids=["defaults", "everything", "little"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_rendered_matches_the_schemas_of_kubernetes(values: dict[str, Any], version: str) -> None:
    rendered = resources(values)
    rendered.pop("PodMonitor", None)  # a resource of the Prometheus operator, whose schema is not among them
    validate_kubernetes(list(rendered.values()), version)


def test_each_part_can_be_switched() -> None:
    assert sorted(resources(EVERYTHING)) == [
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "Ingress",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PodMonitor",
        "Secret",
        "Service",
        "ServiceAccount",
    ]
    assert sorted(resources(LITTLE)) == ["ConfigMap", "Deployment", "Service"]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_a_pod_drains_before_it_is_killed(values: dict[str, Any]) -> None:
    """The gateway's own reading of the rendered file counts, not the values."""
    pod, gateway = container(values)
    pause = gateway["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = configured(values).server.drain_seconds
    assert drain == values.get("drain", {"seconds": 30})["seconds"]
    assert pod["terminationGracePeriodSeconds"] > pause + drain + GRACE_SECONDS


def test_a_configuration_without_the_drain_of_the_values_is_refused() -> None:
    said: Any = helm(CHART, {"config": "[keys]\n", "drain": {"seconds": 90}})
    assert "set `drain_seconds = " in said["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"replicas": "two"}, id="type"),
        pytest.param({"replica": 2}, id="unknown"),
        pytest.param({"image": {"digest": "latest"}}, id="digest"),
        pytest.param({"drain": {"seconds": 0}}, id="no-drain"),
        pytest.param({"secrets": {"values": {"not-a-variable": "x"}}}, id="name-of-a-variable"),
    ],
)
def test_the_schema_refuses_wrong_values(wrong: dict[str, Any]) -> None:
    said: Any = helm(CHART, wrong)
    assert "values don't meet the specifications of the schema" in said["error"]


def test_the_schema_knows_every_value() -> None:
    [values] = yaml((CHART / "values.yaml").read_text(encoding="utf-8"))
    [schema] = yaml((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) - {"global"} == set(values)


def test_probes_ask_for_health_and_the_pod_can_do_nothing_else() -> None:
    pod, gateway = container({})
    paths = {name: gateway[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz?exclude=store"}
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert gateway["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_change_of_configuration_or_keys_starts_new_pods() -> None:
    def marks(values: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = resources(values)["Deployment"]["spec"]["template"]["metadata"]["annotations"]
        return found

    first, other = marks({"secrets": {"values": SECRET}}), marks({"secrets": {"values": {"GATEWAY_KEYS": "new"}}})
    assert first["checksum/config"] == other["checksum/config"]
    assert first["checksum/secrets"] != other["checksum/secrets"]


def test_the_default_configuration_is_one() -> None:
    assert configured({}).keys.admin_env == ("GATEWAY_ADMIN_KEY",)


def test_the_labels_of_a_pod_match_its_selectors() -> None:
    rendered = resources(EVERYTHING)
    labels = rendered["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    for kind, selector in {
        "Deployment": rendered["Deployment"]["spec"]["selector"]["matchLabels"],
        "Service": rendered["Service"]["spec"]["selector"],
        "PodDisruptionBudget": rendered["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "NetworkPolicy": rendered["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        "PodMonitor": rendered["PodMonitor"]["spec"]["selector"]["matchLabels"],
    }.items():
        assert selector.items() <= labels, kind


def test_yaml_is_in_form() -> None:
    """Templates are no YAML, so only what is."""
    tool("yamllint", "--strict", "--config-file", "deploy/yamllint.yml", CHART / "values.yaml", CHART / "Chart.yaml")
