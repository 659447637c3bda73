"""Encodes and decodes code that the server ran: `executableCode`, and the `codeExecutionResult` after it.

Source: `ExecutableCode` and `CodeExecutionResult` (https://ai.google.dev/api/caching#ExecutableCode).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import need_object
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.errors import WireError
from xenoglot.model.content import CodeOutput, HostedCall, HostedResult, Text

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.dialects.gemini.tool_calls import CallIds
    from xenoglot.model.json import JSONObject

CODE: Final = "executableCode"
OUTPUT: Final = "codeExecutionResult"

_TOOL: Final = "code execution"
"""The name under which calls wait for their results; no function has a space in its name."""

_LANGUAGE: Final = "PYTHON"
_DONE: Final = "OUTCOME_OK"
_ERRORS: Final = {"OUTCOME_FAILED": "failed", "OUTCOME_DEADLINE_EXCEEDED": "execution_time_exceeded"}
_OUTCOMES: Final = {word: outcome for outcome, word in _ERRORS.items()}


def read_hosted(reader: Reader, ids: CallIds) -> HostedCall | HostedResult | None:
    """Take code that the server ran, or its output; `None` if the part is neither."""
    if isinstance(reader.peek(CODE), dict):
        return read_code(reader, ids)
    return read_output(reader, ids) if isinstance(reader.peek(OUTPUT), dict) else None


def read_code(reader: Reader, ids: CallIds) -> HostedCall:
    """Take `executableCode`."""
    inner = need_object(reader, CODE)
    reader.take(CODE, dict)
    form: JSONObject = {"part": CODE}
    code, given = inner.take("code", str), inner.take("id", str)
    if inner.take_word("language", (_LANGUAGE,)) is not None:
        form["language"] = _LANGUAGE
    if given is not None:
        form["id"] = given
    keep_rest(reader, CODE, inner, form, said=True)
    return HostedCall(
        id=ids.call(given, _TOOL),
        kind="code_execution",
        arguments="" if code is None else to_text({"code": code}),
        extra=reader.extra(NAME, **form),
    )


def read_output(reader: Reader, ids: CallIds) -> HostedResult:
    """Take `codeExecutionResult`."""
    inner = need_object(reader, OUTPUT)
    reader.take(OUTPUT, dict)
    form: JSONObject = {"part": OUTPUT}
    given, outcome, output = inner.take("id", str), inner.take("outcome", str), inner.take("output", str)
    form |= {key: value for key, value in (("id", given), ("outcome", outcome)) if value is not None}
    keep_rest(reader, OUTPUT, inner, form, said=True)
    return HostedResult(
        call_id=ids.result(given, _TOOL),
        kind="code_execution",
        content=() if output is None else (CodeOutput(stdout=output, exit_code=0 if outcome == _DONE else None),),
        error=None if outcome in (None, _DONE) else _ERRORS.get(str(outcome), "failed"),
        extra=reader.extra(NAME, **form),
    )


def encode_code(part: HostedCall | HostedResult, where: str, losses: Losses) -> JSONObject | None:
    """Return the part of code that ran, or of what came out; `None` for a tool that has no parts."""
    if part.kind != "code_execution":
        losses.dropped(where, name_of(part), "the dialect has this tool in its metadata only")
        return None
    if part.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    own = {CODE: _code(part)} if isinstance(part, HostedCall) else {OUTPUT: _output(part, where, losses)}
    return with_rest(own, part.extra, where, losses)


def _code(call: HostedCall) -> JSONObject:
    form = form_of(call.extra, NAME)
    ours = form.get("part") == CODE
    code = _text_of(call.arguments)
    own: JSONObject = {} if ours and not call.arguments else {"code": code}
    language = form.get("language") if ours else _LANGUAGE
    said = {"language": language, "id": form.get("id") if ours else call.id}
    return {**{key: value for key, value in said.items() if value is not None}, **own}


def _output(result: HostedResult, where: str, losses: Losses) -> JSONObject:
    form = form_of(result.extra, NAME)
    ours = form.get("part") == OUTPUT
    texts: list[str] = []
    for index, one in enumerate(result.content):
        at = f"{where}.content[{index}]"
        match one:
            case CodeOutput():
                texts.append("\n".join(text for text in (one.stdout, one.stderr) if text))
                losses.carry(one.extra, at, NAME)
                if one.file_ids:
                    losses.dropped(at, "file_ids", "the id of a file means something to its own provider only")
            case Text(text=text):
                texts.append(text)
            case _:
                losses.dropped(at, "result", "the output of code is text")
    exited = any(isinstance(one, CodeOutput) and one.exit_code for one in result.content)
    usual = _DONE if result.error is None and not exited else _OUTCOMES.get(result.error or "", "OUTCOME_FAILED")
    own: JSONObject = {} if ours and not result.content else {"output": "\n".join(texts)}
    said = {"outcome": form.get("outcome") if ours else usual, "id": form.get("id") if ours else result.call_id}
    return {**{key: value for key, value in said.items() if value is not None}, **own}


def _text_of(arguments: str) -> str:
    try:
        value = decode_json(arguments or "{}")
    except WireError:
        return arguments
    found = [value.get(key) for key in ("code", "command")] if isinstance(value, dict) else []
    return next((text for text in found if isinstance(text, str)), arguments)
