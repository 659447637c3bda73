"""The page Translate: a request, response or stream in another dialect while it is typed, and what is lost.

What is typed is sent to this gateway alone; the link to share has it in its fragment, which no browser sends.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.errors import ConfigurationError, FailureError, WireError
from xenoglot.gateway.admin.route import RawBody, decoded
from xenoglot.gateway.admin.translation import Translation
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.model.content import Text
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Message, Request, Sampling, Thinking, Tool
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSON

JSON_TYPE: Final = "application/json"
EXAMPLE: Final = Request(
    model="large",
    messages=(
        Message(role="system", content=(Text(text="Answer in one sentence."),)),
        Message(role="user", content=(Text(text="Is it raining in Oslo?"),)),
    ),
    tools=(
        Tool(
            name="weather",
            description="The weather of a city.",
            parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        ),
    ),
    sampling=Sampling(max_tokens=500, temperature=0.7, seed=7, frequency_penalty=0.5),
    thinking=Thinking(effort="low"),
)


class TypedText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """What the page sends: the text, its dialect, the other one, and facts about the server, as JSON."""

    from_: str
    to: str
    text: str
    target: str = ""


class TranslationPage(Struct, frozen=True):
    """Translates what is typed."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/translate", handler=self.page),
            ConsoleRoute(method="POST", path="/translate", handler=self.translate),
        )

    async def page(self, request: ConsoleRequest) -> ConsoleResult:  # noqa: ARG002  the form of a handler
        """Return the page."""
        values = {
            "title": "Translate",
            "dialects": dialects.names(),
            "providers": await asyncio.to_thread(provider_facts),
            "examples": examples(),
        }
        return Page(template="translate.html", values=values)

    async def translate(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the translation as JSON for the script of the page, or what is wrong, and where."""
        try:
            typed = decoded(decode_json(request.body), TypedText)
            body: JSONObject = {"from": typed.from_, "to": typed.to, **parsed_text(typed.text)}
            if typed.target.strip():
                body["target"] = _object(typed.target)
            made = await self.calls.call(request, "POST", "/translate", body=body, reads=True)
        except FailureError as error:
            return _json({"problem": error.failure.message, "path": error.failure.param})
        except WireError as error:
            return _json({"problem": error.problem, "path": error.path})
        if not isinstance(made, Translation):
            raise TypeError(type(made).__name__)
        text = made.stream if made.body is None else msgspec.json.format(encode_json(made.body)).decode()
        return _json({"text": text, "losses": [msgspec.to_builtins(loss) for loss in made.losses]})


@cache
def provider_facts() -> dict[str, dict[str, JSONObject]]:
    """Return the facts about each provider's server, by its dialect; rows that are invalid are left out."""
    found = {}
    for name in catalog.names():
        with suppress(ConfigurationError):  # of a plugin
            row = catalog.get(name)
            found[row.title] = {face.dialect: catalog.merged(row.quirks, face.quirks) for face in reversed(row.faces)}
    return found


@cache
def examples() -> JSONObject:
    """Return a request of each dialect, as the text of its body."""
    return {name: _formatted(name) for name in dialects.names()}


def _formatted(name: str) -> str:
    dialect = dialects.get(name)
    prompt = EXAMPLE if dialect.turns else msgspec.structs.replace(EXAMPLE, messages=EXAMPLE.messages[1:], tools=())
    try:
        body = dialect.encode_request(prompt, Losses(), Target())
    except (WireError, FailureError):
        return ""
    return msgspec.json.format(encode_json(body)).decode()


def parsed_text(text: str) -> JSONObject:
    """Return the part of a translation's body that a text is: one JSON object, or a stream."""
    try:
        value: JSON = decode_json(text.encode())
    except WireError as error:
        if text.lstrip().startswith("{") and "\n{" not in text.strip():
            raise WireError("$", error.problem) from None
        return {"stream": text}
    return {"body": value} if isinstance(value, dict) else {"stream": text}


def _object(text: str) -> JSONObject:
    try:
        value = decode_json(text.encode())
    except WireError as error:
        raise WireError("$.target", error.problem) from None
    if not isinstance(value, dict):
        raise WireError("$.target", "expected a JSON object")
    return value


def _json(value: JSON) -> RawBody:
    return RawBody(encode_json(value), JSON_TYPE)
