"""Forms of answers that llama-server's and vLLM's clients demand by fields of their own, held by the embedded model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.engine.shared_engine import call_of, events, response
from tests.engine.shared_engine import message_of as message
from xenoglot.backends.backend import Call
from xenoglot.codec.loss import Losses
from xenoglot.dialects.chat import CHAT
from xenoglot.engine.extras import apply_extras
from xenoglot.engine.samplers import WINDOWS, sampler_fields
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Extra, Text
from xenoglot.model.events import OpaqueDelta
from xenoglot.model.fold import fold
from xenoglot.model.request import OutputFormat, Prompt, Request, Sampling, Thinking
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from xenoglot.engine.backend import Engine
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Message

SCHEMA: JSON = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
HELD = OutputFormat(kind="json_schema", schema=SCHEMA)


def extra(**fields: JSON) -> Extra:
    """Fields that the client's dialect does not define."""
    return Extra(dialect="chat", fields=fields)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"json_schema": SCHEMA}, id="llama-server"),
        pytest.param({"guided_json": SCHEMA}, id="guided"),
        pytest.param({"guided_json": json.dumps(SCHEMA)}, id="guided-as-text"),
        pytest.param({"structured_outputs": {"json": SCHEMA}}, id="structured-outputs"),
    ],
)
def test_findings_f_a_schema_under_any_name_is_the_same(fields: dict[str, JSON]) -> None:
    request = apply_extras(call_of("Hi", extra=extra(**fields, other=1)).request)
    assert (request.output, request.extra) == (HELD, extra(other=1))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"guided_choice": ["zebra", "yak"]}, {"zebra", "yak"}, id="choice"),
        pytest.param({"structured_outputs": {"choice": ["zebra"]}}, {"zebra"}, id="nested-choice"),
        pytest.param({"guided_regex": r'"\d{2}"\\'}, {f'"{number:02}"\\' for number in range(100)}, id="regex"),
        pytest.param({"grammar": 'root ::= "a" b+\nb ::= "b" | c\nc ::= "z"'}, None, id="grammar"),
        pytest.param({"guided_grammar": 'root ::= "x" | "y"'}, {"x", "y"}, id="guided-grammar"),
        pytest.param({"structured_outputs": {"grammar": 'root ::= "x"'}}, {"x"}, id="nested-grammar"),
    ],
)
async def test_findings_f_an_answer_is_held(engine: Engine, fields: dict[str, JSON], said: set[str] | None) -> None:
    call = call_of("Which animal?", extra=extra(**fields))
    made = await response(engine, call)
    (part,) = made.candidates[0].content
    assert isinstance(part, Text)
    assert [*call.losses] == []
    if said is None:
        assert part.text[0] == "a"
        assert set(part.text[1:]) <= {"b", "z"}
    else:
        assert part.text in said


async def test_findings_f_a_schema_holds_the_answer(engine: Engine) -> None:
    made = await response(engine, call_of("How old?", extra=extra(guided_json=SCHEMA)))
    (part,) = made.candidates[0].content
    assert isinstance(part, Text)
    assert type(json.loads(part.text)["age"]) is int


@pytest.mark.parametrize(
    ("fields", "param", "problem"),
    [
        ({"guided_json": SCHEMA, "grammar": 'root ::= "x"'}, "$.grammar", "only one form"),
        ({"structured_outputs": {"json": SCHEMA, "regex": "a"}}, "$.structured_outputs.regex", "only one form"),
        ({"structured_outputs": {"structural_tag": "x"}}, "$.structured_outputs.structural_tag", "not supported"),
        ({"structured_outputs": 1}, "$.structured_outputs", "expected object"),
        ({"guided_json": 123}, "$.guided_json", "expected a JSON Schema"),
        ({"guided_json": "{"}, "$.guided_json", "a text that is no JSON"),
        ({"guided_choice": []}, "$.guided_choice", "expected a list"),
        ({"guided_choice": ["a", 1]}, "$.guided_choice", "expected a list"),
        ({"guided_regex": "(?=a)"}, "$.guided_regex", "looking around"),
        ({"grammar": "root ::= root"}, "$.grammar", "can begin with itself"),
        ({"grammar": ["a"]}, "$.grammar", "expected a grammar"),
        (
            {"response_format": {"type": "sound"}},
            "$.response_format.type",
            "Invalid value: 'sound'. Supported values are: 'json_object', 'json_schema', and 'text'.",
        ),
    ],
)
async def test_findings_f_what_cannot_be_held_is_refused(
    engine: Engine, fields: dict[str, JSON], param: str, problem: str
) -> None:
    with pytest.raises(FailureError) as error:
        await response(engine, call_of("Hi", extra=extra(**fields)))
    failure = error.value.failure
    assert (failure.kind, failure.param) == ("invalid_request", param)
    assert problem in failure.message


async def test_findings_f_two_forms_are_refused(engine: Engine) -> None:
    call = call_of("Hi", output=HELD, extra=extra(guided_choice=["a"]))
    with pytest.raises(FailureError, match="only one form"):
        await response(engine, call)


def test_findings_f_a_schema_that_is_none_is_refused() -> None:
    body: JSON = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    with pytest.raises(WireError, match="schema: expected"):
        CHAT.decode_request({**body, "response_format": {"type": "json_object", "schema": 123}})


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ["chat", "completions", "messages"])
async def test_findings_f_an_answer_tells_how_long_it_took(engine: Engine, dialect: str, *, stream: bool) -> None:
    fields = Extra(dialect=dialect, fields={"timings_per_token": True})
    sampling = Sampling(max_tokens=3, n=2, logit_bias={"504": 100})
    call = replace(call_of("Hi", sampling=sampling, stream=stream, extra=fields), dialect=dialect)
    found = await events(engine, call)
    told = [(event.candidate, event.data["timings"]) for event in found if isinstance(event, OpaqueDelta)]
    folded = fold(found)
    assert isinstance(folded, Response)
    if dialect == "messages":
        assert told == []
        assert [str(loss) for loss in call.losses] == ["$ timings_per_token dropped (only messages has it)"]
        return
    assert [*call.losses] == []
    assert folded.extra is not None
    if stream:
        assert [one["predicted_n"] for candidate, one in told if candidate == 0] == [1, 2, 3, 3]
        assert [one["predicted_n"] for candidate, one in told if candidate == 1] == [1, 2, 3, 3]
        assert "timings" not in folded.extra.fields
        timings = told[-1][1]
    else:
        assert told == []
        timings = folded.extra.fields["timings"]
    assert timings.keys() == {
        *("cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second"),
        *("predicted_n", "predicted_ms", "predicted_per_token_ms", "predicted_per_second"),
    }
    assert timings["predicted_n"] == 3
    assert timings["predicted_ms"] > 0
    assert folded.usage is not None
    assert timings["cache_n"] + timings["prompt_n"] == folded.usage.input_tokens


async def test_findings_f_the_best_of_several_tells_how_long_all_took(engine: Engine) -> None:
    fields = Extra(dialect="completions", fields={"timings_per_token": True})
    prompt = Prompt(texts=("Hi",), best_of=2)
    request = Request(model="m", prompt=prompt, sampling=Sampling(max_tokens=2), extra=fields, stream=True)
    made = await response(engine, Call(request=request, losses=Losses(), dialect="completions"))
    assert made.extra is not None
    assert made.extra.fields["timings"]["predicted_n"] > 0


@pytest.mark.parametrize("wanted", [False, None])
async def test_findings_f_timings_are_told_on_request_alone(engine: Engine, wanted: JSON) -> None:
    call = replace(call_of("Hi", stream=True, extra=extra(timings_per_token=wanted)), dialect="chat")
    assert not any(isinstance(event, OpaqueDelta) for event in await events(engine, call))
    assert [*call.losses] == []


async def test_findings_f_timings_are_wanted_or_not(engine: Engine) -> None:
    with pytest.raises(FailureError, match="timings_per_token: expected true or false, found 1"):
        await response(engine, call_of("Hi", extra=extra(timings_per_token=1)))


SAMPLERS: dict[str, JSON] = {
    "typical_p": 0.9,
    "top_n_sigma": 1,
    "min_keep": 2,
    "dynatemp_range": 0.5,
    "dynatemp_exponent": 1.5,
    "xtc_probability": 0.1,
    "xtc_threshold": 0.2,
    "mirostat": 0,
    "mirostat_tau": 4.0,
    "mirostat_eta": 0.2,
    "dry_multiplier": 0.8,
    "dry_base": 1.5,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": -1,
    "dry_sequence_breakers": ["\n"],
    "repeat_last_n": 32,
    "samplers": ["dry", "top_k", "temperature"],
    "ignore_eos": True,
}


def test_findings_f_samplers_go_to_the_runtime_as_they_are() -> None:
    found = sampler_fields({**SAMPLERS, "n_predict": 3, "cache_prompt": False, "id_slot": 1}, 512)
    assert found == {**SAMPLERS, "dry_penalty_last_n": 512}


@pytest.mark.parametrize(("asked", "sent"), [(-1, 512), (0, 0), (32, 32), (2**31 - 1, 512)])
def test_findings_f_no_window_is_larger_than_the_context(asked: int, sent: int) -> None:
    """The runtime reserves memory for it: 8 GB for the largest number."""
    windows = dict.fromkeys(WINDOWS, asked)
    assert sampler_fields(windows, 512) == dict.fromkeys(WINDOWS, sent)


async def test_findings_f_samplers_are_heeded_and_the_rest_is_lost(engine: Engine) -> None:
    call = call_of("Say: a.", extra=extra(**SAMPLERS, n_predict=7, cache_prompt=False, id_slot=1))
    made = await response(engine, call)
    assert made.usage is not None
    assert (made.usage.output_tokens, made.usage.cache_read or 0) == (7, 0)
    assert [loss.what for loss in call.losses] == ["id_slot"]


async def test_findings_f_an_answer_in_a_form_ends_with_it(engine: Engine) -> None:
    call = call_of("Hi", extra=extra(ignore_eos=True, guided_choice=["yes"]))
    made = await response(engine, call)
    assert made.candidates[0].content == (Text(text="yes"),)
    assert [(loss.where, loss.what) for loss in call.losses] == [("$", "ignore_eos")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("typical_p", 1.1),
        ("typical_p", True),
        ("mirostat", 3),
        ("mirostat", 1.0),
        ("min_keep", -1),
        ("n_predict", -2),
        ("ignore_eos", 1),
        ("samplers", ["nothing"]),
        ("samplers", "dry"),
        ("dry_sequence_breakers", ["a"] * 17),
        ("dry_sequence_breakers", ["a" * 41]),
    ],
)
def test_findings_f_a_sampler_out_of_range_is_refused(name: str, value: JSON) -> None:
    with pytest.raises(FailureError, match=f"{name}: found"):
        sampler_fields({name: value}, 512)


@pytest.mark.parametrize(
    ("said", "thinking", "left"),
    [
        pytest.param({"enable_thinking": False}, Thinking(mode="disabled"), {}, id="off"),
        pytest.param({"enable_thinking": True}, Thinking(mode="enabled"), {}, id="on"),
        pytest.param({"enable_thinking": None}, None, {"enable_thinking": None}, id="not-said"),
        pytest.param({"enable_thinking": False, "tone": 1}, Thinking(mode="disabled"), {"tone": 1}, id="others-stay"),
    ],
)
def test_findings_f_whether_the_template_thinks(said: JSON, thinking: Thinking | None, left: JSON) -> None:
    request = apply_extras(call_of("Hi", extra=extra(chat_template_kwargs=said)).request)
    assert (request.thinking, request.extra) == (thinking, extra(chat_template_kwargs=left) if left else extra())


def test_findings_f_the_dialects_own_word_on_thinking_counts() -> None:
    said, own = extra(chat_template_kwargs={"enable_thinking": False}), Thinking(effort="high")
    assert apply_extras(call_of("Hi", thinking=own, extra=said).request).thinking == own


ANSWER = message("assistant", "Yes, and")


@pytest.mark.parametrize(
    ("messages", "fields", "left"),
    [
        pytest.param(
            ("Hi", ANSWER), {"continue_final_message": True, "add_generation_prompt": False}, {}, id="goes-on"
        ),
        pytest.param(("Hi",), {"continue_final_message": False, "add_generation_prompt": True}, {}, id="opens"),
        pytest.param(
            ("Hi", ANSWER), {"add_generation_prompt": True}, {"add_generation_prompt": True}, id="opens-after-an-answer"
        ),
        pytest.param(("Hi",), {"add_generation_prompt": False}, {"add_generation_prompt": False}, id="opens-nothing"),
    ],
)
def test_findings_f_what_the_prompt_ends_with(
    messages: tuple[Message | str, ...], fields: dict[str, JSON], left: dict[str, JSON]
) -> None:
    assert apply_extras(call_of(*messages, extra=extra(**fields)).request).extra == extra(**left)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"continue_final_message": True}, "$.continue_final_message"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "$.continue_final_message"),
        ({"chat_template_kwargs": 1}, "$.chat_template_kwargs"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "$.chat_template_kwargs.enable_thinking"),
    ],
)
def test_findings_f_what_no_template_does_is_refused(fields: dict[str, JSON], param: str) -> None:
    with pytest.raises(FailureError) as error:
        apply_extras(call_of("Hi", extra=extra(**fields)).request)
    assert error.value.failure.param == param
