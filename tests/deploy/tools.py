"""The linters of deploy/ and what else is installed in their environment, as functions for the tests."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from tests.architecture.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from xenoglot.model.json import JSON

BIN = ROOT / ".venv" / "deploy" / "bin"
"""Made by `make .venv/deploy.stamp`."""

_YAML = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout, default=str)"
_PROMQL = "import json, promql_parser, sys; [promql_parser.parse(query) for query in json.load(sys.stdin)]"
_KUBERNETES = """
import json, kubernetes_validate, sys
version, resources = json.load(sys.stdin)
for resource in resources:
    kubernetes_validate.validate(resource, version, strict=True)
"""


def tool(name: str, *arguments: str | Path) -> str:
    """Run a program of the environment in the project's folder; return what it printed.

    Raises:
        AssertionError: it failed, with what it printed.
    """
    command = [str(BIN / name), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def python(code: str, text: str = "", *arguments: str) -> str:
    """Run Python code in the environment, with `text` as its input; return what it printed.

    Raises:
        AssertionError: it failed, with what it printed.
    """
    command = [str(BIN / "python"), "-c", code, *arguments]
    done = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def yaml(text: str) -> list[JSON]:
    """Return the documents of a YAML text."""
    documents: list[JSON] = json.loads(python(_YAML, text))
    return documents


def parse_promql(queries: Sequence[str]) -> None:
    """Parse queries as Prometheus does.

    Raises:
        AssertionError: one is not a query.
    """
    python(_PROMQL, json.dumps(queries))


def validate_kubernetes(resources: Sequence[JSON], version: str) -> None:
    """Compare resources with the schemas of a version of Kubernetes; a field that it does not know is a mistake.

    Raises:
        AssertionError: one does not match.
    """
    python(_KUBERNETES, json.dumps([version, resources]))


def helm(chart: Path, values: JSON, *, lint: bool = False) -> JSON:
    """Render a chart: path of each template -> text; or lint it: the findings. `error` if Helm refuses it."""
    code = """
import json, sys, helm_python.chart as charts
path, lint, values = json.load(sys.stdin)
try:
    found = charts.lint(path, values, strict=True) if lint else charts.Chart.load(path).render(values, name="gateway")
except Exception as error:
    found = {"error": str(error)}
json.dump(found, sys.stdout)
"""
    found: JSON = json.loads(python(code, json.dumps([str(chart), lint, values])))
    return found
