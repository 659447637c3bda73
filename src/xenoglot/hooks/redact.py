"""A hook that replaces secrets and personal data in requests by placeholders, and restores them in answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.hooks.placeholders import LIKE, Placeholders, Restorer
from xenoglot.hooks.texts import map_request, request_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.hooks.hook import HookContext
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request

_B: Final = r"(?<![A-Za-z0-9_-])"
_E: Final = r"(?![A-Za-z0-9_-])"

SECRETS: Final[Mapping[str, str]] = {
    "PRIVATE_KEY": r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----)){1,16384}-----END [A-Z ]*PRIVATE KEY-----",
    "API_KEY": _B
    + r"(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,}|glpat-[\w-]{20,}|xox[abeoprs]-[\w-]{10,}"
    + r"|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|[sr]k_live_\w{20,}"
    + r"|pypi-[\w-]{50,})"
    + _E,
    "TOKEN": _B + r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}" + _E,
    "PASSWORD_IN_URL": r"(?<=://)[^\s/@:]{1,128}:[^\s/@]{1,128}(?=@)",
}
"""Patterns of secrets, each with a form that nothing else has."""

PERSONAL: Final[Mapping[str, str]] = {
    "EMAIL_ADDRESS": r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])",
    "CREDIT_CARD": r"(?<![\d-])(?:\d[ -]?){12,18}\d(?![\d-])",
    "IBAN_CODE": _B + r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?" + _E,
    "US_SSN": r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\d-])",
    "PHONE_NUMBER": r"(?<![\w+])(?:\+\d{1,3}[ .-]?(?:\(0?\d{1,5}\)[ .-]?)?\d(?:[ .-]?\d){5,12}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[.-]\d{3}[.-]\d{4})(?![\w-])",
    "IP_ADDRESS": r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])",
}
"""Patterns of personal data that have a form; names and places of people need `presidio`."""

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,40}")


class TextSpan(NamedTuple):
    """A place in a text that is replaced."""

    start: int
    end: int
    kind: str


class Analyzer(Protocol):
    """Finds personal data; `presidio_analyzer.AnalyzerEngine` is one."""

    def analyze(self, text: str, language: str, entities: list[str] | None = None) -> Iterable[object]:
        """Return results with `start`, `end` and `entity_type`."""
        ...


class Redact:
    """Replaces secrets and personal data.

    `secrets` is whether secrets are replaced, `personal` which kinds of personal data. `patterns` are regular
    expressions of your own by name. `presidio` is whether presidio looks for the `personal` kinds in place of patterns,
    with a `model` of spaCy for the `language`. Without `restore` clients get the placeholders.
    """

    def __init__(  # noqa: PLR0913  one for each option
        self,
        *,
        secrets: bool = True,
        personal: Sequence[str] | bool = True,
        patterns: Mapping[str, str] | None = None,
        presidio: bool = False,
        language: str = "en",
        model: str = "en_core_web_lg",
        restore: bool = True,
        analyzer: Analyzer | None = None,
    ) -> None:
        kinds = tuple(PERSONAL) if personal is True else tuple(personal or ())
        wanted = dict(SECRETS) if secrets else {}
        self._analyze: Callable[[str], Iterable[TextSpan]] | None = None
        if presidio or analyzer is not None:
            engine = analyzer or _presidio(language, model)
            entities = None if personal is True else list(kinds)
            self._analyze = lambda text: _found(engine, text, language, entities)
        else:
            unknown = [kind for kind in kinds if kind not in PERSONAL]
            if unknown:
                raise ConfigurationError(
                    f"`personal`: found `{unknown[0]}`; expected some of {', '.join(PERSONAL)}, or `presidio = true`"
                )
            wanted |= {kind: PERSONAL[kind] for kind in kinds}
        wanted |= dict(patterns or {})
        if bad := [name for name in wanted if not _NAME.fullmatch(name)]:
            raise ConfigurationError(f"`patterns`: found `{bad[0]}`; expected capital letters and underscores")
        try:
            self._rules = [(kind, re.compile(pattern)) for kind, pattern in wanted.items()]
        except re.error as error:
            raise ConfigurationError(f"`patterns`: `{error.pattern!s}` is no regular expression: {error}") from error
        self.on_event = self._restored if restore else None

    def before_request(self, request: Request, context: HookContext) -> Request:
        """Return the request with placeholders."""
        taken = frozenset(name for text in request_texts(request) for name in LIKE.findall(text))
        placeholders = Placeholders(taken)
        changed = map_request(request, lambda text: self._redacted(text, placeholders))
        if placeholders.values:
            context.tag("redacted", str(len(placeholders.values)))
            context.state["restorer"] = Restorer(placeholders)
        return changed

    def _restored(self, event: Event, context: HookContext) -> Sequence[Event] | None:
        restorer = context.state.get("restorer")
        return None if not isinstance(restorer, Restorer) else restorer.feed(event)

    def _redacted(self, text: str, placeholders: Placeholders) -> str:
        findings = [
            TextSpan(*match.span(), kind)
            for kind, rule in self._rules
            for match in rule.finditer(text)
            if kind not in CHECKS or CHECKS[kind](match[0])
        ]
        if self._analyze is not None:
            findings += self._analyze(text)
        pieces: list[str] = []
        at = 0
        for start, end, kind in sorted(findings, key=lambda one: (one.start, -one.end)):
            if start >= at:
                pieces += (text[at:start], placeholders.name(kind, text[start:end]))
                at = end
        return "".join((*pieces, text[at:])) if pieces else text


def _luhn(number: str) -> bool:
    """Return whether the digits of a card's number have the right sum (ISO/IEC 7812-1)."""
    digits = [int(one) for one in reversed(number) if one.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[1::2]]  # noqa: PLR2004  the rule
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _iban(number: str) -> bool:
    """Return whether an account number has the right remainder (ISO 13616-1)."""
    letters = number.replace(" ", "")
    return int("".join(str(int(one, 36)) for one in letters[4:] + letters[:4])) % 97 == 1


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {"CREDIT_CARD": _luhn, "IBAN_CODE": _iban}
"""Whether what has the form of a number is one."""


def _found(engine: Analyzer, text: str, language: str, entities: list[str] | None) -> list[TextSpan]:
    results = engine.analyze(text=text, language=language, entities=entities)
    return [TextSpan(getattr(one, "start"), getattr(one, "end"), getattr(one, "entity_type")) for one in results]  # noqa: B009


def _presidio(language: str, model: str) -> Analyzer:
    """Return presidio's analyzer with a model of spaCy that is installed, or a folder; nothing is downloaded."""
    try:
        from presidio_analyzer import AnalyzerEngine  # noqa: PLC0415  optional, and large
        from presidio_analyzer.nlp_engine import NlpEngineProvider  # noqa: PLC0415  as above
        from spacy.util import is_package  # noqa: PLC0415  as above
        from tldextract import tldextract  # noqa: PLC0415  as above
    except ImportError:
        raise ConfigurationError(missing_extra("presidio_analyzer")) from None
    if not is_package(model) and not Path(model).is_dir():
        raise ConfigurationError(
            f"`model`: the model {model} of spaCy is not installed: python -m spacy download {model}"
        )
    tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())  # the list that it brings, not one it fetches
    models = [{"lang_code": language, "model_name": model}]
    engine = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models}).create_engine()
    analyzer: Analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=[language])
    return analyzer
