"""The `Dialect` record: the functions that decode and encode one wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias
from warnings import warn

from msgspec import Struct

from xenoglot.codec.features.batch import BatchFeature, FileFeature
from xenoglot.codec.features.compaction import CompactionForm
from xenoglot.codec.features.extra_usage import ExtraUsage
from xenoglot.codec.features.forward import ForwardedPath
from xenoglot.codec.features.hosted import HeaderFields, HostedDialect
from xenoglot.codec.features.operation import EMBED, AnyForm, EmbeddingForm
from xenoglot.codec.features.stored_responses import StoredResponseCodec
from xenoglot.codec.features.stream_usage import StreamUsage
from xenoglot.codec.features.web_socket import WebSocketForm
from xenoglot.codec.framing.formats import EVENT_STREAM, Framing
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.framing.stream_reader import StreamDecoder
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Stage
from xenoglot.codec.target import Target
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Extra, HostedKind
from xenoglot.model.context import AppliedEdit
from xenoglot.model.events import Event
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.limits import RateLimits
from xenoglot.model.request import Request
from xenoglot.model.response import FinishReason, Response, Usage

Headers: TypeAlias = Sequence[tuple[str, str]]


class ModelEndpoint(Struct, frozen=True, kw_only=True):
    """An additional endpoint of a dialect that is answered from the list of models.

    `answer` gets the values of the path's braces, merged with the fields of the body, and the models; it returns the
    body of the answer, or `None` if a requested model does not exist. `policy` sets who is authorized: all, or key
    holders.
    """

    method: Literal["GET", "POST"]
    path: str
    answer: Callable[[JSONObject, Sequence[ModelInfo]], JSON]
    policy: Literal["open", "key"] = "key"


class Dialect(Struct, frozen=True, kw_only=True):
    """A wire format and its functions. `decode` is wire to canonical model, `encode` canonical model to wire.

    `path` is where requests are posted, `stream_path` where streaming requests are posted if it differs (followed by
    `stream_query`), `aliases` are further paths for either. If a path contains `{model}` or `{+model}`, it names the
    model, and the body need not; if there is a `stream_path`, the body does not contain `stream`. The functions below
    do not see the difference: for them both are fields of the body (see `codec.requests.url_params`). `model_field` is
    the field of the body with the model, `default_tag` is a suffix that clients may add to its name without a change of
    meaning.

    `count_path` and `count_aliases` are where tokens are counted (without a `count_path`, the gateway answers clients
    and does not call upstreams), `models_path` is where the models are listed (`models_query` requests the longest page
    that a server returns); `inquiries` are the additional endpoints. `framing` is how the events of a stream are
    framed, `bare_framing` how they are for a client that leaves `stream_query` out; `comments` is whether all its
    clients ignore a comment there, `begins_early` whether some take one for silence, so that a slow answer has to begin
    before its content arrives; `alive` is the heartbeat that is then sent in the middle of a server's own bytes.
    `terminator` is the frame that follows the finish reason and terminates the stream, empty if there is none. `marks`
    are request headers that only clients of this dialect send: they select the dialect on routes that several dialects
    share. `mirrors` are path prefixes under which its servers serve the complete API of another family.
    `forward` are request headers that are forwarded to an upstream of the same dialect; `id_prefix` is the prefix of
    ids for answers without one. `many_texts` is whether one request can hold several texts to continue;
    `fingerprint_field` is the field of an answer with the build and weights that made it, and `timings_field` the one
    with its durations, each empty if there is no such field; `stop_limit` is how many stop strings a request can hold
    (0 if there is no field for them), `blank_stops` whether they may consist of whitespace. `tells_unfinished` is
    whether a complete answer without a finish reason is unfinished; in other dialects the server left the reason out.
    `limits_prefix` is the common prefix of all the headers that `decode_limits` reads, `None` if it reads none. Every
    decoder raises `WireError` for what the dialect does not allow.
    """

    name: str
    path: str
    other_names: tuple[str, ...] = ()
    """Names that users and files may give it: those of the company or model family that it belongs to."""
    also: tuple[str, ...] = ()
    """Other dialects of the same servers, at the same base URL."""
    turns: bool = True
    """Whether a request can hold the turns of a conversation; otherwise it holds one prompt."""
    stream_path: str | None = None
    stream_in_body: bool = False
    """Whether the body has `stream` although there is a `stream_path`."""
    stream_query: str = ""
    aliases: tuple[str, ...] = ()
    count_path: str | None = None
    count_aliases: tuple[str, ...] = ()
    models_path: str = "/v1/models"
    models_query: str = ""
    model_field: str = "model"
    default_tag: str = ""
    inquiries: tuple[ModelEndpoint, ...] = ()
    framing: Framing = EVENT_STREAM
    bare_framing: Framing | None = None
    comments: bool = True
    begins_early: bool = False
    alive: bytes = b""
    terminator: bytes = b""
    marks: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    shares_paths: bool = False
    """Whether its paths begin as those of another dialect of the vendor do, whose that beginning is."""
    forward: tuple[str, ...] = ()
    marked_caches: bool = False
    """Whether servers of the dialect cache a prompt only where it is marked, and all of them take marks."""
    hosted_tools: frozenset[HostedKind] = frozenset()
    """The tools that its servers run themselves, unless the facts about a server differ."""
    tool_name_limit: int = 64
    id_prefix: str = ""
    many_texts: bool = False
    fingerprint_field: str = ""
    timings_field: str = ""
    stop_limit: int | None = None
    blank_stops: bool = True
    tells_unfinished: bool = False
    limits_prefix: str | None = ""

    decode_request: Callable[[JSON], Request]
    encode_request: Callable[[Request, Losses, Target], JSONObject]
    decode_response: Callable[[JSON], Response]
    encode_response: Callable[[Response, Request, Losses], JSONObject]
    stream_decoder: Callable[[], StreamDecoder]
    stream_encoder: Callable[[Request, Losses], Stage[Event, ServerSentEvent]]
    decode_error: Callable[[int, JSON], Failure]
    encode_error: Callable[[Failure], tuple[int, JSONObject]]
    decode_limits: Callable[[Mapping[str, str], float], RateLimits | None]
    """Decodes rate-limit headers (lower-case names), given the current time (Unix seconds)."""
    encode_limits: Callable[[RateLimits, float], Headers]
    authorize: Callable[[str | None], Headers]
    """Returns the headers that an upstream of this dialect requires, given its key."""
    decode_models: Callable[[JSON], Sequence[ModelInfo]]
    """Decodes a list of models; an entry without a name is ignored."""
    encode_models: Callable[[Sequence[ModelInfo]], JSONObject]
    encode_model: Callable[[ModelInfo], JSONObject]
    decode_count: Callable[[JSON], Request] | None = None
    """Decodes a token counting request to the request that it counts; upstreams need a `count_path`."""
    encode_count: Callable[[int], JSONObject] | None = None
    encode_count_request: Callable[[Request, Losses, Target], JSONObject] | None = None
    decode_counted: Callable[[JSON], int | None] | None = None
    glimpse: Callable[[bytes], tuple[Usage | None, FinishReason] | None] | None = None
    """What is noted of the whole answer in these bytes, which is passed on as it is: its usage (without what only the
    dialect knows of it) and why it ended, if it is of a common form and nothing is wrong with it; else `None`."""
    reasoning_requested: Callable[[Request], bool] | None = None
    """Whether a request asks for reasoning in its answer, in a dialect that returns it on request only; `None` if
    answers always have it. An answer without a request for it gets none (`codec.responses.reasoning`)."""
    usage_expected: Literal["never", "requested", "always"] = "never"
    """When clients compute with the token counts of an answer, for example agents that compact by them: if an upstream
    does not report usage, the gateway estimates it. `requested` applies to streams with `stream_usage`."""
    stream_usage: StreamUsage | None = None
    """How usage is requested in streams, in a dialect that reports it on request only."""
    extra_usage: Callable[[JSONObject], ExtraUsage] | None = None
    """The counts billed apart, of the fields of usage that only the dialect knows; `None` if there are none."""
    answer_at_once: Callable[[Request], Response | None] | None = None
    """The answer that needs no model, for example to a request that only loads one; `None` for any other request."""
    applied_edits: Callable[[Sequence[AppliedEdit]], Extra] | None = None
    """Returns the fields of a candidate that report the context edits that were applied to its request."""
    compaction: CompactionForm | None = None
    """The endpoint that compacts a conversation, if the dialect has one."""
    state: StoredResponseCodec | None = None
    """Stored responses, if the dialect has them."""
    web_socket: WebSocketForm | None = None
    """Requests over a WebSocket, if the dialect has them."""
    operations: tuple[AnyForm, ...] = ()
    """Endpoints that answer in one piece; upstreams are called at the first of each operation."""
    forwarded_paths: tuple[ForwardedPath, ...] = ()
    """Endpoints whose requests and answers are forwarded as they are."""
    hosts: tuple[HostedDialect, ...] = ()
    """Dialects whose bodies its servers take too, at other paths."""
    header_fields: HeaderFields | None = None
    """The headers that are fields of the body, in a dialect that is hosted by another."""
    answer_headers: Callable[[str], Headers] | None = None
    """Returns the headers that every answer has, given the id of the request; `None` if there are none."""
    error_headers: Callable[[JSONObject], Headers] | None = None
    """Returns the headers of an error, given its body; `None` if there are none."""
    batching: BatchFeature | None = None
    """Batch endpoints, if the dialect has them."""
    files: tuple[FileFeature, ...] = ()
    """File endpoints, at each of their paths."""

    def forms(self, operation: str) -> tuple[AnyForm, ...]:
        """Return the endpoints of the operation with this name."""
        return tuple(form for form in self.operations if form.operation.name == operation)

    @property
    def embeddings(self) -> tuple[EmbeddingForm, ...]:
        """The endpoints for embeddings."""
        return self.forms(EMBED.name)


if not TYPE_CHECKING:  # a type checker is to see that they moved

    def __getattr__(name: str) -> object:
        """Return `get` or `names`, which moved to `xenoglot.dialect_registry`: an alias for one release."""
        if name not in ("get", "names"):
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        there = "xenoglot.dialect_registry"
        warn(f"`{__name__}.{name}` moved to `{there}.{name}`", DeprecationWarning, stacklevel=2)
        return getattr(import_module(there), name)
