"""JSON Schema that an agent's last answer to a prompt must match: `--schema FILE`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.model.request import OutputFormat
from xenoglot.text.json.code_fence import StripFence
from xenoglot.text.json.schema import JSONSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.json.schema import SchemaProblem

RETRIES: Final = 2
"""How often the problems of an answer are sent to the model."""

LARGEST: Final = 1_048_576
"""Bytes of a schema file."""


class AnswerSchema:
    """A schema: `format` is sent with each request, `problems` validates the last answer."""

    def __init__(self, text: str, path: str = "$") -> None:
        """Compile the JSON Schema in `text`.

        Raises:
            WireError: it is no JSON, or no schema.
            ConfigurationError: the extra `structured` is not installed.
        """
        schema = decode_json(text)
        if not isinstance(schema, dict):
            raise WireError(path, "expected an object")
        self.format = OutputFormat(kind="json_schema", schema=schema, name="answer")
        self._schema = JSONSchema(schema, path)

    def problems(self, answer: str) -> Sequence[SchemaProblem]:
        """Return the first few problems of an answer; empty if it matches."""
        return self._schema.problems(unfenced(answer))


def unfenced(answer: str) -> str:
    """Return an answer without the code fence around it."""
    fence = StripFence()
    return (fence.feed(answer) + fence.close()).strip()


def correction(problems: Sequence[SchemaProblem]) -> str:
    """Return the message to the model about an answer that does not match."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    wanted = "Answer with the whole corrected JSON and nothing else."
    return f"Your answer does not match the JSON Schema:\n{listed}\n\n{wanted}"


def load_answer_schema(path: str) -> AnswerSchema:
    """Return the schema in a file.

    Raises:
        ConfigurationError: it cannot be read, or is no JSON Schema.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ConfigurationError(f"`--schema {path}`: larger than {LARGEST} bytes")
        return AnswerSchema(data.decode())
    except OSError as error:
        raise ConfigurationError(f"`--schema {path}`: it cannot be read: {os.strerror(error.errno or 0)}") from None
    except (WireError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"`--schema {path}`: it is no JSON Schema: {error}") from None
