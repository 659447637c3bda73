"""The cost of what can be repeated, in counted steps: each element at two sizes, and what is done with it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tests.laws.growing_values import Element, elements
from tests.laws.steps import Counted, steep
from tests.laws.vectors import Case, cases
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import names
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    from xenoglot.model.json import JSON

FEW, MANY = 16, 32
MOST = 2.5
SLACK = 64
"""Steps that are no more for more elements, and of which a few dozen are more than a share: look-ups, rounding."""

LONGEST = 24
"""Events of a stream whose elements are looked at; a longer one repeats itself as it is."""

MOST_ELEMENTS = 256
"""What seems steep is looked at again at twice the size, up to so many: the first events are read one by one."""

POOR = {
    "developer_role": False,
    "inline_system": False,
    "text_parts": False,
    "tool_result_media": False,
    "custom_tools": False,
    "strict_tools": False,
    "forced_tools": False,
    "tool_id": "nine",
    "parallel_tool_calls": False,
    "json_schema": "none",
    "images": False,
    "stops": "ours",
    "reasoning_field": "none",
}
"""What is known of a server that takes as little as servers take."""


REPEATED = ("dialects.responses.stream.item_encoder.so_far:", "dialects.completions.stream.choice_encoder.__init__:")
"""Where the wire wants what was said to be said again: `response.in_progress` holds the answer so far, and a legacy
chunk all that stands beside the choices. Elements that go there more than a few times are passed over."""


def check(counted: Counted, found: Iterable[Element], work: Callable[..., object]) -> None:
    """Do the work of each element at two sizes; of elements of one shape the first stands for all."""
    wrong: dict[str, list[str]] = {}
    distinct = {element.key: element for element in found}
    for number, element in enumerate(distinct.values()):
        if places := grows(counted, element, partial(work, number=number)):
            wrong[element.name] = places
    assert not wrong, wrong


def grows(counted: Counted, element: Element, work: Callable[[JSON], object]) -> list[str]:
    """Return the places whose cost grows faster than the number of elements; what seems so is looked at again."""

    def costs(count: int) -> Mapping[str, int]:
        value = element.make(count)
        return counted.cost(lambda: work(value))

    few, many, count = costs(FEW), costs(MANY), MANY
    places = steep(few, many, MOST, SLACK)
    while places and count < MOST_ELEMENTS:
        count *= 2
        few, many = many, costs(count)
        places = {place: cost for place, cost in steep(few, many, MOST, SLACK).items() if place in places}
    if any(place.startswith(REPEATED) and cost > MANY for place, cost in many.items()):
        return []
    return [f"{place}: {cost}" for place, cost in places.items()]


def of(name: str, *files: str) -> Iterator[Case]:
    return (case for case in cases() if case.dialect.name == name and all(map(case.has, files)))


def values(found: Iterable[JSON]) -> Iterator[Element]:
    for value in found:
        yield from elements(value)


def targets(name: str, number: int) -> tuple[str, str]:
    """Return the dialects for which element `number` of dialect `name` is written: each has its turn."""
    others = names()
    return others[number % len(others)], others[(number // 3 + 4) % len(others)] if number % 2 else name


ELSEWHERE = {
    "adapt_request": "codec.requests.adapt_request",
    "dialect_registry": "dialect_registry",
    "errors": "errors",
    "fold": "model.fold",
    "json_io": "codec.json.json_io",
    "names": "codec.requests.names",
    "prompt_estimate": "policy.token_estimate",
    "translate": "translate",
}
"""The modules that `ClientEnvironment` gives which are not in `codec` itself, by the last part of their names."""


class World:
    """The project where it counts: its modules as attributes, by the last part of their names."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def __getattr__(self, name: str) -> ModuleType:
        found = vars(self)[name] = self._counted.module(ELSEWHERE.get(name, f"codec.{name}"))
        return found

    def forgiving(self, work: Callable[[], object]) -> None:
        """Do what may be refused: that has its cost, too."""
        with suppress(self.errors.XenoglotError):
            work()


def asked(world: World, name: str, value: JSON, number: int) -> None:
    """Read a request, write it for two servers, and do what a gateway does with it meanwhile."""
    request = world.dialect_registry.get(name).decode_request(value)
    world.prompt_estimate.estimate(request)
    world.names.RestoreNames(request, 64)
    servers = (world.target.Target(), world.target.Target(**POOR))
    for other, server in zip(targets(name, number), servers if number % 2 else servers[::-1], strict=True):
        world.forgiving(partial(sent, world, request, other, server))


def sent(world: World, request: object, other: str, server: object) -> None:
    losses = world.loss.Losses()
    fitted = world.adapt_request.fitted(request, other, server, losses)
    world.dialect_registry.get(other).encode_request(fitted, losses, server)


def answered(world: World, name: str, value: JSON, number: int) -> None:
    """Read an answer, write it for two clients, whole and as a stream, and read the stream."""
    response = world.dialect_registry.get(name).decode_response(value)
    for other in targets(name, number):
        world.forgiving(partial(given, world, response, other))


def given(world: World, response: object, other: str) -> None:
    dialect, losses = world.dialect_registry.get(other), world.loss.Losses()
    request = world.dialect.Request(model="m", stream=True, stream_usage=True)
    dialect.encode_response(response, request, losses)
    stream = [*world.stage.through(world.fold.unfold(response), dialect.stream_encoder(request, losses))]
    world.fold.fold(world.stage.through(stream, dialect.stream_decoder()))


def events_of(case: Case) -> list[JSON]:
    """Return the events of a stream as a value that can grow."""
    events = through([case.stream], case.dialect.framing.decoder())
    return [{"event": event.event, "data": data_of(event.data)} for event in events]


def data_of(data: bytes) -> JSON:
    try:
        return decode_json(data)
    except WireError:  # `[DONE]`, or broken
        return data.decode(errors="replace")


def streamed(world: World, name: str, value: JSON, number: int) -> None:
    """Read a stream by its frames, write it for a client and fold it; of two, one is read in one piece, too.

    The other one is written for a second client instead.
    """
    dialect, made = world.dialect_registry.get(name), world.dialect.ServerSentEvent
    events = [made(bytes_of(item["data"]), item["event"]) for item in value]
    frames = [*world.stage.through(events, dialect.framing.encoder())]
    one_piece = number % 2 == 0
    for other in targets(name, number)[: 1 if one_piece else 2]:
        stage = world.translate.stream_translator(name, other)
        world.forgiving(partial(list, world.stage.through(frames, stage)))
    if one_piece:
        whole = world.translate.stream_translator(name, name)
        world.forgiving(lambda: [*world.stage.through([b"".join(frames)], whole)])
    world.fold.fold(world.stage.through(events, dialect.stream_decoder()))


def bytes_of(data: JSON) -> bytes:
    return data.encode() if isinstance(data, str) else encode_json(data)
