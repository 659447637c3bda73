"""Endpoints of stored answers and conversations: read, list, change and delete."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import parse_qs, unquote

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.endpoint.request_context import AuthService, BodyReader
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.endpoint.routes import EndpointRow
from xenoglot.gateway.observability.request_log import LOSSES
from xenoglot.gateway.store_service import OFF, StoreService, is_id
from xenoglot.gateway.stored.background import BackgroundJobs, cancel
from xenoglot.store.records import UNDONE, Conversation, Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.stored_responses import Conversations, StoredResponseCodec
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.records import Order, Stored

    Told: TypeAlias = "Callable[[StoredQuery], Awaitable[JSON]]"

USUAL_PAGE = 20
LONGEST_PAGE = 100
"""Items of a page: the default and the maximum."""


class StoredQuery:
    """A request about a stored object: the client, the object and the parameters."""

    def __init__(
        self, ctx: RequestContext, endpoints: StoredEndpoints, keeper: StoreService, state: StoredResponseCodec
    ) -> None:
        self.ctx = ctx
        self.exchange = ctx.exchange
        self.dialect = ctx.dialect
        self.keeper = keeper
        self.state = state
        self.owner = ctx.client.owner
        self.jobs = endpoints.jobs
        self.more: list[tuple[str, str]] = []
        """Headers of the response."""
        self._bodies = endpoints.bodies

    @property
    def name(self) -> str:
        """The id in the path."""
        return unquote(self.exchange.variables["id"])

    def query(self, name: str) -> str | None:
        """Return the last value of a query parameter."""
        values = parse_qs(self.exchange.query).get(name)
        return values[-1] if values else None

    async def body(self) -> JSON:
        """Return what was posted; `None` if nothing was."""
        data = await self._bodies.read(self.exchange)
        return await self._bodies.json(data) if data.strip() else None

    def window(self) -> Window:
        """Return which part of a list is wanted.

        Raises:
            WireError: the query's parameters are no window.
        """
        limit = _count(self.query("limit"), "limit", USUAL_PAGE)
        if not 1 <= limit <= LONGEST_PAGE:
            raise WireError("$.limit", f"expected 1 to {LONGEST_PAGE}, got {limit}")
        order = self.query("order")
        if order not in (None, "asc", "desc"):
            raise WireError("$.order", "expected `asc` or `desc`")
        after = self.query("after")
        if after is not None and not is_id(after):
            raise WireError("$.after", "expected an id")
        usual: Order = "asc" if self.state.oldest_first else "desc"
        return Window(limit=limit, after=after, order=_ORDERS[order] if order else usual)


_ORDERS: dict[str, Order] = {"asc": "asc", "desc": "desc"}


class StoredEndpoints(Struct, frozen=True):
    """Serves stored answers and conversations."""

    keeper: StoreService | None
    bodies: BodyReader
    auth: AuthService
    jobs: BackgroundJobs

    def rows(self, dialect: Dialect) -> Iterator[EndpointRow]:
        """Yield what is served of what a dialect keeps."""
        state = dialect.state
        if state is None:
            return
        for path in (state.path, *state.aliases):
            yield from self._answer_rows(dialect, state, path)
        if state.conversations is not None:
            yield from self._conversation_rows(dialect, state.conversations)

    def _answer_rows(self, dialect: Dialect, state: StoredResponseCodec, path: str) -> Iterator[EndpointRow]:
        one = f"{path}/{{id}}"
        yield self._row("GET", one, dialect, _retrieve)
        yield self._row("DELETE", one, dialect, _delete)
        if state.items_path:
            yield self._row("GET", f"{one}/{state.items_path}", dialect, _list_items)
        if state.background is not None:
            yield self._row("POST", f"{one}/cancel", dialect, _cancel)
        if state.update is not None:
            yield self._row("GET", path, dialect, _list)
            yield self._row("POST", one, dialect, partial(_update, state.update))

    def _conversation_rows(self, dialect: Dialect, spoken: Conversations) -> Iterator[EndpointRow]:
        one = f"{spoken.path}/{{id}}"
        for method, path, told in (
            ("POST", spoken.path, _create_conversation),
            ("GET", one, _retrieve_conversation),
            ("POST", one, _update_conversation),
            ("DELETE", one, _delete_conversation),
            ("GET", f"{one}/items", _list_conversation),
            ("POST", f"{one}/items", _add_items),
            ("GET", f"{one}/items/{{item}}", _retrieve_item),
            ("DELETE", f"{one}/items/{{item}}", _delete_item),
        ):
            yield self._row(method, path, dialect, partial(told, spoken))

    def _row(self, method: str, path: str, dialect: Dialect, told: Told) -> EndpointRow:
        return EndpointRow(method=method, path=path, policy="key", handler=partial(self._tell, told), dialect=dialect)

    async def _tell(self, told: Told, ctx: RequestContext) -> None:
        """Serve the request, and send the result; `None` was sent already."""
        if self.keeper is None or ctx.dialect.state is None:
            raise FailureError(OFF)
        asked = StoredQuery(ctx, self, self.keeper, ctx.dialect.state)
        if ctx.exchange.method != "POST":
            await asked.body()  # nothing is in it; now the client's leaving is noticed
        answer = await told(asked)
        if answer is not None:
            await send_json(ctx, answer, more=asked.more)


async def _known(asked: StoredQuery) -> Stored:
    """Return the requested answer.

    Raises:
        FailureError: there is none.
    """
    answer = await asked.keeper.get(asked.owner, asked.name, asked.state)
    if answer is None:
        raise FailureError(asked.state.unknown(asked.name))
    return answer


async def _retrieve(asked: StoredQuery) -> JSON:
    answer = await _known(asked)
    if asked.query("stream") != "true":
        if answer.losses:
            asked.more.append((LOSSES, answer.losses))
        if asked.state.with_input is not None and asked.query("include_input") == "true":
            return asked.state.with_input(answer.response, answer.items)
        return answer.response
    if not answer.streamed:
        raise FailureError(asked.state.not_followed(asked.name))
    after = _event_number(asked.query(asked.state.resumed_after), asked.state)
    key = (answer.owner, answer.id)
    await asked.jobs.follow(asked.ctx, key, after)
    return None


def _event_number(given: str | None, state: StoredResponseCodec) -> int:
    """Return the number of the event after which a stream continues; -1 is its beginning.

    Raises:
        WireError: the query names no event.
    """
    if given is None or state.event_number is None:
        return _count(given, "starting_after", -1)
    return state.event_number(given)


async def _delete(asked: StoredQuery) -> JSON:
    answer = await _known(asked)
    if answer.background and answer.status in UNDONE:
        await cancel(asked.keeper, asked.state, answer)
    await asked.keeper.need(asked.keeper.store.delete(asked.owner, asked.name))
    return asked.state.deleted(asked.name)


async def _cancel(asked: StoredQuery) -> JSON:
    await asked.body()
    return (await cancel(asked.keeper, asked.state, await _known(asked))).response


async def _update(change: Callable[[JSONObject, JSON], JSONObject], asked: StoredQuery) -> JSON:
    body = await asked.body()
    answer = await _known(asked)
    changed = replace(answer, response=change(answer.response, body))
    if not await asked.keeper.need(asked.keeper.store.amend(changed)):
        raise FailureError(asked.state.unknown(asked.name))
    return changed.response


async def _list_items(asked: StoredQuery) -> JSON:
    answer = await _known(asked)
    items = asked.state.listed(answer.items, answer.id)
    return _page(asked, items)


async def _list(asked: StoredQuery) -> JSON:
    """Return answers; those of another model or with other labels than the query names are passed over."""
    window = asked.window()
    wanted = {name: values[-1] for name, values in parse_qs(asked.exchange.query).items()}
    found: list[JSONObject] = []
    behind: str | None = window.after
    while len(found) <= window.limit:
        step = Window(limit=LONGEST_PAGE, after=behind, order=window.order)
        answers = await asked.keeper.need(asked.keeper.store.answers(asked.owner, asked.dialect.name, step))
        found += [answer.response for answer in answers if _fits(answer, wanted)]
        if len(answers) < LONGEST_PAGE:
            break
        behind = answers[-1].id
    return asked.state.page(found[: window.limit], len(found) > window.limit)


def _fits(answer: Stored, wanted: dict[str, str]) -> bool:
    """Whether an answer is of the model and has the labels (`metadata[key]=value`) that are wanted."""
    labels = answer.response.get("metadata")
    known = labels if isinstance(labels, dict) else {}
    for name, value in wanted.items():
        if name == "model" and answer.response.get("model") != value:
            return False
        if name.startswith("metadata[") and known.get(name[len("metadata[") : -1]) != value:
            return False
    return True


def _page(asked: StoredQuery, items: Sequence[JSONObject]) -> JSONObject:
    """Return the part of `items`, which are in the order of time, that is wanted."""
    window = asked.window()
    ordered = list(items) if window.order == "asc" else list(reversed(items))
    if window.after is not None:
        places = [place for place, item in enumerate(ordered) if item.get("id") == window.after]
        ordered = ordered[places[0] + 1 :] if places else []
    return asked.state.page(ordered[: window.limit], len(ordered) > window.limit)


async def _create_conversation(spoken: Conversations, asked: StoredQuery) -> JSON:
    metadata, items = spoken.create(await asked.body())
    name = spoken.id_prefix + secrets.token_hex(24)
    made = Conversation(id=name, owner=asked.owner, created=asked.keeper.now(), metadata=metadata)
    await asked.keeper.need(asked.keeper.store.create_conversation(made, spoken.identify(items, name, ())))
    asked.keeper.sweep()
    return _shown(spoken, made)


async def _retrieve_conversation(spoken: Conversations, asked: StoredQuery) -> JSON:
    return _shown(spoken, await _known_conversation(spoken, asked))


async def _update_conversation(spoken: Conversations, asked: StoredQuery) -> JSON:
    metadata = spoken.metadata(await asked.body())
    await _known_conversation(spoken, asked)
    changed = await asked.keeper.need(asked.keeper.store.update_conversation(asked.owner, asked.name, metadata))
    if changed is None:
        raise FailureError(spoken.unknown(asked.name))
    return _shown(spoken, changed)


async def _delete_conversation(spoken: Conversations, asked: StoredQuery) -> JSON:
    await _known_conversation(spoken, asked)
    await asked.keeper.need(asked.keeper.store.delete_conversation(asked.owner, asked.name))
    return spoken.deleted(asked.name)


async def _list_conversation(spoken: Conversations, asked: StoredQuery) -> JSON:
    window = asked.window()
    await _known_conversation(spoken, asked)
    wider = replace(window, limit=window.limit + 1)
    items = await asked.keeper.need(asked.keeper.store.items(asked.owner, asked.name, wider))
    return asked.state.page(items[: window.limit], len(items) > window.limit)


async def _add_items(spoken: Conversations, asked: StoredQuery) -> JSON:
    items = spoken.identify(spoken.added(await asked.body()), secrets.token_hex(24), ())
    await _known_conversation(spoken, asked)
    keeper = asked.keeper
    if not await keeper.need(keeper.store.add_items(asked.owner, asked.name, items, keeper.now())):
        raise FailureError(spoken.unknown(asked.name))
    return asked.state.page(items, False)  # noqa: FBT003  all of them


async def _retrieve_item(spoken: Conversations, asked: StoredQuery) -> JSON:
    await _known_conversation(spoken, asked)
    name = unquote(asked.exchange.variables["item"])
    store = asked.keeper.store
    item = await asked.keeper.need(store.conversation_item(asked.owner, asked.name, name)) if is_id(name) else None
    if item is None:
        raise FailureError(spoken.unknown_item(name, asked.name))
    return item


async def _delete_item(spoken: Conversations, asked: StoredQuery) -> JSON:
    conversation = await _known_conversation(spoken, asked)
    name = unquote(asked.exchange.variables["item"])
    store = asked.keeper.store
    if not (is_id(name) and await asked.keeper.need(store.delete_item(asked.owner, asked.name, name))):
        raise FailureError(spoken.unknown_item(name, asked.name))
    return _shown(spoken, conversation)


async def _known_conversation(spoken: Conversations, asked: StoredQuery) -> Conversation:
    """Return the conversation of a query.

    Raises:
        FailureError: there is none.
    """
    store = asked.keeper.store
    found = await asked.keeper.need(store.conversation(asked.owner, asked.name)) if is_id(asked.name) else None
    if found is None:
        raise FailureError(spoken.unknown(asked.name))
    return found


def _shown(spoken: Conversations, conversation: Conversation) -> JSONObject:
    return spoken.show(conversation.id, int(conversation.created), conversation.metadata)


def _count(said: str | None, name: Literal["limit", "starting_after"], usual: int) -> int:
    """Return a number in the query.

    Raises:
        WireError: it is none.
    """
    if said is None:
        return usual
    if not (said.isascii() and said.isdecimal() and len(said) <= len(str(2**53))):
        raise WireError(f"$.{name}", "expected a number")
    return int(said)
