"""The `Dialect` record: the functions that decode and encode one wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias
from warnings import warn

from msgspec import Struct

from xenoglot.codec.features.batch import BatchFeature
from xenoglot.codec.features.embedding import EmbeddingForm
from xenoglot.codec.features.stored_responses import StoredResponseCodec
from xenoglot.codec.features.tokens import TokensForm
from xenoglot.codec.framing.formats import EVENT_STREAM, Framing
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.framing.stream_reader import StreamDecoder
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Stage
from xenoglot.codec.target import Target
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.events import Event
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.limits import RateLimits
from xenoglot.model.request import Request
from xenoglot.model.response import FinishReason, Response, Usage

Headers: TypeAlias = Sequence[tuple[str, str]]


class ModelEndpoint(Struct, frozen=True, kw_only=True):
    """An additional endpoint of a dialect that is answered from the list of models.

    `answer` gets what the path has in its braces, merged with the fields of the body, and the models; it gives the
    body of the answer, or `None` where a model that it asks for is not there. `policy` says who may ask.
    """

    method: Literal["GET", "POST"]
    path: str
    answer: Callable[[JSONObject, Sequence[ModelInfo]], JSON]
    policy: Literal["open", "key"] = "key"


class Dialect(Struct, frozen=True, kw_only=True):
    """A wire format and its functions. `decode` is wire to canonical model, `encode` canonical model to wire.

    `path` is where requests are posted, `stream_path` where those that ask for a stream are if that is elsewhere
    (with `stream_query` behind it), `aliases` are further paths for either. Where a path has `{model}` or `{+model}` in
    it, the model is asked for there, and the body need not name it; where there is a `stream_path`, the body does not
    say `stream`. The functions below know nothing of that: to them both are fields of the body (see
    `codec.requests.url_params`). `model_field` is what the body calls the model, `default_tag` is what clients may put
    behind its name to say the same.

    `count_path` and `count_aliases` are where tokens are counted (without a `count_path`, clients are answered and
    upstreams are not asked), `models_path` is where the models are listed
    (`models_query` asks for as many at once as a server gives); `inquiries` are the other things that clients ask.
    `framing` is how the events of a stream lie in its bytes, `bare_framing` how they do for a client that leaves
    `stream_query` out; `comments` is whether all its clients pass over a comment there, `begins_early` whether some
    take one for silence, so that an answer which is long in coming had better begin before it is there; `alive` is what
    then says in the middle of a server's own bytes that it lives. `terminator` is the frame that follows the finish
    reason and terminates the stream, empty where there is none. `marks` are request headers that only clients of this
    dialect send: they decide on routes that several dialects share. `unserved` are beginnings of paths at which its
    servers have something else than what is served there to others: clients with such a mark get a 404. `mirrors` are
    beginnings of paths behind which its servers serve another family's whole API.
    `forward` are request headers that an upstream of
    the same dialect may see; `id_prefix` begins the ids of answers that came without one. `many_texts` is whether one
    request can hold several texts to be continued; `fingerprint_field` is where an answer names the build and weights
    that made it, and `timings_field` where it says how long that took, each empty where there is no such field;
    `stop_limit` is how many stop strings it can hold (0 where there is no field for them), `blank_stops` whether they
    may be nothing but blanks.
    `tells_unfinished` is whether a whole answer without a finish says that it is not over; in other dialects the server
    left the reason out. `limits_prefix` is what all the headers
    begin with that `decode_limits` reads, `None` where it reads none. Every decoder raises `WireError` for what the
    dialect does not allow.
    """

    name: str
    path: str
    also: tuple[str, ...] = ()
    """The dialects that servers of this one have as well, at the same base URL."""
    turns: bool = True
    """Whether a request can hold the turns of a conversation; else it is one prompt."""
    stream_path: str | None = None
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
    unserved: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()
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
    """Rate-limit headers (lower-case names) and the time now (Unix seconds) to the model."""
    encode_limits: Callable[[RateLimits, float], Headers]
    authorize: Callable[[str | None], Headers]
    """The headers an upstream of this dialect wants, given its key."""
    decode_models: Callable[[JSON], Sequence[ModelInfo]]
    """A list of models; an entry without a name is passed over."""
    encode_models: Callable[[Sequence[ModelInfo]], JSONObject]
    encode_model: Callable[[ModelInfo], JSONObject]
    decode_count: Callable[[JSON], Request] | None = None
    """A question for a number of tokens, as the request it is about; upstreams are asked only at a `count_path`."""
    encode_count: Callable[[int], JSONObject] | None = None
    encode_count_request: Callable[[Request, Losses, Target], JSONObject] | None = None
    decode_counted: Callable[[JSON], int | None] | None = None
    glance: Callable[[bytes], Request | None] | None = None
    """What `decode_request` makes of the JSON in these bytes, within what is bounded, if that is seen at a glance: the
    request is of a common form, has no member twice and wants nothing kept; else `None`."""
    glimpse: Callable[[bytes], tuple[Usage | None, FinishReason] | None] | None = None
    """What is noted of the whole answer in these bytes, which is passed on as it is: its usage (without what only the
    dialect knows of it) and why it ended, if that is seen at a glance and nothing is wrong with it; else `None`."""
    reasoning_requested: Callable[[Request], bool] | None = None
    """Whether a request asks for reasoning in its answer, in a dialect that returns it on request only; `None` where
    answers always have it. An answer without a request for it gets none (`codec.responses.reasoning_filter`)."""
    usage_expected: Literal["never", "requested", "always"] = "never"
    """When clients compute with the token counts of an answer, as agents do that compact by them: where an upstream
    does not report any, the gateway estimates them. `requested` is for streams that are asked for `stream_usage`."""
    answer_at_once: Callable[[Request], Response | None] | None = None
    """The answer that needs no model, as to a request that only has one loaded; `None` for any other request."""
    state: StoredResponseCodec | None = None
    """How its clients have things kept, where they can."""
    embeddings: tuple[EmbeddingForm, ...] = ()
    """How its clients ask for embeddings, where they can; servers are asked in the first of these."""
    tokens: TokensForm | None = None
    """How its clients ask for the tokens of a prompt, where they can."""
    batching: BatchFeature | None = None
    """Where its clients send many requests at once, where they can."""


if not TYPE_CHECKING:  # a type checker is to see that they moved

    def __getattr__(name: str) -> object:
        """Return `get` or `names`, which moved to `xenoglot.dialect_registry`: an alias for one release."""
        if name not in ("get", "names"):
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        there = "xenoglot.dialect_registry"
        warn(f"`{__name__}.{name}` moved to `{there}.{name}`", DeprecationWarning, stacklevel=2)
        return getattr(import_module(there), name)
