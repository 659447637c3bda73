"""The pinned names against those of the official package, and what a gateway without telemetry loads."""

from __future__ import annotations

import subprocess
import sys

from opentelemetry.semconv import schemas
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes, server_attributes, service_attributes

from xenoglot.gateway.telemetry import conventions
from xenoglot.providers import catalog

OFFICIAL = (
    gen_ai_attributes,
    gen_ai_metrics,
    error_attributes,
    http_attributes,
    server_attributes,
    service_attributes,
)
BUILD = """
import asyncio, sys
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
upstream = {"dialect": "chat", "base_url": "http://127.0.0.1:9"}
config = check({"upstreams": {"up": upstream}, "store": {"url": "memory"}}, {}, "the test")
async def build():
    async with build_gateway(config):
        print([name for name in sys.modules if name.startswith("opentelemetry")])
asyncio.run(build())
"""


def values(module: object) -> set[str]:
    """The constants of a module that are names."""
    return {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}


def test_names_are_those_of_the_conventions() -> None:
    official = {value for module in OFFICIAL for value in values(module)}
    own = {name for name in values(conventions) if "." in name and not name.startswith(("xenoglot.", "http", "1."))}
    assert own - official == set()
    assert {name for name in values(conventions) if name.startswith("http.")} - official == set()
    assert schemas.Schemas.V1_44_0.value == conventions.SCHEMA_URL
    operations = {one.value for one in vars(gen_ai_attributes)["GenAiOperationNameValues"]}
    assert {conventions.CHAT, conventions.EMBEDDINGS, conventions.TEXT_COMPLETION} <= operations


def test_providers_are_called_as_the_conventions_call_them() -> None:
    """`moonshot_ai` was added after the version of the package."""
    official = {one.value for one in vars(gen_ai_attributes)["GenAiProviderNameValues"]} | {"moonshot_ai"}
    rows = [catalog.get(name) for name in catalog.names()]
    assert {row.telemetry for row in rows if row.telemetry is not None} - official == set()
    same = {"openai", "anthropic", "deepseek", "groq"}
    assert {row.name for row in rows if row.telemetry is None and row.name in official} == same


def test_without_telemetry_nothing_of_opentelemetry_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
