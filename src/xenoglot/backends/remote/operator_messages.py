"""Failure messages that name the server: URL, status, cause and remedy. Pure.

They are for operators and for users of the client. Clients of a gateway get `Failure.message`, which names no host.
"""

from __future__ import annotations

import re
from copy import copy
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from xenoglot.backends.redaction import for_log
from xenoglot.errors import QUOTING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.redaction import Redactor
    from xenoglot.model.failure import Failure

LONGEST = 200
"""Characters of a server's own text in a message."""

UNSET_KEY = "no key was sent; name one with --key-env"
"""What to do about a 401, where the caller has no better advice."""

_NO_CONNECTION = "no connection to the upstream: "
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HIDDEN = re.compile(r"<(script|style)\b.*?(?:</\1>|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_REDIRECTS = range(300, 400)
_READ = 4096
"""Bytes of a body that are looked at."""

_REMEDIES: Mapping[str, str] = {
    "resolved": "is the host name in the URL right?",
    "refused": "is the server running?",
    "No such file": "is the server running?",
    "within the deadline": "is the host reachable?",
    "proxy": "check HTTPS_PROXY, or `proxy` of the upstream",
    "another host": "does the URL have the host name of the certificate?",
    "certificate": "set SSL_CERT_FILE to the certificate of its authority, if you trust it",
    "TLS": "does the server speak TLS (https://) on this port?",
}
"""Words of a cause, and what to do about it; the first that fits."""

_TEMPLATES: Mapping[str, str] = {
    "connect": "cannot connect to {base}: {reason}; {remedy}",
    "tls": "no TLS connection to {base}: {reason}; {remedy}",
    "timeout": "time-out at {base}: {reason}; raise the deadline if the model is slow",
    "closed": "connection lost to {base}: {reason}; see the log of that server",
    "protocol": "{base} does not answer in HTTP/1.1: {reason}; is it an HTTP server, and http:// or https:// right?",
    "too_large": "the answer of {base} is larger than allowed: {reason}",
    "exhausted": "cannot connect to {base}: {reason}; raise the limit of open files (ulimit -n)",
    "credentials": "not signed in to {base}: {reason}",
}


class ServerAnswer(NamedTuple):
    """What is known of an HTTP response: the URL that was called, status, content type, and the start of its body."""

    url: str
    status: int
    content_type: str
    data: bytes

    @property
    def is_html(self) -> bool:
        """Whether it is a page for a browser, whatever its content type."""
        return "html" in self.content_type.lower() or _HTML.match(self.data[:_READ]) is not None


class OperatorMessages:
    """Words the failures of one server.

    `base_url` is the URL that the operator or caller configured, `url` the endpoint that is usually called. `key` names
    where its API key comes from (`$NAME`), `None` if no key is sent; `no_key` is the advice then.
    """

    def __init__(
        self, base_url: str, url: str, redact: Redactor, *, key: str | None = None, no_key: str = UNSET_KEY
    ) -> None:
        self._redact = redact
        self.base = self.shown(base_url)
        self.url = base_url if "{" in url else url
        self._key = key
        self._no_key = no_key

    def without(self, redact: Redactor) -> OperatorMessages:
        """Return what words the same failures, redacted by `redact`."""
        other = copy(self)
        other._redact = redact  # noqa: SLF001  of this class
        return other

    def unanswered(self, failure: Failure) -> Failure:
        """Return `failure` with the server's URL; its `operator_message` is the cause so far."""
        reason = failure.operator_message or failure.message
        template = _TEMPLATES.get(failure.cause or "")
        if template is None:
            return self._with(failure, f"{self.base}: {reason}")
        reason = reason.removeprefix(_NO_CONNECTION).replace("the upstream's ", "its ").replace("the upstream ", "it ")
        remedy = next((words for known, words in _REMEDIES.items() if known in reason), "is the server running?")
        lower = reason if reason[1:2].isupper() else reason[:1].lower() + reason[1:]
        return self._with(failure, template.format(base=self.base, reason=lower, remedy=remedy))

    def unreadable(self, failure: Failure, answer: ServerAnswer) -> Failure:
        """Return `failure`, of an answer that its dialect does not allow, with where it came from and what it is."""
        reason, where = failure.operator_message or failure.message, self.shown(answer.url)
        kind = answer.content_type.partition(";")[0].strip() or "no content type"
        if answer.is_html:
            told = f"{where} answered HTML ({answer.status}, {kind}), not JSON: is the base URL right?"
        elif "not valid JSON" not in reason:
            told = f"{where} answered in an unexpected form: {reason}; does the server speak this dialect?"
        elif words := self.first_words(answer):
            told = f"{where} answered no JSON ({answer.status}, {kind}): {words}; is the base URL right?"
        else:
            told = f"{where} answered nothing ({answer.status}, {kind}): is the base URL right?"
        return self._with(failure, told)

    def refused(self, failure: Failure, answer: ServerAnswer, words: str) -> Failure:
        """Return `failure`, of an answer with an error status, whose text is `words`, as the client may see it."""
        where, status = self.shown(answer.url), answer.status
        said = f": {self._cut(words)}" if words and failure.kind not in QUOTING else ""
        match status:
            case 401 | 407 if self._key is None:
                told = f"{status} from {where}: {self._no_key}"
            case 401 | 407:
                told = f"{status} from {where}: the key{f' in {self._key}' if self._key else ''} was refused{said}"
            case 403:
                told = f"403 from {where}: access denied{said}; may this key use the model?"
            case 404:
                told = f"404 from {where}{said or ': nothing is there'}; are model name and base URL right?"
            case 429:
                told = f"rate limited (429) by {where}{said}{_wait(failure)}"
            case _ if status in _REDIRECTS:
                told = f"{where} redirects ({status}), which is not followed: use the URL that it redirects to"
            case _:
                told = f"HTTP {status} from {where}{said}{_wait(failure)}"
        return self._with(failure, told)

    def broken(self, failure: Failure, words: str) -> Failure:
        """Return `failure`, which the server reported as `words` within its stream, with the URL."""
        said = f": {self._cut(words)}" if failure.kind not in QUOTING else ""
        return self._with(failure, f"{self.base} failed within its answer{said}")

    def first_words(self, answer: ServerAnswer) -> str:
        """Return the first words of a body, or the title of a page for a browser."""
        text = answer.data[: 4 * _READ].decode("utf-8", "replace")
        if answer.is_html:
            title = _TITLE.search(text)
            text = unescape(title[1] if title else _TAG.sub(" ", _HIDDEN.sub(" ", text)))
        return self._cut(text)

    def _cut(self, text: str) -> str:
        return for_log(" ".join(self._redact(text).split()), LONGEST)

    def _with(self, failure: Failure, told: str) -> Failure:
        return replace(failure, operator_message=self._redact(told))

    def shown(self, url: str) -> str:
        """Return a URL without user name, password, query and fragment."""
        if url.startswith("unix://"):
            return for_log(url, LONGEST)
        scheme, host, path, _, _ = urlsplit(url)
        return for_log(self._redact(urlunsplit((scheme, host.rpartition("@")[2], path, "", ""))), LONGEST)


def _wait(failure: Failure) -> str:
    return "" if failure.retry_after is None else f", retry after {failure.retry_after:g} s"
