"""The record of a dialect whose bodies the servers of another dialect take, at paths and in a framing of their own.

A cloud serves the models of several companies by endpoints that take each company's own body.
`codec.features.hosted_dialect` composes the two dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from xenoglot.codec.framing.formats import Framing
from xenoglot.model.json import JSON, JSONObject

Headers: TypeAlias = Sequence[tuple[str, str]]


class HeaderFields(Struct, frozen=True, kw_only=True):
    """Headers that are fields of the body.

    `headers` returns the headers that the fields of a body are; `fields` returns the fields, given a client's headers.
    """

    headers: Callable[[JSON], tuple[tuple[str, str], ...]]
    fields: Callable[[Headers], JSONObject]


class HostedDialect(Struct, frozen=True, kw_only=True):
    """How the servers of one dialect take bodies of another, `dialect`.

    `body` returns a client's body without the fields that the dialect itself does not have; it raises `WireError` for
    a body of any other dialect. A frame with an `id` is an error of the host. `counted_body` returns the body, with
    its model, whose tokens a request to count asks for, `None` if it asks for those of the host's own;
    `encode_counted` is the inverse.
    """

    dialect: str
    path: str
    stream_path: str
    framing: Framing
    body: Callable[[JSON], JSON]
    counted_body: Callable[[JSON], JSONObject | None]
    encode_counted: Callable[[JSONObject], JSONObject]
    header_fields: HeaderFields
