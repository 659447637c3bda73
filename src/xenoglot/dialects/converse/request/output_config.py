"""Encodes and decodes the form of the answer and the effort of its reasoning: `outputConfig`, and `thinking`.

`outputConfig` has a schema (as text) and an effort. A budget for reasoning is in the field `thinking` of Anthropic's
models among the `additionalModelRequestFields`
(https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.adapt_request import JSON_ONLY
from xenoglot.codec.schemas import closed
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse.extras import EFFORTS, NAME, with_rest, with_said
from xenoglot.dialects.converse.request.fields import OUTPUT
from xenoglot.errors import WireError
from xenoglot.model.request import LEAST_BUDGET, OutputFormat, Thinking, budget_of, effort_of, nearest

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort

KEY: Final = "outputConfig"
WHERE: Final = "$.thinking"

_MODES: Final[dict[str, Literal["enabled", "adaptive", "disabled"]]] = {
    "enabled": "enabled",
    "adaptive": "adaptive",
    "disabled": "disabled",
}


def take_output(reader: Reader, form: JSONObject) -> tuple[OutputFormat | None, Effort | None]:
    """Take the schema of the answer and the effort."""
    config = reader.object(KEY)
    if config is None:
        return None, None
    effort: Effort | None = config.take_word("effort", EFFORTS)
    output = _take_format(config, form)
    keep_rest(reader, KEY, config, form, said=effort is not None or output is not None)
    return output, effort


def _take_format(config: Reader, form: JSONObject) -> OutputFormat | None:
    match config.peek("textFormat"):
        case {"type": "json_schema", "structure": {"jsonSchema": {"schema": str() as text}}}:
            pass
        case _:
            return None
    try:
        schema = decode_json(text)
    except WireError as error:
        raise WireError(config.at("textFormat.structure.jsonSchema.schema"), "expected a JSON Schema") from error
    format_ = Reader(config.take("textFormat", dict), config.at("textFormat"))
    format_.take("type", str)
    structure = Reader(format_.take("structure", dict), format_.at("structure"))
    inner = Reader(structure.take("jsonSchema", dict), structure.at("jsonSchema"))
    inner.take("schema", str)
    name, description = inner.take("name", str), inner.take("description", str)
    nested: JSONObject = {}
    keep_rest(structure, "jsonSchema", inner, nested)
    keep_rest(format_, "structure", structure, nested)
    if to_text(schema) != text:
        form["schema"] = text
    return OutputFormat(
        kind="json_schema", schema=schema, name=name, description=description, extra=format_.extra(NAME)
    )


def take_thinking(additional: Reader, form: JSONObject) -> Thinking | None:
    """Take `thinking`; one of a type that is not known stays where it is."""
    value = additional.peek("thinking")
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _MODES:
        return None
    reader = Reader(additional.take("thinking", dict), additional.at("thinking"))
    mode = _MODES[reader.need("type", str)]
    budget = reader.take("budget_tokens", int)
    thinking = Thinking(mode=mode, budget_tokens=budget, display=reader.take("display", str))
    keep_rest(additional, "thinking", reader, form)
    return thinking


def encode_output(output: OutputFormat | None, body: JSONObject, form: JSONObject, context: EncodeContext) -> None:
    """Write the form of the answer into `body`."""
    if output is None or output.kind == "text":
        return
    losses, schema = context.losses, output.schema
    if not isinstance(schema, dict):
        losses.approximated("$.output", "kind", "written at the end of the system prompt, and not enforced")
        body["system"] = [*body.get("system", ()), {"text": JSON_ONLY}]
        return
    if not context.home and (known := closed(schema)) != schema:
        schema = known
        losses.approximated("$.output", "schema", "its objects are closed, its bounds written in words")
    OUTPUT.note_unsupported(replace(output, strict=None), losses)
    if output.strict is not None:
        losses.approximated("$.output", "strict", "the dialect holds to every schema strictly")
    text = form.get("schema") if context.home else None
    inner = with_said({"schema": text or to_text(schema)}, name=output.name, description=output.description)
    own: JSONObject = {"type": "json_schema", "structure": {"jsonSchema": inner}}
    body.setdefault(KEY, {})["textFormat"] = with_rest(own, output.extra, "$.output", losses)


def encode_thinking(thinking: Thinking, body: JSONObject, additional: JSONObject, context: EncodeContext) -> None:
    """Write how much to reason into `body`, and into the `additional` fields."""
    losses, target = context.losses, context.target
    if target.thinking == "none":
        if _wanted(thinking):
            losses.dropped(WHERE, "thinking", "the server has no setting for reasoning")
        return
    if not context.home:
        thinking = _fitted(thinking, body, context)
    if thinking.mode is not None:
        own: JSONObject = {"type": thinking.mode}
        additional["thinking"] = with_said(own, budget_tokens=thinking.budget_tokens, display=thinking.display)
    if thinking.effort is not None:
        word = nearest(thinking.effort, target.efforts or EFFORTS)
        if word != thinking.effort:
            losses.approximated(WHERE, "effort", f"`{thinking.effort}` is written as `{word}`")
        body.setdefault(KEY, {})["effort"] = word
    losses.carry(thinking.extra, WHERE, NAME)


def _wanted(thinking: Thinking) -> bool:
    return thinking.mode != "disabled" and thinking.effort != "none"


def _fitted(thinking: Thinking, body: JSONObject, context: EncodeContext) -> Thinking:
    """Return what a request of another dialect wants in the words of this one."""
    losses, target = context.losses, context.target
    if thinking.summary is not None:
        losses.dropped(WHERE, "summary", "the dialect has no such field")
    if not _wanted(thinking):
        return _off(thinking, context)
    if target.thinking == "budget":
        return _with_budget(thinking, body, losses)
    if target.thinking_field == "thinking":
        return _adaptive(thinking, losses)
    if thinking.mode is None and (thinking.budget_tokens is not None or thinking.display is not None):
        mode: Literal["enabled", "adaptive"] = "adaptive" if thinking.budget_tokens is None else "enabled"
        losses.approximated(WHERE, "mode", f"written as `{mode}`")
        thinking = replace(thinking, mode=mode)
    return _roomy(thinking, body, losses)


def _off(thinking: Thinking, context: EncodeContext) -> Thinking:
    """Return what turns reasoning off, for models that are known or seem to have the field for it."""
    if context.target.thinking_field == "thinking" or thinking.mode is not None:
        return Thinking(mode="disabled", extra=thinking.extra)
    for name in ("mode", "effort"):
        context.losses.dropped(WHERE, name, "no effort is sent: the dialect has no word for none")
    return Thinking(extra=thinking.extra)


def _adaptive(thinking: Thinking, losses: Losses) -> Thinking:
    """Return the thinking of a model that reasons as it sees fit, by an effort."""
    effort = thinking.effort
    if thinking.mode == "enabled":
        losses.approximated(WHERE, "mode", "written as `adaptive`")
    if thinking.budget_tokens is not None and effort is None:
        effort = effort_of(thinking.budget_tokens)
        losses.approximated(WHERE, "budget_tokens", f"written as the effort `{effort}`")
    elif thinking.budget_tokens is not None:
        losses.dropped(WHERE, "budget_tokens", "the server takes the effort as a word")
    return replace(thinking, mode="adaptive", budget_tokens=None, effort=effort)


def _with_budget(thinking: Thinking, body: JSONObject, losses: Losses) -> Thinking:
    """Return the thinking of a model that takes a budget alone."""
    if thinking.mode == "adaptive":
        losses.approximated(WHERE, "mode", "written as `enabled`")
    budget = thinking.budget_tokens
    if budget is None:
        budget = budget_of(thinking.effort or "high", body.get("inferenceConfig", {}).get("maxTokens"))
        losses.approximated(WHERE, "effort", f"written as a budget of {budget} tokens")
    elif thinking.effort is not None:
        losses.dropped(WHERE, "effort", "the server takes a budget")
    return _roomy(replace(thinking, mode="enabled", budget_tokens=budget, effort=None), body, losses)


def _roomy(thinking: Thinking, body: JSONObject, losses: Losses) -> Thinking:
    """Return a budget of at least the least, and raise the limit of tokens above it."""
    if thinking.budget_tokens is None:
        return thinking
    budget = max(LEAST_BUDGET, thinking.budget_tokens)
    if budget != thinking.budget_tokens:
        losses.approximated(WHERE, "budget_tokens", f"raised to {LEAST_BUDGET}, the least that servers take")
    inference = body.get("inferenceConfig", {})
    limit: JSON = inference.get("maxTokens")
    if limit is not None and limit <= budget:
        inference["maxTokens"] = limit + budget
        raised = f"raised to {limit + budget}: the budget for reasoning must be less"
        losses.approximated("$.sampling", "max_tokens", raised)
    return replace(thinking, budget_tokens=budget)


def reasoning_of(thinking: Thinking | None, effort: Effort | None) -> Thinking | None:
    """Return what a request sets for reasoning, from its two fields."""
    if effort is None:
        return thinking
    return replace(thinking or Thinking(), effort=effort)
