"""Passes a client's body through to a server of the same dialect; only top-level fields that must differ change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from xenoglot.codec.json.json_io import decode_json, encode_json, encode_large
from xenoglot.codec.json.slices import SLICE_BYTES
from xenoglot.codec.requests.adapt_request import encode_fitted
from xenoglot.codec.requests.path_template import has_model
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.backend import Call
    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON, JSONObject

_UNKNOWN = Target()
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_TOOLS = frozenset({"tools", "functions"})


class UpstreamRequest(NamedTuple):
    """A request as a server is sent it: where to, what, and what it is to answer in.

    `verbatim`: its answer may be passed to the client byte for byte; `usage_added`: usage was requested
    for a client that did not: it is taken out of those bytes.
    """

    url: str
    body: bytes
    accept: str
    verbatim: bool
    usage_added: bool = False


class PassthroughRequest(msgspec.Struct, frozen=True):
    """Where to post the client's bytes, and they; `renamed` is whether the server has other names for the tools."""

    path: str
    query: str
    body: bytes
    renamed: bool = False


def passthrough_request(
    call: Call, dialect: Dialect, target: Target, *, changed: bool = False
) -> PassthroughRequest | None:
    """Return the bytes of the client for a server of `dialect`; `None` where they cannot be passed on.

    If the request was `changed` here, its bytes change with it.

    What `target` demands changes the top-level fields that it concerns, and no other: these keep their bytes, and all
    keep their order. What is lost by it stands in the losses of the call.

    Raises:
        WireError: something cannot be requested from the server at all.
        LossError: something is lost, and must not be.
    """
    if call.body is None or call.dialect != dialect.name:
        return None
    as_it_is = target == _UNKNOWN and not changed
    return _unchanged(call, call.body, dialect) if as_it_is else _rewritten(call, call.body, dialect, target)


def _unchanged(call: Call, body: bytes, dialect: Dialect) -> PassthroughRequest:
    """Return the bytes as they are; only the model's name is replaced, where it differs."""
    name = call.request.model
    if has_model(dialect.path):
        said = {"model": name, "stream": call.request.stream}
        path, query, _ = addressed(said, dialect)
        return PassthroughRequest(path, query, body)
    fields = _members(body)
    written = encode_json(name)
    if dialect.model_field not in fields or bytes(fields[dialect.model_field]) != written:
        fields[dialect.model_field] = msgspec.Raw(written)
        body = encode_json(fields)
    return PassthroughRequest(dialect.path, "", body)


def _rewritten(call: Call, body: bytes, dialect: Dialect, target: Target) -> PassthroughRequest:
    encoded = encode_fitted(dialect, call.request, target, call.losses)
    call.losses.settle()
    path, query, wanted = addressed(encoded, dialect)
    fields = _members(body)
    changed = {key: value for key, value in wanted.items() if not _equals(fields.get(key), value)}
    if not changed and fields.keys() == wanted.keys():
        return PassthroughRequest(path, query, body)
    encode = encode_json if len(body) < SLICE_BYTES else encode_large
    return PassthroughRequest(
        path, query, encode(_merged(fields, wanted, changed)), renamed=bool(_TOOLS & changed.keys())
    )


def _equals(raw: msgspec.Raw | None, value: JSON) -> bool:
    """Whether the bytes of a field are those of `value`; most clients write it as we would, so it is not decoded."""
    if raw is None:
        return False
    if len(said := bytes(raw)) < SLICE_BYTES:
        return encode_json(value) == said or bool(decode_json(said) == value)
    return encode_large(value) == said or bool(decode_json(said, most=len(said)) == value)


def _merged(fields: Mapping[str, msgspec.Raw], wanted: JSONObject, changed: JSONObject) -> dict[str, JSON]:
    """Return the fields in their order: as they were, or as they must be; new fields come last."""
    kept = {key: changed.get(key, raw) for key, raw in fields.items() if key in wanted}
    return kept | changed
