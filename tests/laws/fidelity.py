"""The page `docs/fidelity.md`: what becomes of every feature between every two dialects, as the vectors show it.

python -m tests.laws.fidelity > docs/fidelity.md
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from tests.laws.essence import CONTENT_FIELDS, LISTS, NAMED
from tests.laws.features import ANSWERED, ASKED, SEVERAL, SINGLE, Use, answered, asked
from tests.laws.test_crossing import ANSWERS, CROSSED, TARGET, answer_of
from tests.laws.test_crossing import ASKED as REQUEST
from tests.laws.vectors import Case, cases
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.requests.encode_context import PREVIOUS
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.failure import STATUS, Failure
from xenoglot.model.request import Request
from xenoglot.model.response import Response

FATES = ("exact", "emulated", "approximated", "dropped", "refused")
"""From the best to the worst."""

SIGNS = {"exact": "=", "emulated": "e", "approximated": "~", "dropped": "x", "refused": "!"}
UNTESTED = "-"

ALL_OF_IT = "the request as a whole"

HEAD = """\
# Fidelity

What becomes of each feature when a client of one dialect has an upstream of another. Made by `make fidelity` from the
[vectors](../tests/vectors): each of them crosses to every other dialect and back, and what its [losses](losses.md) tell
is counted here. A test holds the page to it.

| sign | what becomes of it |
|---|---|
| `=` | it arrives as it was, or as another spelling of the same |
| `e` | emulated: other means, the same effect |
| `~` | approximated: something near it arrives |
| `x` | dropped, and said so |
| `!` | refused with a 400 that names the field, for without it the request would be another |
| `-` | no vector shows it |

A cell is the worst that befell the feature, and behind it how often of how many vectors where they differ. Of a request
that is refused the feature that is blamed is counted, and the others where they can be asked without it. An answer is
counted as a whole and as a stream. The server behind takes whatever its dialect can say;
[`target`](configuration.md#upstreamsnametarget) narrows that. To find out what an agent loses, look up the section of
its dialect and the column of its server. Between the same dialects everything is exact.
"""


class Tally(Struct):
    """What befell one feature between two dialects, vector by vector."""

    fates: list[str]

    def cell(self) -> str:
        """Return the worst, and how often."""
        worst = max(self.fates, key=FATES.index)
        count, of = self.fates.count(worst), len(self.fates)
        return f"`{SIGNS[worst]}`" if count == of else f"`{SIGNS[worst]}` {count}/{of}"


Table = dict[str, dict[str, Tally]]
"""Feature -> the other dialect -> what befell it."""


def page() -> str:
    """Return the whole page."""
    sections = [HEAD, *(_section(name) for name in names())]
    return "\n".join(sections)


def _section(client: str) -> str:
    others = [name for name in names() if name != client]
    sent: Table = {}
    received: Table = {}
    failures: Table = {}
    for other in others:
        _note(sent, other, (_sent_uses(case, other) for case in _of(client, "request.json")))
        _note(received, other, (_received_uses(case, client) for case in _of(other, *ANSWERS)))
        _note(failures, other, (_told(case, client) for case in _of(other, "error.json")))
    return "\n".join(
        [
            f"## Clients of `{client}`\n",
            f"### What requests of `{client}` keep\n",
            *_tables(sent, others, {**ASKED, "Refused": (ALL_OF_IT,)}),
            f"### What answers to `{client}` keep\n",
            *_tables(received, others, ANSWERED),
            f"### What errors told to `{client}` keep\n",
            *_tables(failures, others, {"Errors": tuple(sorted(STATUS))}),
        ]
    )


def _of(dialect: str, *files: str) -> Iterator[Case]:
    for case in cases():
        if case.folder.parent.name == dialect and any((case.folder / file).exists() for file in files):
            yield case


def _note(table: Table, other: str, found: Iterable[dict[str, str]]) -> None:
    for fates in found:
        for feature, fate in fates.items():
            table.setdefault(feature, {}).setdefault(other, Tally([])).fates.append(fate)


def _sent_uses(case: Case, name: str) -> dict[str, str]:
    """Return what becomes of each feature of a request on its way to another dialect."""
    request, uses = _request_of(case)
    fates: dict[str, str] = {}
    while True:
        losses = Losses()
        try:
            get(name).encode_request(fitted(request, name, TARGET, losses), losses, TARGET)
        except WireError as error:
            stated = f"$.{request.extra.form.get(PREVIOUS)}" if request.extra is not None else None
            fates |= blamed("$.previous" if error.path == stated else error.path, uses)
        else:
            return fates_of(uses, losses, request) | fates
        lesser = without(request, fates.keys(), uses)
        if lesser == request:
            return fates
        request, uses = lesser, [use for use in uses if use.feature not in fates]


def without(request: Request, features: Iterable[str], uses: list[Use]) -> Request:
    """Return the request without those features that are one field each, so that it can tell of the others."""
    paths = [use.thing.path.removeprefix("$.") for use in uses if use.feature in features]
    sampling = {path.removeprefix("sampling."): None for path in paths if path.startswith("sampling.")}
    fields = {path: None for path in paths if path in SINGLE}
    return replace(request, sampling=replace(request.sampling, **sampling), **fields)


@cache
def _request_of(case: Case) -> tuple[Request, list[Use]]:
    request = case.dialect.decode_request(case.request)
    return request, list(asked(request))


def blamed(path: str, uses: list[Use]) -> dict[str, str]:
    """Return the feature that a refusal blames; of the others such a vector tells nothing."""
    last = path.rpartition(".")[2].partition("[")[0]
    found = {
        use.feature
        for use in uses
        if use.thing.path.startswith(path) or last == use.thing.path.rpartition(".")[2].partition("[")[0]
    }
    return dict.fromkeys(found or {ALL_OF_IT}, "refused")


def _received_uses(case: Case, name: str) -> dict[str, str]:
    """Return what becomes of each feature of an answer, whole or streamed, on its way to a client."""
    fates: dict[str, str] = {}
    for file in ANSWERS:
        response, uses = _response_of(case, file)
        for how in CROSSED if response is not None else ():
            losses = Losses()
            CROSSED[how](response, REQUEST, name, losses)  # type: ignore[arg-type]  # not None where there is a `how`
            for feature, fate in fates_of(uses, losses, response).items():  # type: ignore[arg-type]
                fates[feature] = _worse(fates.get(feature, FATES[0]), fate)
    return fates


@cache
def _response_of(case: Case, file: str) -> tuple[Response | None, list[Use]]:
    if not (case.folder / file).exists():
        return None, []
    response = answer_of(case, file, case.dialect)
    return response, [] if response is None else list(answered(response))


def fates_of(uses: list[Use], losses: Losses, whole: Struct) -> dict[str, str]:
    fates: dict[str, str] = {}
    for use in uses:
        how = [loss.how for loss in losses if _touches(loss, use, whole)]
        fates[use.feature] = _worse(fates.get(use.feature, FATES[0]), max(how, key=FATES.index, default=FATES[0]))
    return fates


def _touches(loss: Loss, use: Use, whole: Struct) -> bool:
    if loss.what == "candidate":
        return use.feature == SEVERAL
    if loss.what == "turns":  # all that is said is said in another way
        return use.thing.path.startswith("$.messages[")
    if loss.what in NAMED:
        return use.thing.path == f"{loss.where}.{loss.what}"
    if loss.where in LISTS and loss.what not in CONTENT_FIELDS:  # the turns were mended: nothing in them is touched
        return False
    return use.thing.covered_by(loss, whole)


def _worse(one: str, other: str) -> str:
    return max(one, other, key=FATES.index)


def _told(case: Case, name: str) -> dict[str, str]:
    """Return what becomes of an error on its way to a client: its kind and its words, or its words alone."""
    error = case.error
    failure = case.dialect.decode_error(error["status"], error["body"])
    back = get(name).decode_error(*get(name).encode_error(failure))
    return {failure.kind: FATES[0] if _gist(back) == _gist(failure) else "approximated"}


def _gist(failure: Failure) -> tuple[str, str]:
    return failure.kind, failure.message


def _tables(table: Table, columns: list[str], groups: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield one table, its rows in groups; features that no vector shows are left out."""
    known = {feature for features in groups.values() for feature in features}
    if unknown := table.keys() - known:
        message = f"no row for {sorted(unknown)}"
        raise LookupError(message)
    yield f"| | {' | '.join(f'`{name}`' for name in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for group, features in groups.items():
        rows = [feature for feature in features if feature in table]
        if rows:
            yield f"| **{group}** |{' |' * len(columns)}"
        for feature in rows:
            cells = [table[feature][name].cell() if name in table[feature] else f"`{UNTESTED}`" for name in columns]
            yield f"| {feature} | {' | '.join(cells)} |"
    yield ""


if __name__ == "__main__":
    write: Callable[[str], int] = sys.stdout.write
    write(page())
