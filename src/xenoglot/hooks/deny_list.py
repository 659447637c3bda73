"""A hook that rejects requests, and answers if wanted, with certain words or patterns in their texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.hooks.hook import RejectedError
from xenoglot.hooks.texts import part_texts, request_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.hooks.hook import AfterResponse, HookContext
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response


class DenyList:
    """Rejects texts with one of `words`, as whole words in any case, or in which one of the regular `patterns` matches.

    With `answers`, answers are checked too; streams are then held back until they are complete. Clients get `message`.
    """

    def __init__(
        self,
        words: Sequence[str] = (),
        patterns: Sequence[str] = (),
        message: str = "rejected by a rule of this gateway",
        answers: bool = False,  # noqa: FBT001, FBT002  an option of a configuration file
    ) -> None:
        if not words and not patterns:
            raise ConfigurationError("a deny list needs `words` or `patterns`")
        said = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in words]
        try:
            self._rules = [re.compile(one, re.IGNORECASE) for one in (*said, *patterns)]
        except re.error as error:
            raise ConfigurationError(f"`patterns`: `{error.pattern!s}` is no regular expression: {error}") from error
        self._message = message
        self.after_response: AfterResponse | None = self._check_response if answers else None

    def before_request(self, request: Request, context: HookContext) -> None:
        """Reject a request with a denied text."""
        self._check(request_texts(request), context, "request")

    def _check_response(self, response: Response, context: HookContext) -> None:
        for candidate in response.candidates:
            self._check(part_texts(candidate.content), context, "answer")

    def _check(self, texts: Iterable[str], context: HookContext, where: str) -> None:
        for text in texts:
            for number, rule in enumerate(self._rules):
                if rule.search(text):
                    context.tag("denied", f"{where}: rule {number + 1}")
                    raise RejectedError(self._message)
