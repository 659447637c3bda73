"""Writes probe requests in one dialect, and collects what every answer shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.request import Message, Request
from xenoglot.providers.probe.exchange import ProbeRequest, read_answer
from xenoglot.providers.probe.findings import ProbeCost, ProbeExchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.providers.probe.exchange import Conversation, ProbeAnswer
    from xenoglot.providers.provider import AuthForm

DEFAULT_CAP: Final = 48
"""Tokens of an answer: enough for a call of a tool."""

REASONING_CAP: Final = 1024
"""The same of a model that thinks before it answers."""

NONSENSE: Final = "xenoglot-probe"

REASONING_FIELDS: Final = ("reasoning_details", "reasoning_content", "reasoning")
"""Where servers put reasoning in dialects without a standard for it."""


class ProbeRecord:
    """Facts that are recorded from every answer."""

    def __init__(self) -> None:
        self.requests = 0
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.headers: dict[str, str] = {}
        self.reasoning: dict[str, str] = {}
        self.call_ids: list[str] = []
        self.texts: list[ProbeExchange] = []

    def record(self, answer: ProbeAnswer) -> None:
        """Take down what `answer` shows by the way."""
        self.requests += 1
        self.headers.update(answer.headers)
        for value in answer.values:
            for message in _messages(value):
                self.reasoning |= {name: answer.request.description for name in REASONING_FIELDS if message.get(name)}
        response = answer.response
        if response is None:
            return
        self.call_ids += [part.id for part in parts_of(answer) if isinstance(part, ToolCall)]
        if answer.text and not any(isinstance(part, ToolCall) for part in parts_of(answer)):
            self.texts.append(ProbeExchange(asked=answer.request.description, answered=answer.text))
        if response.usage is not None:
            self.input_tokens = _sum(self.input_tokens, response.usage.input_tokens)
            self.output_tokens = _sum(self.output_tokens, response.usage.output_tokens)

    @property
    def spent(self) -> ProbeCost:
        """What it all cost so far."""
        return ProbeCost(requests=self.requests, input_tokens=self.input_tokens, output_tokens=self.output_tokens)


class DialectClient:
    """Asks one model in one dialect; `target` is what is known of the server so far."""

    def __init__(self, dialect: str | Dialect, model: str, notes: ProbeRecord, auth: AuthForm | None = None) -> None:
        self.dialect = get(dialect) if isinstance(dialect, str) else dialect
        self.model = model
        self.notes = notes
        self.auth = auth
        self.target = Target()
        self.cap = DEFAULT_CAP
        self.refuses_unknown: bool | None = None

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.dialect.name

    def request(self, *turns: str | Message, **fields: object) -> Request:
        """Return a request of few tokens; a string is a user message."""
        messages = tuple(make_message("user", turn) if isinstance(turn, str) else turn for turn in turns)
        made = Request(model=self.model, messages=messages, **fields)  # type: ignore[arg-type]
        cap = self.cap if made.sampling.max_tokens is None else made.sampling.max_tokens
        return replace(made, sampling=replace(made.sampling, max_tokens=cap))

    def encode(self, request: Request, needs: tuple[str, ...] = (), **target: object) -> JSONObject | None:
        """Return the body for the server; `None` if the dialect does not support what it `needs`."""
        losses, facts = Losses(), replace(self.target, **target)
        try:
            fit = fitted(request, self.name, facts, losses, self.dialect.hosted_tools)
            body = self.dialect.encode_request(fit, losses, facts)
        except WireError:
            return None
        return None if any(loss.what in needs for loss in losses) else body

    def post(self, body: JSONObject, words: str) -> Conversation[ProbeAnswer]:
        """Ask what `body` asks."""
        path, query, rest = addressed(body | self.target.body_fields, self.dialect)
        ask = ProbeRequest(
            method="POST",
            dialect=self.name,
            path=path,
            query=query,
            body=rest,
            description=words,
            stream=body.get("stream") is True,
            auth=self.auth,
        )
        return (yield from self.send(ask))

    def send(self, ask: ProbeRequest) -> Conversation[ProbeAnswer]:
        """Send a question that is ready, and take down what comes."""
        answer = read_answer(ask, (yield ask), self.dialect)
        self.notes.record(answer)
        return answer

    def post_with_retry(self, body: JSONObject, words: str) -> Conversation[ProbeAnswer]:
        """Send a request, and retry once if the server failed."""
        answer = yield from self.post(body, words)
        return (yield from self.post(body, words)) if answer.outcome == "failing" else answer


def make_message(role: str, *parts: Part | str) -> Message:
    """Return one turn; a string is a text."""
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, content=content)  # type: ignore[arg-type]


def parts_of(answer: ProbeAnswer) -> Iterator[Part]:
    """Yield the parts of all answers that there are."""
    for candidate in answer.response.candidates if answer.response is not None else ():
        yield from candidate.content


def with_nonsense(value: JSON, wrong: Callable[[str, JSON], bool]) -> JSON:
    """Return a copy of `value` with nonsense at each key of an object of which `wrong` holds."""
    if isinstance(value, list):
        return [with_nonsense(item, wrong) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _nonsense(item) if wrong(key, item) else with_nonsense(item, wrong) for key, item in value.items()}


def _nonsense(value: JSON) -> JSON:
    """Return a value that a checking server rejects: an unknown word, or one of the wrong type."""
    return {"xenoglot": "probe"} if isinstance(value, list) else NONSENSE


def _messages(value: JSON) -> Iterator[JSONObject]:
    choices = value.get("choices") if isinstance(value, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        for name in ("message", "delta"):
            message = choice.get(name) if isinstance(choice, dict) else None
            if isinstance(message, dict):
                yield message


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more
