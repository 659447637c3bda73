"""A probe of a server finds what the server is, and claims nothing that it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from tests.providers.quirky_server import MODEL, Quirky, probe_report
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import names
from xenoglot.providers import catalog
from xenoglot.providers.probe.catalog_row import quirks
from xenoglot.providers.probe.runner import ProbeOptions, ordered, probe

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.providers.probe.findings import Report

FACTS: Final[dict[str, st.SearchStrategy[object]]] = {
    "cache_marks": st.booleans(),
    "custom_tools": st.booleans(),
    "developer_role": st.booleans(),
    "extended_sampling": st.booleans(),
    "fan_out": st.booleans(),
    "forced_tools": st.booleans(),
    "images": st.booleans(),
    "inline_system": st.booleans(),
    "json_schema": st.sampled_from(("native", "object", "none")),
    "lacks": st.lists(st.sampled_from(("user", "metadata", "service_tier", "cache_key")), unique=True).map(tuple),
    "max_tokens_field": st.sampled_from(("max_tokens", "max_completion_tokens")),
    "parallel_tool_calls": st.booleans(),
    "prefill": st.sampled_from(("native", "none")),
    "seed_field": st.sampled_from(("seed", "random_seed")),
    "stop_limit": st.sampled_from((1, 4, 5, 16)),
    "stops": st.sampled_from(("native", "ours")),
    "stream_usage": st.booleans(),
    "strict_tools": st.booleans(),
    "text_parts": st.booleans(),
    "thinking": st.sampled_from(("effort", "budget", "none")),
    "thinking_field": st.just(None),
    "tool_id": st.sampled_from(("any", "nine")),
    "tool_name_limit": st.sampled_from((None, 100)),
    "tool_result_media": st.booleans(),
}
"""What a probe of `chat` finds out, and what it may be."""

WAYS: Final = (("effort", None), ("budget", None), ("none", None), ("switch", "thinking"), ("effort", "reasoning"))
"""The ways to tell a server to think that are told apart."""

servers = st.fixed_dictionaries(FACTS).map(lambda facts: consistent(Target(**facts)))  # type: ignore[arg-type]


def consistent(target: Target) -> Target:
    """The facts of a server that can be: a mark stands on a text in a list."""
    return replace(target, cache_marks=target.cache_marks and target.text_parts)


def probed(server: Quirky, *dialects: str, images: bool = True) -> Report:
    """What is found of a server in some dialects, or in all."""
    return probe_report(server, probe(ProbeOptions(base_url="http://server", dialects=dialects, images=images)))


def found(report: Report, dialect: str = "chat") -> JSONObject:
    """The unusual facts that were found, those of the model among them."""
    return quirks(report, dialect, "server") | quirks(report, dialect, "model")


def unusual(target: Target, *fields: str) -> JSONObject:
    """What of the fields is not as it usually is."""
    usual, plain = to_builtins(Target()), to_builtins(target)
    return {field: plain[field] for field in fields if plain[field] != usual[field]}


def decided(target: Target) -> Target:
    """The facts of a server, where a row does not know them: it is a server of few gifts."""
    unknown = {
        "custom_tools": False,
        "developer_role": False,
        "max_tokens_field": "max_tokens",
        "tool_result_media": False,
    }
    return replace(target, **{fact: value for fact, value in unknown.items() if getattr(target, fact) is None})


def in_order(facts: JSONObject) -> JSONObject:
    """The facts with the fields that a server lacks in one order."""
    return {name: sorted(value) if name == "lacks" else value for name, value in facts.items()}


@settings(max_examples=40, deadline=None)
@given(target=servers)
def test_of_a_picky_server_every_quirk_is_found(target: Target) -> None:
    assert in_order(found(probed(Quirky({"chat": target}), "chat"))) == in_order(unusual(target, *FACTS))


@settings(max_examples=25, deadline=None)
@given(target=servers, thinks=st.booleans(), writes=st.booleans())
def test_of_a_server_that_takes_everything_nothing_wrong_is_said(target: Target, thinks: bool, writes: bool) -> None:  # noqa: FBT001 (drawn)
    report = probed(Quirky({"chat": target}, picky=False, thinks=thinks, writes=writes), "chat")
    said = {name: value for name, value in found(report).items() if name != "reasoning_field"}
    assert in_order(said) == in_order({name: to_builtins(target)[name] for name in said})


@pytest.mark.parametrize("name", catalog.names())
def test_the_quirks_of_a_row_are_found_again(name: str) -> None:
    row = catalog.get(name)
    face = next((face for face in row.faces if face.dialect == "chat"), None)
    target = decided(catalog.target_of(row.quirks, {} if face is None else face.quirks))
    facts = [fact for fact in FACTS if "thinking" not in fact or (target.thinking, target.thinking_field) in WAYS]
    said = found(probed(Quirky({"chat": target}), "chat"))
    assert in_order({fact: said[fact] for fact in facts if fact in said}) == in_order(unusual(target, *facts))


def test_a_server_without_tools_is_asked_nothing_more_of_them() -> None:
    report = probed(Quirky({"chat": Target(tools=False)}), "chat", images=False)
    assert found(report)["tools"] is False


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_seen_where_it_stands(field: str) -> None:
    server = Quirky({"chat": Target(reasoning_field=field)}, thinks=True)  # type: ignore[arg-type]
    told = {finding.what: finding.detail for finding in probed(server, "chat").findings}
    assert told["reasoning_field"] == field


def test_calls_in_the_text_suggest_a_syntax() -> None:
    report = probed(Quirky({"chat": Target()}, writes=True), "chat")
    told = {finding.what: finding for finding in report.findings}
    assert (report.text_syntax, told["text_syntax"].verdict, told["tools"].verdict) == ("hermes", "yes", "not seen")


@pytest.mark.parametrize("dialect", names())
def test_each_dialect_is_asked_in_its_own_words(dialect: str) -> None:
    server = Quirky({dialect: Target(stop_limit=5)})
    report = probed(server, dialect)
    verdicts = {finding.what: finding.verdict for finding in report.findings}
    wanted = {"models": "yes", "speaks": "yes", "streaming": "yes", "refuses_wrong_types": "yes"}
    assert (report.faces, report.model, report.listed) == ((dialect,), MODEL, (MODEL,))
    assert {what: verdicts[what] for what in wanted} == wanted
    assert report.spent.requests == len(server.asked)


def test_of_many_faces_the_first_is_asked_wholly() -> None:
    spoken = ordered(names())
    server = Quirky(dict.fromkeys(spoken, Target()))
    report = probed(server, images=False)
    asked = {name: {finding.what for finding in report.findings if finding.face == name} for name in spoken}
    few = {"speaks", "streaming", "stream_usage"}
    assert report.faces == spoken
    assert {name for name, what in asked.items() if not what <= few | {"stream_options"}} == {spoken[0]}
    assert all(few <= what for what in asked.values())


@pytest.mark.parametrize("dialect", ["messages", "responses", "gemini"])
@settings(max_examples=8, deadline=None)
@given(strict=st.booleans(), forced=st.booleans(), developer=st.booleans())
def test_quirks_are_found_in_other_dialects_too(dialect: str, strict: bool, forced: bool, developer: bool) -> None:  # noqa: FBT001 (drawn)
    target = Target(strict_tools=strict, forced_tools=forced, developer_role=developer)
    said = found(probed(Quirky({dialect: target}), dialect, images=False), dialect)
    wanted = unusual(target, *(name for name in ("strict_tools", "forced_tools", "developer_role") if name in said))
    assert {name: said[name] for name in wanted} == wanted
    assert ("forced_tools" in said) is not forced


def test_nothing_is_spoken() -> None:
    report = probed(Quirky({}))
    assert (report.faces, report.model, report.text_syntax) == ((), None, None)
    assert {finding.verdict for finding in report.findings if finding.what == "speaks"} == {"no"}
