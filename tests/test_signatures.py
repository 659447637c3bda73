"""Every name of the package explains itself: signature, options with their defaults, errors, an example that runs."""

import doctest
import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Struct

import xenoglot
from xenoglot.backends.local_models.adapt import LocalModelOptions
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.options import TOOL_RUN_DEFAULTS, CallOptions, Options, ToolRunOptions
from xenoglot.client.client_options import ClientOptions, ClientSettings
from xenoglot.client.sync import Client
from xenoglot.client.tool_loop.driver import ModelCallOptions
from xenoglot.errors import XenoglotError
from xenoglot.signatures import defaults_of, show_options
from xenoglot.tools.function.docstring import read_docstring
from xenoglot.tools.mcp.tools import McpOptions, _McpSettings
from xenoglot.tools.run_options import RunOptions
from xenoglot.tools.tool import FunctionToolOptions, _FunctionToolSettings

RUN_OPTIONS = sorted(ToolRunOptions.__annotations__.keys() - Options.__annotations__.keys())
SERVE_DEFAULTS = {"text_syntax": "auto"}
CALLS = ("complete", "stream", "parse", "embed", "rerank", "count_tokens", "models", "raw", "run", "run_stream")
PUBLIC = [name for name in xenoglot.__all__ if name != "__version__"]
GIVEN = frozenset({"self", "options", "_"})


def described(value: object) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    return read_docstring(inspect.getdoc(value))[1]


def default_said(text: str) -> object:
    """Return the default that the text of an option ends with; `None` if it has none."""
    found = re.search(r"Default: `(.+)`[^`]*$", text)
    if found is None:
        return None
    return {"True": True, "False": False}.get(found[1], json.loads(found[1]) if found[1][0] in '"0123456789' else None)


def plain(defaults: Mapping[str, object]) -> dict[str, object]:
    """Return the defaults that are no structs: an empty budget is as good as none."""
    return {name: value for name, value in defaults.items() if not isinstance(value, Struct)}


@pytest.mark.parametrize(
    ("value", "options", "defaults"),
    [
        pytest.param(Client, ClientOptions.__annotations__, defaults_of(ClientSettings), id="client"),
        pytest.param(AsyncClient, ClientOptions.__annotations__, defaults_of(ClientSettings), id="async-client"),
        pytest.param(Client.complete, Options.__annotations__, {}, id="complete"),
        pytest.param(AsyncClient.complete, Options.__annotations__, {}, id="async-complete"),
        pytest.param(Client.run, RUN_OPTIONS, TOOL_RUN_DEFAULTS, id="run"),
        pytest.param(AsyncClient.run, RUN_OPTIONS, TOOL_RUN_DEFAULTS, id="async-run"),
        pytest.param(xenoglot.tool, FunctionToolOptions.__annotations__, defaults_of(_FunctionToolSettings), id="tool"),
        pytest.param(xenoglot.mcp_tools, McpOptions.__annotations__, defaults_of(_McpSettings), id="mcp-tools"),
        pytest.param(xenoglot.serve, LocalModelOptions.__annotations__, SERVE_DEFAULTS, id="serve"),
        *(
            pytest.param(kind, kind.__struct_fields__, plain(defaults_of(kind)), id=kind.__name__)
            for kind in (xenoglot.Retry, xenoglot.Deadlines, xenoglot.Emulation, xenoglot.Compaction, xenoglot.Budget)
        ),
    ],
)
def test_each_option_is_described_with_its_default(
    value: object, options: Mapping[str, object], defaults: Mapping[str, object]
) -> None:
    found = described(value)
    assert sorted(set(options) - found.keys()) == []
    assert {name: default_said(found[name]) for name in options} == {name: defaults.get(name) for name in options}


def test_the_defaults_of_a_run_are_those_of_the_loop() -> None:
    options = defaults_of(RunOptions) | defaults_of(ModelCallOptions)
    assert {name: options[name] for name in RUN_OPTIONS if options[name] not in (None, xenoglot.Budget())} == {
        "spent": options["spent"],
        **TOOL_RUN_DEFAULTS,
    }
    assert sorted(options.keys() - {"headers", "timeout", "price", "window"}) == RUN_OPTIONS


@pytest.mark.parametrize(
    ("function", "options", "defaults"),
    [
        pytest.param(Client.__init__, ClientOptions, defaults_of(ClientSettings), id="client"),
        pytest.param(Client.complete, Options, {}, id="complete"),
        pytest.param(Client.stream, Options, {}, id="stream"),
        pytest.param(Client.count_tokens, Options, {}, id="count-tokens"),
        pytest.param(Client.parse, CallOptions, {}, id="parse"),
        pytest.param(Client.run, ToolRunOptions, TOOL_RUN_DEFAULTS, id="run"),
        pytest.param(Client.run_stream, ToolRunOptions, TOOL_RUN_DEFAULTS, id="run-stream"),
        pytest.param(xenoglot.tool, FunctionToolOptions, defaults_of(_FunctionToolSettings), id="tool"),
        pytest.param(xenoglot.mcp_tools, McpOptions, defaults_of(_McpSettings), id="mcp-tools"),
    ],
)
def test_the_signature_lists_the_options(function: Any, options: type, defaults: dict[str, object]) -> None:  # noqa: ANN401  any function
    parameters = inspect.signature(function).parameters
    assert {name: parameters[name].default for name in options.__annotations__} == {
        name: defaults.get(name) for name in options.__annotations__
    }
    assert not [name for name, one in parameters.items() if one.kind is inspect.Parameter.VAR_KEYWORD]
    assert "'" not in str(parameters["model"]) if "model" in parameters else True


def test_annotations_are_shown_as_they_are_written() -> None:
    @show_options(Options, {"n": 2})
    def ask(text: "str | None", **options: object) -> "int":  # noqa: ARG001  only its signature counts
        return 0

    shown = str(inspect.signature(ask))
    assert shown.startswith("(text: str | None, *, model: str | None = None, ")
    assert "n: int | None = 2" in shown
    assert shown.endswith(" -> int")


@pytest.mark.parametrize("name", CALLS)
def test_both_clients_say_the_same(name: str) -> None:
    blocking, asynchronous = (inspect.getdoc(getattr(kind, name)) or "" for kind in (Client, AsyncClient))
    text = asynchronous.replace("`async with`", "`with`")
    assert blocking.partition("\nExample:")[0].strip() == text.partition("\nExample:")[0].strip()
    assert "AsyncClient" not in blocking


def arguments(value: Any) -> set[str]:  # noqa: ANN401  anything public
    """Return the names of what a function or class is given."""
    if isinstance(value, type) and issubclass(value, Struct):
        return set(value.__struct_fields__)
    if isinstance(value, type) and "__init__" not in vars(value):
        return set()
    return set(inspect.signature(value).parameters) - GIVEN


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_says_what_it_takes(name: str) -> None:
    value = getattr(xenoglot, name)
    text = inspect.getdoc(value) or ""
    assert "see `AsyncClient" not in text
    named = described(value).keys() | set(re.findall(r"`(\w+)`", text))
    assert sorted(arguments(value) - named) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_has_an_example(name: str) -> None:
    value = getattr(xenoglot, name)
    if isinstance(value, type) and issubclass(value, XenoglotError):
        value = next(kind for kind in value.__mro__ if "Example:" in (kind.__doc__ or ""))
    assert re.search(r"^Example::?\n", inspect.getdoc(value) or "", re.MULTILINE)


def run_examples(value: Any, name: str) -> int:  # noqa: ANN401  anything public
    """Run the examples of a docstring; return how many there are."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    tests = doctest.DocTestFinder(recurse=False).find(value, name, globs={})
    report: list[str] = []
    for test in tests:
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
    return sum(len(test.examples) for test in tests)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_examples_of_public_names_run(name: str) -> None:
    assert run_examples(getattr(xenoglot, name), name) >= 0


@pytest.mark.parametrize("name", ["complete", "stream", "parse", "raw", "run"])
def test_the_examples_of_calls_run(name: str) -> None:
    assert run_examples(getattr(Client, name), name) > 0
