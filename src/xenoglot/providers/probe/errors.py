"""Error probes: an unknown field, a wrong type, a model that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.model.request import Sampling
from xenoglot.providers.probe.dialect_client import with_nonsense
from xenoglot.providers.probe.findings import Finding
from xenoglot.providers.probe.probe_table import HELLO, greeting

if TYPE_CHECKING:
    from xenoglot.model.json import JSON
    from xenoglot.providers.probe.dialect_client import DialectClient
    from xenoglot.providers.probe.exchange import Conversation, ProbeAnswer
    from xenoglot.providers.probe.findings import Verdict

UNKNOWN_FIELD: Final = "xenoglot_probe"
NO_MODEL: Final = "xenoglot-no-such-model"


def unknown_field(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Send a field that no dialect has: a server that accepts it accepts anything, so that acceptance proves little."""
    body = speaker.encode(greeting(speaker))
    if body is None:
        return ()
    answer = yield from speaker.post_with_retry(body | {UNKNOWN_FIELD: True}, "a field that nobody has")
    if answer.outcome in ("answered", "refused"):
        speaker.refuses_unknown = answer.outcome == "refused"
    verdict = _refuses(answer)
    detail = {"yes": "refused", "no": "passed over"}.get(verdict, "")
    return (_finding(speaker, "refuses_unknown_fields", verdict, answer, detail),)


def wrong_type(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Ask with a word where a number belongs."""
    body = speaker.encode(speaker.request(HELLO, sampling=Sampling(temperature=0.5)), ("temperature",))
    if body is None:
        return ()
    wrong: JSON = with_nonsense(body, lambda key, _: key == "temperature")
    answer = yield from speaker.post(wrong, "a temperature that is a word")
    return (_finding(speaker, "refuses_wrong_types", _refuses(answer), answer, envelope(answer)),)


def no_such_model(speaker: DialectClient) -> Conversation[tuple[Finding, ...]]:
    """Request a model that does not exist."""
    body = speaker.encode(greeting(speaker))
    field = speaker.dialect.model_field
    if body is None or field not in body:
        return ()
    answer = yield from speaker.post(body | {field: NO_MODEL}, f"the model `{NO_MODEL}`")
    verdict: Verdict = "yes" if answer.outcome == "absent" else _refuses(answer)
    return (_finding(speaker, "refuses_unknown_models", verdict, answer, envelope(answer)),)


def envelope(answer: ProbeAnswer) -> str:
    """Return the form of an error: the status, and the fields that hold it."""
    if answer.failure is None:
        return ""
    body = answer.values[0] if answer.values else None
    return f"{answer.status} {_form(body)}"


def _form(body: JSON) -> str:
    if isinstance(body, list):
        return f"[{_form(body[0])}]" if body else "[]"
    if not isinstance(body, dict):
        return "without JSON"
    error = body.get("error")
    if not isinstance(error, dict):
        return "{" + ", ".join(body) + "}"
    return "{" + ", ".join(f"{key}: {{{', '.join(error)}}}" if key == "error" else key for key in body) + "}"


def _refuses(answer: ProbeAnswer) -> Verdict:
    match answer.outcome:
        case "refused":
            return "yes"
        case "failing" if answer.status:
            return "yes"
        case "answered":
            return "no"
        case "limited" | "locked":
            return "not asked"
        case _:
            return "unclear"


def _finding(speaker: DialectClient, what: str, verdict: Verdict, answer: ProbeAnswer, detail: str) -> Finding:
    return Finding(
        face=speaker.name,
        what=what,
        verdict=verdict,
        confidence="sure" if verdict in ("yes", "no") else "guess",
        detail=detail,
        evidence=(answer.evidence,),
    )
