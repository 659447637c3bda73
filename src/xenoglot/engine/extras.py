"""Request fields of llama-server and vLLM that no dialect defines and the embedded model supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.timings import TIMINGS
from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.engine.samplers import READ, longest_of
from xenoglot.engine.server.model_traits import SWITCH
from xenoglot.errors import WireError
from xenoglot.model.json import JSON
from xenoglot.model.request import OutputFormat, Thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

FORMS: Final = {
    "json_schema": "json",
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "grammar": "grammar",
}
"""Field of a request -> the kind of form that it demands.

Sources: https://docs.vllm.ai/en/stable/features/structured_outputs.html,
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

KINDS: Final = ("json", "regex", "choice", "grammar")
TEMPLATE: Final = "chat_template_kwargs"
GOES_ON: Final = "continue_final_message"
OPENS: Final = "add_generation_prompt"
NESTED: Final = "structured_outputs"
FORMAT: Final = "response_format"
LONGEST_QUOTE: Final = 64
ONE_FORM: Final = "only one form of the answer can be demanded, and `{}` does so, too"


class Demand(Struct, frozen=True):
    """An output format that a request demands: its kind, its value, and the name of the field."""

    kind: str
    value: JSON
    path: str


def fields_of(request: Request) -> JSONObject:
    """Return the fields of a request that its dialect does not define."""
    return {} if request.extra is None else request.extra.fields


def unknown_fields(extra: Extra | None, *heeded: str) -> Extra | None:
    """Return the fields that are not understood here either; those `heeded` are."""
    return _without(extra, {*FORMS, NESTED, *READ, *heeded})


def wants_timings(fields: JSONObject) -> bool:
    """Return whether a request asks llama-server how long its answer took.

    Raises:
        FailureError: it is neither yes nor no.
    """
    wanted = fields.get(TIMINGS)
    if wanted is None or type(wanted) is bool:
        return wanted is True
    raise refused(f"$.{TIMINGS}", f"expected true or false, found {to_text(wanted)[:LONGEST_QUOTE]}")


def _without(extra: Extra | None, names: Collection[str]) -> Extra | None:
    if extra is None or extra.fields.keys().isdisjoint(names):
        return extra
    return replace(extra, fields={name: value for name, value in extra.fields.items() if name not in names})


def apply_extras(request: Request) -> Request:
    """Return the request with its unknown fields moved to fields of the model, if there are any for them.

    That is a JSON Schema of the answer, the most tokens of it, and whether to think.

    Raises:
        FailureError: two forms are demanded, a value is of a type that does not exist, or no message can be continued.
    """
    if not fields_of(request):
        return request
    request = continued(templated(request))
    longest = longest_of(fields_of(request))
    if longest is not None and request.sampling.max_tokens is None:
        request = replace(request, sampling=replace(request.sampling, max_tokens=longest))
    return _formed(request)


def templated(request: Request) -> Request:
    """Return the request with the reasoning setting in `chat_template_kwargs`; everything else in it stays.

    Raises:
        FailureError: it is no object, or the switch in it is neither on nor off.
    """
    said = fields_of(request).get(TEMPLATE)
    if said is None:
        return request
    if not isinstance(said, dict):
        raise refused(f"$.{TEMPLATE}", f"expected object, found {to_text(said)[:LONGEST_QUOTE]}")
    wanted = said.get(SWITCH)
    if wanted is None:
        return request
    if type(wanted) is not bool:
        raise refused(f"$.{TEMPLATE}.{SWITCH}", f"expected true or false, found {to_text(wanted)[:LONGEST_QUOTE]}")
    left = {name: value for name, value in said.items() if name != SWITCH}
    extra = _without(request.extra, {TEMPLATE})
    if left and extra is not None:
        extra = replace(extra, fields={**extra.fields, TEMPLATE: left})
    thinking = request.thinking or Thinking(mode="enabled" if wanted else "disabled")
    return replace(request, thinking=thinking, extra=extra)


def continued(request: Request) -> Request:
    """Return the request without fields for the default behaviour: a last turn of the assistant is continued.

    Raises:
        FailureError: the last turn is to be continued, and is not the assistant's; or it is to be continued and
            followed.
    """
    fields = fields_of(request)
    goes_on, opens = fields.get(GOES_ON), fields.get(OPENS)
    if goes_on is True and opens is True:
        raise refused(f"$.{GOES_ON}", f"cannot be true where `{OPENS}` is true, too")
    ends = bool(request.messages) and request.messages[-1].role == "assistant"
    if goes_on is True and not ends:
        raise refused(f"$.{GOES_ON}", "the last message is not the assistant's")
    done = {name for name, is_done in ((GOES_ON, goes_on is ends), (OPENS, opens is not ends)) if is_done}
    return replace(request, extra=_without(request.extra, done))


def _formed(request: Request) -> Request:
    """Return the request with the JSON Schema that is demanded of its answer as its output.

    Raises:
        FailureError: two forms are demanded, or one is of a type that does not exist.
    """
    demand = demanded_format(request)
    if demand is None:
        return request
    if request.output is not None and request.output.kind != "text":
        raise refused(demand.path, ONE_FORM.format(FORMAT))
    if demand.kind != "json":
        return request
    extra = _without(request.extra, {*FORMS, NESTED})
    if demand.value == {"type": "object"}:
        return replace(request, output=OutputFormat(kind="json"), extra=extra)
    return replace(request, output=OutputFormat(kind="json_schema", schema=demand.value), extra=extra)


def demanded_format(request: Request) -> Demand | None:
    """Return the form that the unknown fields of a request demand.

    Raises:
        FailureError: there are two, or one is of a type that does not exist.
    """
    fields = fields_of(request)
    if fields.keys().isdisjoint({*FORMS, NESTED, FORMAT}):
        return None
    _check_format(fields.get(FORMAT))
    found = [
        Demand(kind, fields[name], f"$.{name}")
        for name, kind in FORMS.items()
        if name in fields and fields[name] not in (None, "")
    ]
    found += _nested(fields.get(NESTED))
    if len(found) > 1:
        raise refused(found[1].path, ONE_FORM.format(found[0].path.removeprefix("$.")))
    return _checked(found[0]) if found else None


def _check_format(value: JSON) -> None:
    """Refuse a type of `response_format` that was left as it is since no dialect has it."""
    if isinstance(value, dict):
        kind = str(value.get("type"))[:LONGEST_QUOTE]
        problem = f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'."
        raise refused(f"$.{FORMAT}.type", problem)


def _nested(value: JSON) -> list[Demand]:
    if value is None:
        return []
    if not isinstance(value, dict):
        raise refused(f"$.{NESTED}", f"expected object, found {to_text(value)[:LONGEST_QUOTE]}")
    if not value.keys() <= {*KINDS}:
        odd = min(value.keys() - {*KINDS})
        raise refused(f"$.{NESTED}.{odd[:LONGEST_QUOTE]}", f"not supported; expected one of {', '.join(KINDS)}")
    return [Demand(kind, value[kind], f"$.{NESTED}.{kind}") for kind in KINDS if value.get(kind) is not None]


def _checked(demand: Demand) -> Demand:
    """Return the demand if its value is of the right type; a JSON Schema may come as text, as in vLLM's examples."""
    check, wanted = _TYPES[demand.kind]
    value = _decoded(demand) if demand.kind == "json" else demand.value
    if not check(value):
        raise refused(demand.path, f"expected {wanted}, found {to_text(value)[:LONGEST_QUOTE]}")
    return replace(demand, value=value)


def _decoded(demand: Demand) -> JSON:
    if not isinstance(demand.value, str):
        return demand.value
    try:
        return decode_json(demand.value)
    except WireError:
        raise refused(demand.path, "expected a JSON Schema, found a text that is no JSON") from None


def _is_choice(value: JSON) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


_TYPES: Final[Mapping[str, tuple[Callable[[JSON], bool], str]]] = {
    "json": (lambda value: isinstance(value, dict | bool), "a JSON Schema"),
    "regex": (lambda value: isinstance(value, str), "a regular expression"),
    "grammar": (lambda value: isinstance(value, str), "a grammar in GBNF"),
    "choice": (_is_choice, "a list of texts that are not empty"),
}
