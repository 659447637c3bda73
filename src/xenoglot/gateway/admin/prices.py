"""`/admin/v1/prices`: prices of the operator in the store, which come before those of the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from xenoglot.codec.invalid_request import refused
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.route import (
    AdminRequest,
    AdminRoute,
    Page,
    PageQuery,
    decode_cursor,
    encode_cursor,
    not_found,
)
from xenoglot.gateway.admin.services import NO_LEDGER, AdminServices
from xenoglot.gateway.admin.usage import moment
from xenoglot.gateway.config.ledger import Amount, amount
from xenoglot.store.ledger import prices
from xenoglot.store.ledger.prices import StoredPrice

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminResult

Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$")]


class PriceValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of a million tokens, as numbers, or as text without any rounding.

    `model` is a name or a pattern. Without `upstream` they are for all. `valid_from` is now if not set.
    """

    model: Annotated[str, Meta(min_length=1, max_length=200)]
    upstream: str | None = None
    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    currency: Currency = "USD"
    valid_from: str | None = None


class PriceRow(Struct, frozen=True, kw_only=True):
    """A price of the store. `valid_from` is in Unix seconds."""

    object: Literal["price"] = "price"
    id: str
    model: str
    upstream: str | None
    input: str
    output: str
    cache_read: str | None
    cache_write: str | None
    currency: str
    valid_from: float


class DeletedRow(Struct, frozen=True, kw_only=True):
    """An object that was deleted."""

    id: str
    deleted: bool = True


class PriceRoutes(Struct, frozen=True):
    """Routes for prices."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/prices",
                handler=self.prices,
                summary="List the prices of the store.",
                query=PageQuery,
                returns=PriceRow,
                paged=True,
            ),
            AdminRoute(
                method="POST",
                path="/prices",
                handler=self.set_price,
                summary="Set the price of a model, from now on or from a time on.",
                takes=PriceValues,
                returns=PriceRow,
                status=201,
                changes=True,
            ),
            AdminRoute(
                method="DELETE",
                path="/prices/{id}",
                handler=self.delete,
                summary="Delete a price of the store.",
                returns=DeletedRow,
                changes=True,
            ),
        )

    async def prices(self, request: AdminRequest) -> AdminResult:
        """Return a page of prices, by model, upstream and time.

        Raises:
            FailureError: the ledger is off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query = request.query(PageQuery)
        self._check()
        after = decode_cursor(query.after, str, str, float)
        rows = [row for row in await self.services.read(prices.prices()) if after is None or row.key > after]
        page = Page.of(rows, query.limit, lambda row: row.key)
        return Page(data=[_row(row) for row in rows[: query.limit]], has_more=page.has_more, next=page.next)

    async def set_price(self, request: AdminRequest) -> AdminResult:
        """Store a price.

        Raises:
            FailureError: the ledger is off, the upstream does not exist, or the store cannot be used.
            WireError: the body is invalid.
        """
        body, services = request.body(PriceValues), self.services
        self._check()
        if body.upstream is not None and body.upstream not in services.backends:
            known = ", ".join(services.backends)
            raise refused("$.upstream", f"no such upstream; expected one of {known}")
        now = services.now()
        price = StoredPrice(
            pattern=body.model,
            upstream=body.upstream or "",
            valid_from=now if body.valid_from is None else moment("$.valid_from", body.valid_from, now),
            input=_decimal("input", body.input) or "0",
            output=_decimal("output", body.output) or "0",
            cache_read=_decimal("cache_read", body.cache_read),
            cache_write=_decimal("cache_write", body.cache_write),
            currency=body.currency,
        )
        await services.write(prices.put(price, request.change(now)))
        await self._use()
        return _row(price)

    async def delete(self, request: AdminRequest) -> AdminResult:
        """Delete a price.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        self._check()
        name, services = request.variables["id"], self.services
        try:
            key = decode_cursor(name, str, str, float)
        except WireError:
            key = None
        found = key is not None and await services.write(
            prices.delete((str(key[0]), str(key[1]), float(key[2])), request.change(services.now()))
        )
        if not found:
            raise not_found("price", name)
        await self._use()
        return DeletedRow(id=name)

    def _check(self) -> None:
        if self.services.prices is None:
            raise FailureError(NO_LEDGER)

    async def _use(self) -> None:
        """Use the prices of the store at once; other gateways read them soon."""
        if self.services.prices is not None:
            self.services.prices.use_stored(await self.services.read(prices.prices()))


def _row(price: StoredPrice) -> PriceRow:
    values = asdict(price)
    return PriceRow(
        id=encode_cursor(price.key),
        model=values.pop("pattern"),
        upstream=values.pop("upstream") or None,
        **values,
    )


def _decimal(name: str, value: Amount | None) -> str | None:
    """Return a price as decimal text.

    Raises:
        WireError: it is not a number of at least 0.
    """
    number = amount(value)
    if number is None:
        return None
    if number.is_nan():
        raise WireError(f"$.{name}", "expected a number of at least 0")
    return f"{number:f}"
