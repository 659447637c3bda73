"""Runs all probes of a server: a generator that yields requests and receives their responses.

It does no I/O and knows no clock; `backends.probe_runner` drives it. Each question is a canonical request, written by
the dialect's own encoder; each answer is read by its decoder. So one table of tests serves every dialect, without the
tests that a dialect cannot express.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.path_template import has_model, in_path
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest
from xenoglot.providers.probe.ab_test import run_ab_test
from xenoglot.providers.probe.dialect_client import REASONING_FIELDS, DialectClient, ProbeRecord
from xenoglot.providers.probe.discovery import PREFERENCE, auth_form, choose, listing, lists, open_dialect, window_of
from xenoglot.providers.probe.errors import no_such_model, unknown_field, wrong_type
from xenoglot.providers.probe.exchange import ProbeRequest
from xenoglot.providers.probe.findings import Finding, ProbeExchange, Report
from xenoglot.providers.probe.limits import caps, stops
from xenoglot.providers.probe.probe_table import (
    EXTENDED,
    HELLO,
    OBJECT_ROW,
    SCHEMA_ROW,
    extended,
    greeting,
    probe_item,
    probe_items,
)
from xenoglot.providers.probe.reasoning import THINKING_ROWS
from xenoglot.providers.probe.streams import streams
from xenoglot.providers.probe.text_parsers import find_syntax
from xenoglot.providers.probe.tools import ids, tools
from xenoglot.providers.probe.unsupported_fields import find_unsupported
from xenoglot.providers.provider import AuthForm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xenoglot.model.json import JSONObject
    from xenoglot.providers.probe.discovery import Lists
    from xenoglot.providers.probe.exchange import Conversation
    from xenoglot.providers.probe.findings import Confidence, Verdict

    Part = Callable[[DialectClient], Conversation[tuple[Finding, ...]]]

NO_NAME: Final = "default"
"""The name of the model if none is given: servers of one model accept any name."""

_OK: Final = 200
_TRACES: Final = ("request-id", "requestid", "trace-id", "cf-ray", "x-correlation-id")
_RATES: Final = ("ratelimit", "rate-limit")


class ProbeOptions(Struct, frozen=True, kw_only=True):
    """What is to be probed. `keyed` is whether there is a key to be shown.

    With `dialects` only those are tried, with all tests in each. Otherwise all are tried, with all tests in the first
    supported one, and the test of streams in the others. With `known`, the dialect of a provider's endpoint with the
    paths that are its own, only that is tried, with the peculiarities `target`; a key is shown as `auth`.
    """

    base_url: str
    model: str | None = None
    dialects: tuple[str, ...] = ()
    keyed: bool = False
    images: bool = False
    known: Dialect | None = None
    target: Target = Target()
    auth: AuthForm | None = None

    @property
    def records(self) -> tuple[Dialect, ...]:
        """The dialects that are tried, the best for tests first."""
        return _records(self.dialects) if self.known is None else (self.known,)


def _records(wanted: tuple[str, ...]) -> tuple[Dialect, ...]:
    """Return the records of dialects; without names, all of them."""
    return tuple(map(get, wanted or ordered(names())))


def probe(options: ProbeOptions) -> Conversation[Report]:
    """Ask everything; return what was found."""
    notes = ProbeRecord()
    wanted = options.records
    found = yield from lists(wanted, notes)
    listed = [model for path in found.values() for model in path.models]
    findings = [listing(found)]
    model = options.model or choose(listed) or NO_NAME
    speakers: list[DialectClient] = []
    for dialect in wanted:
        speaker = DialectClient(dialect, _model_for(dialect, model, options, found), notes, options.auth)
        speaker.target = options.target
        spoken, finding = yield from open_dialect(speaker, keyed=options.keyed)
        findings.append(finding)
        speakers += [speaker] if spoken else []
    syntax: str | None = None
    for speaker in speakers:
        whole = bool(options.dialects) or options.known is not None or speaker is speakers[0]
        findings += yield from (_everything(speaker, images=options.images) if whole else streams(speaker))
    if speakers:
        finding, syntax = find_syntax(speakers[0].name, notes.texts, speakers[0].model)
        findings += [finding, *_header_findings(notes)]
    return Report(
        base_url=options.base_url,
        model=speakers[0].model if speakers else None,
        faces=tuple(speaker.name for speaker in speakers),
        findings=tuple(findings),
        spent=notes.spent,
        listed=tuple(dict.fromkeys(model.id for model in listed)),
        context=window_of(speakers[0].model, found) if speakers else None,
        auth={speaker.name: _form(speaker) for speaker in speakers} if options.keyed else {},
        text_syntax=syntax,
    )


def ordered(dialects: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of dialects, the best for tests first."""
    rank = {name: place for place, name in enumerate(PREFERENCE)}
    return tuple(sorted(dialects, key=lambda name: (rank.get(name, len(rank)), name)))


def _model_for(dialect: Dialect, model: str, options: ProbeOptions, found: Lists) -> str:
    """Return the model to request in one dialect: another if its own list does not have it."""
    listed = found.get(dialect.models_path)
    if options.model is not None or listed is None or not listed.models:
        return model
    return model if model in [one.id for one in listed.models] else choose(listed.models) or model


def _form(speaker: DialectClient) -> AuthForm:
    return speaker.auth or auth_form(speaker.dialect)


def _everything(speaker: DialectClient, *, images: bool) -> Conversation[tuple[Finding, ...]]:
    found: list[Finding] = []
    parts: tuple[Part, ...] = (
        streams,
        unknown_field,
        wrong_type,
        no_such_model,
        caps,
        find_unsupported,
        stops,
        tools,
        _forms,
        _thinking,
        _extended,
    )
    for part in parts:
        found += yield from part(speaker)
    for thing, effect in probe_items(speaker, images=images):
        taken = yield from run_ab_test(speaker, thing, effect)
        found.append(taken.finding)
    found += yield from _counting(speaker)
    found += yield from _embedding(speaker)
    found += [finding for finding in (ids(speaker), _reasoning(speaker)) if finding is not None]
    return tuple(found)


def _forms(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Request JSON, with and without a schema; each refusal leaves the other forms."""
    found: dict[str, Finding] = {}
    for row in (SCHEMA_ROW, OBJECT_ROW):
        thing = probe_item(speaker, row)
        if thing is not None:
            taken = yield from run_ab_test(speaker, thing, row.effect)
            found[row.what] = taken.finding
    schema, free = found.get(SCHEMA_ROW.what), found.get(OBJECT_ROW.what)
    if schema is not None and schema.verdict == "no" and free is not None:
        form = "none" if free.verdict == "no" else "object"
        found[SCHEMA_ROW.what] = replace(schema, sets={"json_schema": form})
    return tuple(found.values())


def _thinking(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for thinking in each way that the dialect has, until one is understood."""
    found: list[Finding] = []
    asked: list[object] = []
    for row in THINKING_ROWS:
        thing = probe_item(speaker, row)
        if thing is None or thing.body in asked:
            continue
        asked.append(thing.body)
        found.append((yield from run_ab_test(speaker, thing)).finding)
        if found[-1].verdict == "yes":
            return (found[-1],)
    if not found:
        return ()
    evidence = tuple(one for finding in found for one in finding.evidence)
    if all(finding.verdict == "no" for finding in found):
        return (replace(found[0], evidence=evidence, sets={"thinking": "none"}),)
    return (replace(found[0], verdict="unclear", confidence="guess", evidence=evidence, sets={}),)


def _extended(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for sampling beyond what most dialects define: all at once, and where that is not understood one by one."""
    all_of_it = probe_item(speaker, extended(*EXTENDED))
    if all_of_it is None:
        return ()
    finding = (yield from run_ab_test(speaker, all_of_it)).finding
    if finding.verdict == "yes":
        return (finding,)
    known: list[str] = []
    evidence = list(finding.evidence)
    for field in EXTENDED:
        thing = probe_item(speaker, extended(field))
        if thing is not None:
            alone = (yield from run_ab_test(speaker, thing)).finding
            evidence += alone.evidence
            known += [field] if alone.verdict == "yes" else []
    if not known:
        return (replace(finding, evidence=tuple(evidence)),)
    lacks = [field for field in EXTENDED if field not in known]
    told = {"detail": f"{', '.join(known)}, but not {', '.join(lacks)}", "evidence": tuple(evidence)}
    sets: JSONObject = {"extended_sampling": True, "lacks": lacks}
    return (replace(finding, verdict="yes", confidence="likely", sets=sets, **told),)


def _reasoning(speaker: DialectClient) -> Finding | None:
    """Return where reasoning was seen in the answers of dialects that have no standard for it."""
    if speaker.name != PREFERENCE[0]:
        return None
    field = next((name for name in REASONING_FIELDS if name in speaker.notes.reasoning), None)
    if field is None:
        return Finding(face=speaker.name, what="reasoning_field", verdict="not seen", scope="model")
    evidence = ProbeExchange(asked=speaker.notes.reasoning[field], answered=f"`{field}` in the message")
    return Finding(
        face=speaker.name,
        what="reasoning_field",
        verdict="yes",
        confidence="sure",
        detail=field,
        evidence=(evidence,),
        sets={"reasoning_field": field},
    )


def _counting(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask how many tokens a prompt has, where the dialect has a path for it."""
    dialect = speaker.dialect
    write, read = dialect.encode_count_request, dialect.decode_counted
    if dialect.count_path is None or write is None or read is None:
        return ()
    body = dict(write(greeting(speaker), Losses(), speaker.target))
    path = dialect.count_path
    if has_model(path):
        path = in_path(path, str(body.pop("model", "")))
    return (yield from _side(speaker, "count_tokens", path, body, lambda value: read(value) is not None))


def _embedding(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask for the vector of a word; a chat model may have none, so a refusal proves little."""
    form = next(iter(speaker.dialect.embeddings), None)
    if form is None:
        return ()
    request = EmbeddingRequest(model=speaker.model, inputs=(HELLO,))
    path, body = form.addressed(form.encode_request(request, Losses()))
    return (
        yield from _side(speaker, "embeddings", path, body, lambda value: bool(form.decode_response(value).vectors))
    )


def _side(
    speaker: DialectClient, what: str, path: str, body: object, seen: Callable[[object], bool]
) -> Conversation[tuple[Finding, ...]]:
    """Ask at another path of the dialect; what comes there is no answer of a model."""
    ask = ProbeRequest(
        method="POST", dialect=speaker.name, path=path, body=body, description=f"`{path}`", auth=speaker.auth
    )
    answer = yield from speaker.send(ask)
    verdict: Verdict = "unclear"
    if answer.status == _OK and answer.values:
        try:
            verdict = "yes" if seen(answer.values[0]) else "not seen"
        except WireError:
            verdict = "not seen"
    elif answer.outcome == "absent":
        verdict = "no" if what == "count_tokens" else "not seen"
    elif answer.outcome == "refused":
        verdict = "not seen"
    confidence: Confidence = "sure" if verdict == "yes" else "likely" if verdict == "no" else "guess"
    detail = "" if verdict != "not seen" else "by this model"
    evidence = ProbeExchange(
        asked=answer.request.description, answered=f"{answer.status}" if verdict == "yes" else answer.summary
    )
    return (
        Finding(
            face=speaker.name,
            what=what,
            verdict=verdict,
            confidence=confidence,
            detail=detail,
            evidence=(evidence,),
            scope="model",
        ),
    )


def _header_findings(notes: ProbeRecord) -> Iterator[Finding]:
    """Yield what the heads of all answers had in common."""
    for what, marks in (("request_id_headers", _TRACES), ("rate_limit_headers", _RATES)):
        found = sorted(name for name in notes.headers if any(mark in name for mark in marks))
        yield Finding(
            face="",
            what=what,
            verdict="yes" if found else "not seen",
            confidence="sure" if found else "guess",
            detail=", ".join(found),
        )
