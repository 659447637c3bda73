"""The page Fidelity: the pair table as a heat map, and for each pair its features with the bodies before and after."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError
from xenoglot.gateway.admin.requests import CapturedBody
from xenoglot.gateway.console.fidelity.pair_table import FATES, PARTS, Pair, PairExample, pair_table
from xenoglot.gateway.console.inspection.bodies import compare
from xenoglot.gateway.console.links import translation_link
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.gateway.console.fidelity.pair_table import Part
    from xenoglot.gateway.console.inspection.bodies import Comparison
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSONObject

SHADES: Final = (90, 70, 50, 30)
"""Per cent from which on a cell has the first shade, the second, and so on."""
MEDIA: Final = "application/json"
SIDES: Final[dict[Part, tuple[str, str]]] = {
    "requests": ("client_request", "upstream_request"),
    "answers": ("upstream_response", "client_response"),
}
"""The body before and the one after the translation."""


class FidelityPage(Struct, frozen=True):
    """Shows what becomes of each feature between every two dialects."""

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/fidelity", handler=self.table),
            ConsoleRoute(method="GET", path="/fidelity/{client}/{upstream}", handler=self.pair),
        )

    async def table(self, request: ConsoleRequest) -> ConsoleResult:  # noqa: ARG002  the form of a handler
        """Return the heat maps of requests and of answers."""
        pairs = await asyncio.to_thread(pair_table)
        names = dialects.names()
        maps = [(part, _rows(pairs, part)) for part in PARTS]
        values = {"title": "Fidelity", "names": names, "maps": maps, "features": _features(pairs)}
        return Page(template="fidelity.html", values=values)

    async def pair(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the features of a pair, and one of them in detail; for a script, the detail alone.

        Raises:
            FailureError: the dialects are not two that are known, or the sender has no such feature.
        """
        client, upstream = request.variables["client"], request.variables["upstream"]
        pair = (await asyncio.to_thread(pair_table)).get((client, upstream))
        if pair is None:
            message = (
                f"the table has no pair {client!r} and {upstream!r}; expected two of {', '.join(dialects.names())}"
            )
            raise FailureError(Failure(kind="not_found", message=message, status=404))
        part = request.parameter("part") or PARTS[0]
        feature = request.parameter("feature")
        chosen = pair.find(part, feature) if feature is not None else _first(pair)
        if feature is not None and chosen is None:
            message = f"{client} cannot express {feature!r} in {part}, or there is no such feature"
            raise FailureError(Failure(kind="not_found", message=message, status=404))
        values = _shown(pair, chosen)
        if request.is_fragment:
            return Page(template="fidelity_example.html", values=values)
        values |= {"title": f"{client} to {upstream}", "parts": [(name, _groups(pair, name)) for name in PARTS]}
        return Page(template="fidelity_pair.html", values=values)


def _features(pairs: dict[tuple[str, str], Pair]) -> dict[Part, int]:
    """Return how many features of requests and of answers there are."""
    return {part: len({one.feature for pair in pairs.values() for one in pair.of(part)}) for part in PARTS}


def _rows(pairs: dict[tuple[str, str], Pair], part: Part) -> list[tuple[str, list[tuple[str, int | None, int]]]]:
    """Return a row for each client: the name of each upstream, the share that is kept, and the shade of the cell."""
    names = dialects.names()
    return [(client, [_cell(upstream, pairs.get((client, upstream)), part) for upstream in names]) for client in names]


def _cell(upstream: str, pair: Pair | None, part: Part) -> tuple[str, int | None, int]:
    share = None if pair is None else pair.share(part)
    return (
        upstream,
        share,
        0 if share is None else next((n for n, low in enumerate(SHADES) if share >= low), len(SHADES)),
    )


def _groups(pair: Pair, part: Part) -> list[tuple[str, list[PairExample]]]:
    groups: dict[str, list[PairExample]] = {}
    for one in pair.of(part):
        groups.setdefault(one.group, []).append(one)
    return list(groups.items())


def _first(pair: Pair) -> PairExample | None:
    """Return the first feature that something happens to; else the first one."""
    changed = (one for one in pair.examples if one.fate != FATES[0])
    return next(changed, next(iter(pair.examples), None))


def _shown(pair: Pair, chosen: PairExample | None) -> dict[str, object]:
    """Return what the template of an example needs."""
    values: dict[str, object] = {"pair": pair, "chosen": chosen, "comparison": None, "link": ""}
    if chosen is None:
        return values
    sender, receiver = (pair.client, pair.upstream) if chosen.part == "requests" else (pair.upstream, pair.client)
    link = translation_link(sender, receiver, _text(chosen.before))
    return values | {"sender": sender, "receiver": receiver, "comparison": _compared(pair, chosen), "link": link}


def _compared(pair: Pair, chosen: PairExample) -> Comparison:
    before, after = SIDES[chosen.part]
    bodies = {before: _body(before, chosen.before)}
    if chosen.after is not None:
        bodies[after] = _body(after, chosen.after)
    return compare(bodies, (pair.client, pair.upstream), chosen.losses)


def _body(part: str, value: JSONObject) -> CapturedBody:
    return CapturedBody(request="", part=part, media=MEDIA, truncated=False, text=_text(value), expires=0.0)


def _text(value: JSONObject) -> str:
    return msgspec.json.format(encode_json(value)).decode()
