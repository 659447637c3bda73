"""The pair table: what becomes of each example between every two dialects, with the bodies before and after.

Theory of operation. An example is written in the dialect of its sender, as that dialect has it; if anything is lost
there, the sender cannot express the feature, and there is no cell. Then it is translated as the gateway does. Losses
that an example without any feature has too (a length limit that one dialect requires) are not of the feature, unless
they have its name. What is left decides the cell: the worst loss, or that the request is refused.

Some 5000 translations of small bodies are made for the whole table, at the first visit.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.requests.adapt_request import encode_fitted
from xenoglot.codec.target import Target
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.console.fidelity import request_examples, response_examples
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Request, Thinking
from xenoglot.translate import translate_request, translate_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from xenoglot.model.response import Response

Part: TypeAlias = Literal["requests", "answers"]
Fate: TypeAlias = Literal["exact", "emulated", "approximated", "dropped", "refused"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_Kind: TypeAlias = "tuple[str, str, str]"
"""A loss without its place."""

PARTS: Final[tuple[Part, ...]] = ("requests", "answers")
FATES: Final[tuple[Fate, ...]] = ("exact", "emulated", "approximated", "dropped", "refused")
"""From the best to the worst."""
KEPT: Final = ("exact", "emulated")
"""What counts as kept in the heat map."""
SERVER: Final = Target(developer_role=True, tool_result_media=True, cache_marks=True, custom_tools=True)
"""A server that takes whatever its dialect can express."""
SPELLINGS: Final = (SERVER, replace(SERVER, thinking="budget"))
"""How a sender writes what dialects have several spellings for: the first without a loss counts."""
ASKED: Final = Request(model="", thinking=Thinking(mode="enabled", display="summarized", summary="auto"))
"""What the client of an answer has requested: reasoning is left out of answers to clients that do not ask for it."""


class PairExample(Struct, frozen=True, kw_only=True):
    """What becomes of a feature from a client's dialect to that of an upstream, or back in `answers`.

    `before` is in the dialect of the sender, `after` in that of the receiver; without `after` the request is refused
    for the `problem`.
    """

    part: Part
    group: str
    feature: str
    fate: Fate
    losses: tuple[Loss, ...]
    before: JSONObject
    after: JSONObject | None
    problem: str = ""


class Pair(Struct, frozen=True, kw_only=True):
    """Two dialects, and what becomes of each feature between them."""

    client: str
    upstream: str
    examples: tuple[PairExample, ...]

    def of(self, part: Part) -> list[PairExample]:
        """Return the examples of requests, or those of answers."""
        return [one for one in self.examples if one.part == part]

    def share(self, part: Part) -> int | None:
        """Return how many per cent of the features are kept; `None` if no feature can be expressed."""
        found = self.of(part)
        return 100 * sum(one.fate in KEPT for one in found) // len(found) if found else None

    def find(self, part: str, feature: str) -> PairExample | None:
        """Return the example of a feature; `None` if the sender cannot express it."""
        return next((one for one in self.examples if (one.part, one.feature) == (part, feature)), None)


@cache
def pair_table() -> dict[tuple[str, str], Pair]:
    """Return all pairs of two dialects, by client and upstream."""
    names = dialects.names()
    return {(client, upstream): _pair(client, upstream) for client in names for upstream in names if client != upstream}


def _pair(client: str, upstream: str) -> Pair:
    return Pair(client=client, upstream=upstream, examples=(*_requests(client, upstream), *_answers(client, upstream)))


def _requests(client: str, upstream: str) -> Iterator[PairExample]:
    def translated(body: JSONObject, losses: Losses) -> JSONObject:
        return translate_request(body, client, upstream, losses, SERVER)

    yield from _examples("requests", _sent(client), translated)


def _answers(client: str, upstream: str) -> Iterator[PairExample]:
    def translated(body: JSONObject, losses: Losses) -> JSONObject:
        return translate_response(body, upstream, client, losses, ASKED)

    yield from _examples("answers", _given(upstream), translated)


class _Example(Protocol[T_co]):
    """An example of a feature: `RequestExample` or `ResponseExample`."""

    @property
    def group(self) -> str: ...
    @property
    def feature(self) -> str: ...
    @property
    def forms(self) -> tuple[T_co, ...]: ...


class _Written(Struct, frozen=True):
    """A feature in the dialect of its sender; without a name, the body that has none."""

    group: str
    feature: str
    body: JSONObject


def _examples(
    part: Part, written: tuple[_Written, ...], translated: Callable[[JSONObject, Losses], JSONObject]
) -> Iterator[PairExample]:
    plain, *rest = written
    usual = _example(part, plain, translated, frozenset()).losses
    known = frozenset(_kind(loss) for loss in usual)
    for one in rest:
        yield _example(part, one, translated, known)


def _example(
    part: Part, one: _Written, translated: Callable[[JSONObject, Losses], JSONObject], known: frozenset[_Kind]
) -> PairExample:
    """Return what becomes of a feature; `known` are losses that have nothing to do with it."""
    losses = Losses()
    after, problem = None, ""
    try:
        after = translated(one.body, losses)
    except WireError as error:
        problem = str(error)
    except FailureError as error:
        problem = error.failure.message
    names = one.feature.replace(" ", "_")
    mine = tuple(loss for loss in losses if _kind(loss) not in known or loss.what in names)
    fate: Fate = "refused" if after is None else max((loss.how for loss in mine), key=FATES.index, default="exact")
    return PairExample(
        part=part,
        group=one.group,
        feature=one.feature,
        fate=fate,
        losses=mine,
        before=one.body,
        after=after,
        problem=problem,
    )


@lru_cache(maxsize=64)
def _sent(client: str) -> tuple[_Written, ...]:
    """Return a request of a dialect without any feature, and one for each feature that it can express."""
    dialect = dialects.get(client)

    def written(request: Request, target: Target, losses: Losses) -> JSONObject:
        return encode_fitted(dialect, request, target, losses)

    return tuple(_expressed(request_examples.BASE, request_examples.request_examples(client), written))


@lru_cache(maxsize=64)
def _given(upstream: str) -> tuple[_Written, ...]:
    """Return an answer of a dialect without any feature, and one for each feature that it can express."""
    dialect = dialects.get(upstream)

    def written(response: Response, _: Target, losses: Losses) -> JSONObject:
        return dialect.encode_response(response, ASKED, losses)

    return tuple(_expressed(response_examples.BASE, response_examples.response_examples(upstream), written))


def _expressed(
    base: T, examples: Iterable[_Example[T]], write: Callable[[T, Target, Losses], JSONObject]
) -> Iterator[_Written]:
    """Yield the base, and the examples that a dialect can express: each in its first form that loses nothing."""
    plain, usual = _attempt(base, SERVER, write)
    yield _Written("", "", plain or {})
    for one in examples:
        for form, target in product(one.forms, SPELLINGS):
            body, lost = _attempt(form, target, write)
            if body is not None and lost <= usual:
                yield _Written(one.group, one.feature, body)
                break


def _attempt(
    what: T, target: Target, write: Callable[[T, Target, Losses], JSONObject]
) -> tuple[JSONObject | None, frozenset[_Kind]]:
    """Return a body and the kinds of its losses; `None` if the dialect refuses it."""
    losses = Losses()
    try:
        body = write(what, target, losses)
    except (WireError, FailureError):
        return None, frozenset()
    return body, frozenset(_kind(loss) for loss in losses)


def _kind(loss: Loss) -> _Kind:
    return loss.what, loss.how, loss.why
