"""Away and back: what differs by way of another dialect is what `Losses` says, or a respelling of `essence`."""

from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import groupby

import pytest
from hypothesis import given, settings
from msgspec import Struct
from msgspec.structs import replace

from tests.laws.essence import Thing, answered, things
from tests.laws.paths import at, inside
from tests.laws.strategies import requests, responses
from tests.laws.vectors import Case, cases, decoded, each
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.responses.answer_repair import note_finishes
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import CacheMark, Extra, Text
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, Request, Sampling, Tool, ToolChoice
from xenoglot.model.response import Response

TARGET = Target(developer_role=True, tool_result_media=True, cache_marks=True, custom_tools=True)
"""A server that takes whatever its dialect can say: what does not come through it, the dialect cannot say."""


def unreported(before: list[Thing], after: list[Thing], losses: Losses, whole: Struct) -> list[Thing]:
    """Return what was said of `whole` that did not come back, and of which no loss tells."""
    left = {thing.place for thing in after}
    told = {
        thing
        for thing in before
        if any(thing.covered_by(loss, whole) and (thing.may_vanish(loss) or thing.place in left) for loss in losses)
    }
    there = {thing.said for thing in after}
    prompt = "\n".join(text for thing in after if thing.path == "$.prompt.texts" for text in decode_json(thing.said))
    lost = [
        thing
        for thing in _out_of_order(before, after)
        if thing not in told and not any(_moved(thing, loss, there, prompt) for loss in losses)
    ]
    fields = Counter(thing.kind for thing in after if not thing.fields)
    for thing in sorted((thing for thing in before if not thing.fields), key=told.__contains__):
        if fields[thing.kind]:
            fields[thing.kind] -= 1
        elif thing not in told:
            lost.append(thing)
    return lost


def invented(before: list[Thing], after: list[Thing], losses: Losses, whole: Struct) -> list[Thing]:
    """Return the settings of the sampling that nobody asked for, and of which no loss tells."""
    asked = {thing.place for thing in before} | IMPLIED
    added = [thing for thing in after if inside(thing.path, "$.sampling") and thing.place not in asked]
    return [thing for thing in added if not any(thing.covered_by(loss, whole) for loss in losses)]


def _moved(thing: Thing, loss: Loss, there: set[bytes], prompt: str) -> bool:
    """Whether `loss` tells that a part stands elsewhere, or among the words of a prompt, and there it is."""
    if loss.what == "turns":
        return bool(thing.words[1]) and thing.words[1] in prompt
    return loss.what == "order" and (
        loss.where == thing.path or (inside(thing.path, loss.where) and thing.said in there)
    )


def _out_of_order(before: list[Thing], after: list[Thing]) -> list[Thing]:
    """Return the parts that did not come back where they stood among the others."""
    parts = [thing for thing in before if thing.fields]
    said = ([thing.said for thing in parts], [thing.said for thing in after if thing.fields])
    blocks = SequenceMatcher(None, *said, autojunk=False).get_matching_blocks()
    kept = {index for block in blocks for index in range(block.a, block.a + block.size)}
    there = {(thing.path, thing.said) for thing in after}
    said_there = groupby((thing.words for thing in after), key=lambda words: words[0])
    words = [(kind, "".join(text for _, text in run)) for kind, run in said_there]  # neighbours of one kind are one run
    return [
        part
        for index, part in enumerate(parts)
        if index not in kept
        and (part.path, part.said) not in there
        and not (part.words[1] and any(part.words[0] == kind and part.words[1] in run for kind, run in words))
    ]


def crossed_request(request: Request, name: str, losses: Losses) -> Request:
    """Return the request after a journey through another dialect."""
    dialect = get(name)
    return dialect.decode_request(dialect.encode_request(fitted(request, name, TARGET, losses), losses, TARGET))


def crossed_whole(response: Response, asked: Request, name: str, losses: Losses) -> Response:
    """Return the answer after a journey through another dialect, in one piece."""
    dialect = get(name)
    return dialect.decode_response(dialect.encode_response(response, asked, losses))


def crossed_streamed(response: Response, asked: Request, name: str, losses: Losses) -> Response:
    """Return the answer after a journey through another dialect, piece by piece."""
    dialect = get(name)
    stages = Pipeline(dialect.stream_encoder(asked, losses), dialect.stream_decoder())
    folded = fold(through(unfold(response), stages))
    assert isinstance(folded, Response)
    return folded


CROSSED: dict[str, Callable[[Response, Request, str, Losses], Response]] = {
    "whole": crossed_whole,
    "streamed": crossed_streamed,
}
ANSWERS = ("response.json", "stream.sse", "stream.ndjson")
"""The files that an answer can be in."""

IMPLIED = {"$.sampling.logprobs", "$.sampling.top_logprobs"}
"""Respelling: a number of likely tokens asks for probabilities; who asks for these gets that of the likeliest."""

ASKED = Request(model="m", stream=True, stream_usage=True)


def check_request(request: Request, name: str) -> None:
    losses = Losses()
    try:
        back = crossed_request(request, name, losses)
    except WireError:  # refused in words: nothing is silent about that
        return
    assert unreported([*things(request)], [*things(back)], losses, request) == []
    assert invented([*things(request)], [*things(back)], losses, request) == []
    assert misplaced(losses, request) == []


def audible(request: Request) -> Request:
    """Return the request without texts that have no word, and without turns that have nothing else.

    Many dialects leave them out. What stands behind one then stands elsewhere, and no loss can be told by its place.
    """
    turns = [
        replace(turn, content=tuple(part for part in turn.content if not isinstance(part, Text) or part.text))
        for turn in request.messages
    ]
    return replace(request, messages=tuple(turn for turn in turns if turn.content))


def check_response(response: Response, name: str, how: str) -> None:
    losses = Losses()
    note_finishes(unfold(response), losses)  # whoever reads an answer records these, before anybody writes it
    back = CROSSED[how](response, ASKED, name, losses)
    assert unreported([*answered(response)], [*answered(back)], losses, response) == []
    assert misplaced(losses, response) == []


def misplaced(losses: Losses, whole: Struct) -> list[Loss]:
    """Return the losses that stand nowhere in what crossed, or do not say what was lost and why."""
    return [loss for loss in losses if not (stands(loss.where, whole) and loss.what and loss.why)]


def stands(where: str, whole: Struct) -> bool:
    """Whether `where` is a place in what crossed, be it an empty one."""
    try:
        at(whole, where)
    except LookupError:
        return False
    return True


def others(case: Case) -> list[str]:
    """Return the dialects that a vector crosses to."""
    return [name for name in names() if name != case.folder.parent.name]


@each("request.json")
def test_a_vector_loses_nothing_silently(case: Case) -> None:
    for name in others(case):
        check_request(case.dialect.decode_request(case.request), name)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases() if any(map(case.has, ANSWERS))])
def test_an_answer_of_a_vector_loses_nothing_silently(case: Case) -> None:
    for file in ANSWERS:
        response = answer_of(case, file, case.dialect) if (case.folder / file).exists() else None
        if response is not None:
            for name in others(case):
                for how in CROSSED:
                    check_response(response, name, how)


def answer_of(case: Case, file: str, dialect: Dialect) -> Response | None:
    """Return the answer in a vector; `None` where it fails, or is not one to its end."""
    if file == "response.json":
        found: object = dialect.decode_response(case.response)
    else:
        found = fold(decoded(dialect, [case.stream]))
    finished = isinstance(found, Response) and found.candidates and all(one.finish for one in found.candidates)
    return found if isinstance(found, Response) and finished else None


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(request=requests())
def test_no_request_loses_anything_silently(name: str, request: Request) -> None:
    check_request(audible(request), name)


@pytest.mark.parametrize("how", CROSSED)
@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(response=responses())
def test_no_answer_loses_anything_silently(name: str, how: str, response: Response) -> None:
    check_response(response, name, how)


@pytest.mark.parametrize("target", [TARGET, replace(TARGET, custom_tools=False)], ids=["custom", "wrapped"])
@pytest.mark.parametrize("name", names())
def test_a_choice_calls_its_tool_as_the_server_knows_it(name: str, target: Target) -> None:
    """pitfall-62, pitfall-63: a tool in a namespace, and one of free text."""
    hello = Message(role="user", content=(Text(text="Hi"),))
    for tool in (Tool(name="f", namespace="space"), Tool(name="f", kind="custom")):
        choice = ToolChoice(mode="required", names=("f",), kind=tool.kind)
        request = Request(model="m", messages=(hello,), tools=(tool, Tool(name="g")), tool_choice=choice)
        try:
            body = get(name).encode_request(request, Losses(), target)
        except WireError:  # a dialect without tools
            continue
        back = get(name).decode_request(body)
        known = {tool.name: tool.kind for tool in back.tools if isinstance(tool, Tool)}
        if back.tool_choice is not None:
            assert [known[called] for called in back.tool_choice.names] == [back.tool_choice.kind]


def test_the_law_sees_what_is_lost() -> None:
    """A temperature gone without a word; a seed of which something is said; a text told of at another place."""
    whole = Request(
        model="m",
        messages=(Message(role="user", content=(Text(text="a"), Text(text="b", cache=CacheMark()))),),
        sampling=Sampling(temperature=0.5, seed=7),
    )
    losses = Losses()
    losses.dropped("$.sampling", "seed", "no such field")
    losses.dropped("$.messages[0].content[1]", "cache", "no such field")
    lost = unreported([*things(whole)], [*things(Request(model="m"))], losses, whole)
    told = sorted(thing.path for thing in lost)
    assert told == ["$.messages[0].content[0]", "$.messages[0].content[1]", "$.sampling.temperature"]


def test_the_law_sees_what_is_gone_though_something_near_it_was_told() -> None:
    """What a part became excuses nothing beside its words; an approximation has to be there; order hides nothing."""
    mark, name = CacheMark(), Extra(dialect="alien", fields={"odd": 1})
    turn = Message(role="user", content=(Text(text="a", cache=mark), Text(text="b", extra=name), Text(text="c")))
    whole = Request(model="m", messages=(turn,))
    left = Request(model="m", messages=(Message(role="user", content=(Text(text="a"), Text(text="b"))),))
    losses = Losses()
    losses.approximated("$.messages[0].content[0]", "cache", "near it")
    losses.approximated("$.messages[0].content[1]", "Text", "other words")
    losses.approximated("$.messages[0]", "order", "another order")
    losses.emulated("$.messages", "turns", "a transcript")
    lost = unreported([*things(whole)], [*things(left)], losses, whole)
    told = sorted(thing.path for thing in lost)
    assert told == ["$.messages[0].content[0].cache", "$.messages[0].content[1].odd", "$.messages[0].content[2]"]


def test_the_law_sees_what_is_invented() -> None:
    request = Request(model="m", sampling=Sampling(temperature=0.5))
    crossed = Request(model="m", sampling=Sampling(temperature=0.7, max_tokens=16, seed=7))
    losses = Losses()
    losses.approximated("$.sampling", "max_tokens", "the dialect requires it")
    more = invented([*things(request)], [*things(crossed)], losses, request)
    assert [thing.path for thing in more] == ["$.sampling.seed"]


def test_the_law_sees_a_loss_that_stands_nowhere() -> None:
    whole = Request(model="m", messages=(Message(role="user"),))
    losses = Losses()
    losses.dropped("$.messages[0]", "name", "why not")
    losses.dropped("$.messages[1]", "name", "why not")
    losses.dropped("$.sampling.heat", "name", "why not")
    losses.dropped("request", "name", "why not")
    losses.dropped("$", "name", "")
    assert [loss.where for loss in misplaced(losses, whole)] == ["$.messages[1]", "$.sampling.heat", "request", "$"]
