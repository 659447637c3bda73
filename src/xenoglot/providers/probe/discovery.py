"""First step of a probe: reads model lists, and sends a greeting in each dialect to see which are supported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader
from xenoglot.errors import WireError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Reasoning
from xenoglot.model.json import JSON, JSONObject
from xenoglot.providers.probe.dialect_client import REASONING_CAP, DialectClient, parts_of
from xenoglot.providers.probe.exchange import ProbeRequest, outcome_of
from xenoglot.providers.probe.findings import Finding, ProbeExchange
from xenoglot.providers.probe.probe_table import greeting
from xenoglot.providers.provider import AuthForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.providers.probe.dialect_client import ProbeRecord
    from xenoglot.providers.probe.exchange import Conversation, Outcome, ProbeAnswer, ProbeResponse
    from xenoglot.providers.probe.findings import Confidence, Verdict

PREFERENCE: Final = (
    "chat",
    "responses",
    "messages",
    "gemini",
    "interactions",
    "ollama",
    "llama_stack",
    "completions",
    "ollama_generate",
    "llama_stack_completion",
)
"""In which dialect a server is best asked, where it speaks several."""

_OK: Final = 200
_FORMS: Final[dict[str, AuthForm]] = {
    "authorization": "bearer",
    "x-api-key": "x-api-key",
    "x-goog-api-key": "x-goog-api-key",
    "api-key": "api-key",
}
_OTHERS: Final[tuple[AuthForm, ...]] = ("bearer", "api-key", "x-api-key")
"""How a key may be shown where the dialect's own way was refused."""

_NOT_FOR_TALK: Final = (
    "embed",
    "minilm",
    "whisper",
    "tts",
    "dall-e",
    "rerank",
    "moderation",
    "transcri",
    "image",
    "sora",
)
"""Parts of the names of models that answer no question."""

_WINDOWS: Final = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
    "n_ctx",
    "n_ctx_train",
)
"""What servers call a model's context window in their lists; the last two are llama.cpp's, under `meta`."""

Lists: TypeAlias = "dict[str, DiscoveredModels]"


class DiscoveredModels(Struct, frozen=True, kw_only=True):
    """The list of models at one path."""

    models: tuple[ModelInfo, ...] = ()
    entries: tuple[JSONObject, ...] = ()
    auth: AuthForm | None = None
    evidence: ProbeExchange


def auth_form(dialect: Dialect) -> AuthForm:
    """Return how clients of a dialect show their key."""
    names = [name for name, _ in dialect.authorize("key")]
    return next((_FORMS[name] for name in names if name in _FORMS), "bearer")


def lists(dialects: Sequence[Dialect], notes: ProbeRecord) -> Conversation[Lists]:
    """Ask for the models at each path where the dialects have them, in each way to show a key until one is let in."""
    found: Lists = {}
    for dialect in dialects:
        path, form = dialect.models_path, auth_form(dialect)
        known = found.get(path)
        if known is not None and (known.models or known.auth == form):
            continue
        ask = ProbeRequest(
            method="GET",
            dialect=dialect.name,
            path=path,
            query=dialect.models_query,
            description=f"the models at `{path}`",
            auth=form,
        )
        listed = _listed(ask, (yield ask), dialect)
        notes.requests += 1
        if known is None or listed.models:
            found[path] = listed
    return found


def _listed(ask: ProbeRequest, reply: ProbeResponse, dialect: Dialect) -> DiscoveredModels:
    words = reply.problem or f"{reply.status}"
    try:
        body = decode_answer(reply.body)
        models = tuple(dialect.decode_models(body)) if reply.status == _OK else ()
    except WireError:
        body, models = None, ()
    if models:
        words = f"{reply.status}: {len(models)} models"
    elif reply.status == _OK:
        words = f"{reply.status}: no list of this dialect"
    evidence = ProbeExchange(asked=ask.description, answered=words)
    return DiscoveredModels(models=models, entries=tuple(_entries(body)), auth=ask.auth, evidence=evidence)


def _entries(body: JSON) -> Iterator[JSONObject]:
    for value in body.values() if isinstance(body, dict) else ():
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict):
                yield entry


def listing(found: Lists) -> Finding:
    """Return the finding about the lists."""
    names = list(dict.fromkeys(model.id for listed in found.values() for model in listed.models))
    return Finding(
        face="",
        what="models",
        verdict="yes" if names else "not seen",
        confidence="sure" if names else "guess",
        detail=f"{len(names)}: {', '.join(names[:3])}{', …' if len(names) > 3 else ''}" if names else "",  # noqa: PLR2004
        evidence=tuple(listed.evidence for listed in found.values()),
    )


def choose(models: Sequence[ModelInfo]) -> str | None:
    """Return the first model that looks as if it answered questions."""
    names = [model.id for model in models]
    talkers = [name for name in names if not any(word in name.lower() for word in _NOT_FOR_TALK)]
    return next(iter(talkers or names), None)


def window_of(model: str, found: Lists) -> int | None:
    """Return the context window of `model`, in tokens, if a list has it."""
    for listed in found.values():
        for entry in listed.entries:
            if model not in (entry.get("id"), entry.get("name"), str(entry.get("name", "")).removeprefix("models/")):
                continue
            meta = entry.get("meta")
            for place in (entry, meta if isinstance(meta, dict) else {}):
                for key in _WINDOWS:
                    tokens = Reader(place).count(key) if isinstance(place.get(key), int) else None
                    if tokens:
                        return tokens
    return None


def open_dialect(speaker: DialectClient, *, keyed: bool) -> Conversation[tuple[bool, Finding]]:
    """Greet in one dialect; return whether it is spoken. `keyed` is whether there is a key to be shown."""
    answer = yield from _greet(speaker)
    evidence = [answer.evidence]
    forms = [form for form in _OTHERS if form != auth_form(speaker.dialect)] if keyed else []
    while answer.outcome == "locked" and forms:
        speaker.auth = forms.pop(0)
        answer = yield from _greet(speaker)
        evidence.append(answer.evidence)
    if answer.outcome == "locked":
        speaker.auth = None
    if answer.outcome == "refused":
        answer = yield from _with_other_cap(speaker, answer)
        evidence.append(answer.evidence)
    if answer.outcome == "answered":
        _record_cap(speaker, answer)
    verdict, confidence, detail = _speaks_dialect(answer, speaker)
    finding = Finding(
        face=speaker.name,
        what="speaks",
        verdict=verdict,
        confidence=confidence,
        detail=detail,
        evidence=tuple(dict.fromkeys(evidence)),
    )
    return answer.outcome == "answered", finding


def _greet(speaker: DialectClient) -> Conversation[ProbeAnswer]:
    body = speaker.encode(greeting(speaker))
    if body is None:
        raise WireError("$", f"`{speaker.model}` cannot be requested in {speaker.name}")
    path = speaker.dialect.path.replace("{model}", speaker.model)
    return (yield from speaker.post_with_retry(body, f"a greeting at `{path}`"))


def _with_other_cap(speaker: DialectClient, refusal: ProbeAnswer) -> Conversation[ProbeAnswer]:
    """Send the greeting again with the other name of the token limit, which some models require."""
    request = greeting(speaker)
    usual = speaker.encode(request)
    other = speaker.encode(request, max_tokens_field="max_completion_tokens")
    if other is None or other == usual:
        return refusal
    answer = yield from speaker.post_with_retry(other, "a greeting with `max_completion_tokens`")
    if answer.outcome != "answered":
        return refusal
    speaker.target = replace(speaker.target, max_tokens_field="max_completion_tokens")
    return answer


def _record_cap(speaker: DialectClient, answer: ProbeAnswer) -> None:
    """Raise the token limit for a reasoning model, or its answer would be empty."""
    if any(isinstance(part, Reasoning) for part in parts_of(answer)) or not answer.text.strip():
        speaker.cap = REASONING_CAP


def _speaks_dialect(answer: ProbeAnswer, speaker: DialectClient) -> tuple[Verdict, Confidence, str]:
    if answer.outcome == "absent" and _knows_no_model(answer, speaker):
        return "unclear", "likely", f"the path is there, but not the model `{speaker.model}`"
    told: dict[Outcome, tuple[Verdict, Confidence, str]] = {
        "answered": ("yes", "sure", _describe_auth(speaker)),
        "absent": ("no", "sure", ""),
        "foreign": ("no", "likely", "it answers at that path, in other words"),
        "locked": ("not asked", "guess", "it wants a key, or another"),
        "limited": ("not asked", "guess", "its rate limit is used up"),
        "refused": ("unclear", "guess", "it refuses the plainest request"),
        "failing": ("unclear", "guess", "it fails at the plainest request"),
    }
    return told[answer.outcome]


def _describe_auth(speaker: DialectClient) -> str:
    if speaker.auth in (None, auth_form(speaker.dialect)):
        return ""
    return f"the key is shown as `{speaker.auth}`"


def _knows_no_model(answer: ProbeAnswer, speaker: DialectClient) -> bool:
    failure = answer.failure
    if failure is None or outcome_of(answer.status) != "absent":
        return False
    words = f"{failure.message} {failure.code or ''} {failure.param or ''}".lower()
    return "model" in words and (speaker.model.lower() in words or "model_not_found" in words)
