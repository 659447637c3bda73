"""A hook that posts requests, and answers if wanted, to an address of the configuration, which may reject or tag them.

It posts `{"event": "before_request", "request_id": ..., "tenant": ..., "key": ..., "model": ..., "dialect": ...,
"stream": ..., "request": {...}}`; for an answer `after_response` and `response`. Requests and answers are those of
`xenoglot.model`. The reply is empty, or a JSON object with `reject` (a text for the client) or `tags` (an object of
texts). Any status but 200 and 204 is a failure of the hook.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.errors import ConfigurationError
from xenoglot.hooks.hook import RejectedError

if TYPE_CHECKING:
    from xenoglot.hooks.hook import AfterResponse, BeforeRequest, HookContext
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

MOST_REPLY: Final = 65_536
"""Bytes of a reply."""
_HERE: Final = ("127.0.0.1", "::1", "localhost")
_OK: Final = (200, 204)


class Reply(msgspec.Struct, frozen=True):
    """What the address replies."""

    reject: str | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)


class Webhook:
    """Posts to `url`; `token_env` is the environment variable with a token for it (`authorization: Bearer`).

    `requests` and `answers` are what is posted; for answers, streams are held back until they are complete. Without
    `content` the request and the answer are left out, and only their names are posted.
    """

    def __init__(
        self,
        url: str,
        token_env: str | None = None,
        *,
        requests: bool = True,
        answers: bool = False,
        content: bool = True,
    ) -> None:
        parts = urlsplit(url)
        if not parts.hostname or "@" in parts.netloc or parts.fragment:
            raise ConfigurationError("`url`: expected an address like https://policy.example/check, without a password")
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _HERE):
            raise ConfigurationError("`url`: prompts are posted to it: expected https, or http to this machine")
        if token_env is not None and not os.environ.get(token_env):
            raise ConfigurationError(f"`token_env`: the environment variable {token_env} is not set")
        token = [] if token_env is None else [("authorization", f"Bearer {os.environ[token_env].strip()}")]
        self._url = url
        self._headers = [("content-type", "application/json"), ("accept", "application/json"), *token]
        self._content = content
        self._transport = Transport()
        self.before_request: BeforeRequest | None = self._request if requests else None
        self.after_response: AfterResponse | None = self._response if answers else None

    async def _request(self, request: Request, context: HookContext) -> None:
        await self._post("before_request", context, {"request": request} if self._content else {})

    async def _response(self, response: Response, context: HookContext) -> None:
        await self._post("after_response", context, {"response": response} if self._content else {})

    async def _post(self, event: str, context: HookContext, content: dict[str, Any]) -> None:
        """Post, and do what the reply wants.

        Raises:
            RejectedError: it rejects.
            WebhookError: there is no reply, or it is no valid one.
        """
        names = ("request_id", "tenant", "key", "model", "dialect", "stream")
        said = {"event": event, **{name: getattr(context, name) for name in names}, **content}
        try:
            async with await self._transport.send("POST", self._url, self._headers, msgspec.json.encode(said)) as reply:
                data = await reply.read(MOST_REPLY)
        except TransportError as error:
            raise WebhookError(f"no reply: {error}") from error
        if reply.status not in _OK:
            raise WebhookError(f"status {reply.status}")
        self._obey(data, context)

    def _obey(self, data: bytes, context: HookContext) -> None:
        if not data.strip():
            return
        try:
            reply = msgspec.json.decode(data, type=Reply)
        except msgspec.MsgspecError as error:
            raise WebhookError("the reply is no JSON object with `reject` and `tags`") from error
        for name, value in reply.tags.items():
            context.tag(name, value)
        if reply.reject is not None:
            raise RejectedError(reply.reject)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


class WebhookError(Exception):
    """The address did not reply, or not as it has to."""
