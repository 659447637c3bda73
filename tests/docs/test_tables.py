"""The tables of the pages say what the code says."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from tests.docs.pages import ROOT, UNSET, Rows, code, columns, table
from tests.gateway.running_gateway import config_for, endpoint_rows
from tests.gateway.scripted_backends import HELLO
from xenoglot import dialect_registry as dialects
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.remote.sign_in.settings import SignInSettings
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import How, Losses
from xenoglot.codec.target import Field, Target
from xenoglot.gateway.admin.route import ADMIN
from xenoglot.gateway.api.operations import COUNT
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config import ledger, load, local_models, named_keys, settings, telemetry, tenants
from xenoglot.gateway.config.extra_endpoints import ExtraEndpoint, ModelOverrides
from xenoglot.gateway.config.limits import LimitBackend, LimitSettings
from xenoglot.gateway.config.local_models import Emulate
from xenoglot.gateway.config.targets import Caps, ModelTarget, StreamBuffer
from xenoglot.gateway.config.tools import settings as tools
from xenoglot.gateway.endpoint import responses
from xenoglot.gateway.observability.request_log import CACHE, COST, LOSSES, SUBSTITUTED, TARGET, LogLine
from xenoglot.gateway.store_service import NOT_KEPT
from xenoglot.hooks.hook import HookSettings
from xenoglot.model import content, events
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.request import BUDGETS, Request, Sampling, effort_of
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage
from xenoglot.policy.capabilities import RequestCondition
from xenoglot.policy.failure_policy import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON

BOTH = [dialects.get("chat"), dialects.get("messages")]
WORDS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    Emulate: "table",
    Target: "table",
    LimitSettings: "table",
    settings.LoadMetrics: "table",
    StreamBuffer: "table",
    Caps: "table",
    RequestCondition: "table",
    Sampling: "table",
    ModelTarget: "table",
}
GAP = 1000  # tokens between two budgets, much smaller than any distance of theirs


def names(kinds: tuple[type, ...] | dict[type, Any]) -> str:
    """The names of classes, as the pages write them."""
    return code(*(kind.__name__ for kind in kinds))


# -- configuration.md


def type_words(kind: Any) -> str:  # noqa: ANN401, PLR0911  a type; one for each form
    """How a page names the type of a key."""
    origin, arguments = get_origin(kind), [kind for kind in get_args(kind) if kind is not NoneType]
    if set(arguments) == {str, tuple[str, ...]}:
        return "string, or list of strings"
    if origin in {Union, UnionType} and set(arguments) == set(get_args(settings.Preserve)):
        return 'boolean, `"translated"`'
    if origin is Annotated or origin in {Union, UnionType}:
        return type_words(arguments[0])
    if origin is Literal:
        return code(*(f'"{word}"' for word in arguments))
    if kind == dict[str, Any]:
        return "table"
    if kind == tuple[Field, ...]:
        return "list of fields"
    if kind in (tuple[Reason, ...], tuple[content.HostedKind, ...]):
        return "list of words"
    if origin is tuple:
        return f"list of {type_words(arguments[0])}s"
    return f"table of {type_words(arguments[1])}s" if origin is dict else WORDS[kind]


def default_words(field: msgspec.structs.FieldInfo) -> str:
    """How a page writes the default of a key, which is as TOML writes it."""
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT:
        return "`{}`"
    said = msgspec.to_builtins(field.default)
    if isinstance(field.default, msgspec.Struct):
        said = {key: value for key, value in said.items() if value not in (None, [], ())} or None
    return UNSET if said is None else code(msgspec.json.encode(said).decode())


def keys(kind: type[msgspec.Struct], *without: str) -> Rows:
    """The rows of the keys of one table of the file."""
    fields = [field for field in msgspec.structs.fields(kind) if field.name not in without]
    return [[code(field.name), type_words(field.type), default_words(field)] for field in fields]


KEYS = {
    "`[server]`": keys(settings.ServerSettings, "connections"),
    "`[server.connections]`": keys(settings.ConnectionSettings),
    "`[keys]`": keys(settings.KeySettings, "named"),
    "`[keys.named.NAME]`": keys(named_keys.NamedKey),
    "`[tenants.NAME]`": keys(tenants.Tenant),
    "`[clients.NAME]`": keys(settings.ClientDialect),
    "`[upstreams.NAME]`": keys(
        settings.UpstreamSettings,
        "deadlines",
        "target",
        "emulate",
        "model_overrides",
        "also",
        "retry",
        "breaker",
        "sign_in",
    ),
    "`[upstreams.NAME.sign_in]`": keys(SignInSettings),
    "`[upstreams.NAME.deadlines]`": keys(Deadlines),
    "`[upstreams.NAME.target]`": keys(Target),
    "`[[upstreams.NAME.model_overrides]]`": keys(ModelOverrides, "target"),
    "`[[upstreams.NAME.also]]`": keys(ExtraEndpoint, "target", "model_overrides"),
    "`[upstreams.NAME.emulate]`": keys(Emulate),
    "`[upstreams.NAME.load_metrics]`": keys(settings.LoadMetrics),
    "`[fetch]`": keys(settings.FetchSettings),
    "`[store]`": keys(settings.StoreSettings),
    "`[ledger]`": keys(ledger.LedgerSettings),
    "`[telemetry]`": keys(telemetry.TelemetrySettings),
    "`[log]`": keys(settings.LogSettings),
    "`[capture]`": keys(ledger.CaptureSettings),
    "`[tools]`": keys(tools.HostedToolSettings, "web_search", "web_fetch", "code_execution", "mcp"),
    "`[tools.web_search]`": keys(tools.SearchSettings),
    "`[tools.web_fetch]`": keys(tools.PageSettings),
    "`[tools.code_execution]`": keys(tools.CodeSettings),
    "`[tools.mcp.servers.NAME]`": keys(tools.McpServerSettings),
    "`[[prices]]`": keys(ledger.PriceSettings),
    "`[[budgets]]`": keys(ledger.BudgetSettings),
    "`[cache]`": keys(settings.CacheSettings),
    "`[[hooks]]`": keys(HookSettings),
    "`[limits]`": keys(LimitBackend),
    "`[batches]`": keys(settings.BatchSettings),
    "`[embedded]`": keys(local_models.Embedded, "models"),
    "`[embedded.models.NAME]`": keys(local_models.EmbeddedModel),
    "`[[models]]`": keys(settings.ModelSettings, "defaults"),
    "`[[models.targets]]`": keys(ModelTarget),
    "`[models.defaults]`": [[code(field.name), type_words(field.type)] for field in msgspec.structs.fields(Sampling)],
}


@pytest.mark.parametrize("heading", KEYS)
def test_every_key_of_the_file_is_explained(heading: str) -> None:
    assert columns("configuration.md", heading, len(KEYS[heading][0])) == KEYS[heading]


def test_every_table_of_the_file_is_explained() -> None:
    tables = {field.name for field in msgspec.structs.fields(load.Config)} - {"secrets", "on_loss"}
    assert {re.split(r"[.\]]", heading.strip("`[]"))[0] for heading in KEYS} == tables


def test_every_limit_is_explained() -> None:
    assert columns("limits.md", "What can be limited", 3) == keys(LimitSettings)


# -- admin-api.md


def test_every_endpoint_of_the_administration_is_on_its_page() -> None:
    gateway = Gateway(config_for("scripted"), {"scripted": Scripted(HELLO)})
    served = {(code(route.method), code(route.path)) for route in gateway.admin_routes() if route.base == ADMIN}
    listed = [
        (method, path) for methods, path in columns("admin-api.md", "Endpoints", 2) for method in methods.split(", ")
    ]
    assert (len(listed), set(listed)) == (len(served), served)


# -- gateway.md


def test_every_endpoint_is_there() -> None:
    rows = [[code(row.method), code(row.path), row.policy] for row in endpoint_rows()]
    assert sorted(columns("gateway.md", "Endpoints", 3)) == sorted(rows)


def error_rows() -> Iterator[list[str]]:
    """How each dialect says each kind of failure, and whether a client is told not to try again."""
    for kind in get_args(FailureKind):
        failure = Failure(kind=kind, message="it went wrong")
        (chat_status, chat), (messages_status, messages) = (dialect.encode_error(failure) for dialect in BOTH)
        again = dict(responses.retry_headers(failure)).get("x-should-retry", UNSET)
        error = chat["error"]
        chat_words = [code(error["type"]), UNSET if error["code"] is None else code(error["code"])]
        yield [code(kind), str(chat_status), *chat_words, str(messages_status), code(messages["error"]["type"]), again]


def test_every_kind_of_failure_is_there() -> None:
    assert table("gateway.md", "Errors") == list(error_rows())


def test_every_field_of_the_log_is_explained() -> None:
    fields = [[code(name)] for name in LogLine.__struct_fields__]
    assert columns("gateway.md", "The log", 1) == fields


def test_every_header_of_ours_is_explained() -> None:
    explained = {
        name for row in table("gateway.md", "Headers of a response") for name in re.findall(r"`([^`]+)`", row[0])
    }
    assert {SUBSTITUTED, TARGET, COUNT, LOSSES, COST, CACHE, "age", NOT_KEPT[0]} <= explained


# -- model.md


def test_the_grammar_is_that_of_the_code() -> None:
    rows = [[code(state), stays(kinds, state), moves(kinds, state)] for state, kinds in events.GRAMMAR.items()]
    assert table("model.md", "What may follow what") == rows


def stays(kinds: dict[type[events.Event], str], state: str) -> str:
    """The events that leave a state as it is."""
    return names(tuple(kind for kind, following in kinds.items() if following == state))


def moves(kinds: dict[type[events.Event], str], state: str) -> str:
    """The events that lead out of a state, and where to."""
    return ", ".join(f"`{kind.__name__}` -> `{to}`" for kind, to in kinds.items() if to != state) or UNSET


def test_the_parts_and_their_growth_are_those_of_the_code() -> None:
    rows = [[code(part.__name__), names(deltas)] for part, deltas in events.GROWTH.items()]
    assert columns("model.md", "Parts", 2) == rows
    assert set(events.GROWTH) == set(get_args(content.Part))


def test_every_event_is_explained() -> None:
    assert columns("model.md", "Events", 1) == [[code(kind.__name__)] for kind in get_args(events.Event)]


def test_every_field_of_a_request_is_explained() -> None:
    assert columns("model.md", "Requests", 1) == [[code(name)] for name in Request.__struct_fields__]


# -- losses.md


def test_every_fate_is_explained() -> None:
    assert columns("losses.md", "What a loss is", 1) == [[code(how)] for how in get_args(How)]


def test_the_bands_of_effort_are_those_of_the_code() -> None:
    efforts = list(BUDGETS)
    rows = [[code(effort), str(BUDGETS[effort])] for effort in efforts]
    assert columns("losses.md", "Effort", 2) == rows
    assert [effort_of(budget) for budget in BUDGETS.values()] == efforts
    assert [effort_of(budget + GAP) for budget in BUDGETS.values()] == efforts


def written(dialect: Dialect, reason: FinishReason) -> str:
    """The word that a dialect has for a reason of ours; one that is only near it is marked."""
    losses = Losses()
    response = Response(
        candidates=(Candidate(finish=Finish(reason=reason)),), usage=Usage(input_tokens=1, output_tokens=1)
    )
    body = dialect.encode_response(response, Request(model=""), losses)
    word = body["stop_reason"] if "stop_reason" in body else body["choices"][0]["finish_reason"]
    return f"{code(word)} (loss)" if losses else code(word)


def read(dialect: Dialect, word: str) -> FinishReason:
    """What a word of a dialect means."""
    bodies: dict[str, JSON] = {
        "chat": {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": word}]},
        "messages": {"content": [], "stop_reason": word},
    }
    finish = dialect.decode_response(bodies[dialect.name]).candidates[0].finish
    assert finish
    return finish.reason


def test_the_reasons_of_an_end_are_those_of_the_code() -> None:
    rows = table("losses.md", "Why an answer ended")
    reasons: list[FinishReason] = list(get_args(FinishReason))
    assert [[row[0], row[2], row[4]] for row in rows] == [
        [code(reason), *(written(dialect, reason) for dialect in BOTH)] for reason in reasons
    ]
    for reason, row in zip(reasons, rows, strict=True):
        for dialect, cell in zip(BOTH, (row[1], row[3]), strict=True):
            words = re.findall(r"`([^`]+)`", cell)
            assert [(word, read(dialect, word)) for word in words] == [(word, reason) for word in words]


def test_the_limits_of_names_are_those_of_the_code() -> None:
    limits = [[code(dialect.name), str(dialect.tool_name_limit)] for dialect in BOTH]
    assert columns("losses.md", "Names and ids", 2) == limits


# -- decisions/README.md


def test_every_decision_is_listed() -> None:
    page = ROOT / "docs" / "decisions" / "README.md"
    records = sorted(path for path in page.parent.glob("*.md") if path != page)
    titles = [path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in records]
    listed = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [(title, path.name) for title, path in zip(titles, records, strict=True)]
