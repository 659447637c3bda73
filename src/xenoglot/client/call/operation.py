"""Requests of operations that answer in one piece, for an upstream of any dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from xenoglot.backends.operation import AnyCall, OperationCall
from xenoglot.client.call.validate_request import encode_value
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.dialect_registry import get

if TYPE_CHECKING:
    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.codec.loss import Losses

USUAL = "chat"

MakeRequest: TypeAlias = Callable[[str], Any]
"""Makes a request of an operation, given the name of the model. Raises `WireError`."""


def decoded(operation: str, **fields: object) -> MakeRequest:
    """Return what decodes `fields`, those of the operation's usual form; a field that is `None` is not set."""
    form, given = form_in(USUAL, operation), {name: value for name, value in fields.items() if value is not None}
    return lambda model: form.decode_request(decode_json(encode_value({"model": model, **given}, "$")))


def form_in(dialect: str, operation: str) -> AnyForm:
    """Return the form of requests to an upstream of `dialect`; the usual one if its dialect has none."""
    return (get(dialect).forms(operation) or get(USUAL).forms(operation))[0]


def operation_call(
    form: AnyForm, request: object, dialect: str, losses: Losses, headers: tuple[tuple[str, str], ...]
) -> AnyCall:
    """Return the call of an upstream that speaks `dialect`.

    Raises:
        LossError: its form cannot express all of it, and the policy is strict.
    """
    body = encode_json(form.encode_request(request, losses)) if form.calls_upstreams else b""
    losses.settle()
    return OperationCall(request=request, losses=losses, form=form, body=body, dialect=dialect, headers=headers)
