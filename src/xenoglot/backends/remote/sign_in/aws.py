"""Signs requests with credentials of AWS: Signature Version 4, by botocore.

The credentials come from where AWS's own tools look: environment, profile, single sign-on, assumed role, web identity,
container, instance (https://docs.aws.amazon.com/boto3/latest/guide/credentials.html). The signature covers method,
path, query, `host`, `content-type`, date, session token and the body
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html).
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from logging import INFO, getLogger
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from xenoglot.backends.remote.sign_in.credential import Credential, SignInError
from xenoglot.errors import ConfigurationError, missing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from xenoglot.backends.remote.sign_in.strategy import SignedRequest
    from xenoglot.codec.dialect import Headers

UNSIGNED: Final = "UNSIGNED-PAYLOAD"
"""Stands for the hash of a body that is streamed (allowed over TLS only)."""

_SIGNED: Final = ("content-type", "host")
"""The fields that are signed in addition to those that the signature adds; proxies may change others."""
_CONTENT_HASH: Final = "x-amz-content-sha256"
_ADDED: Final = ("authorization", "x-amz-date", "x-amz-security-token", _CONTENT_HASH)

MOST_SKEW: Final = 240.0
"""Seconds by which the clocks may differ: a signature is valid for 300, and a request takes some of them."""
LONGEST_SKEW: Final = 24 * 3600.0
"""Seconds by which a clock is corrected at most: a server is not to get signatures for whichever time it names."""
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_DATE_HEADER: Final = "X-Amz-Date"

_logger = getLogger("xenoglot")

_HOST: Final = re.compile(r"(?P<service>[a-z0-9-]+?)(?:-fips)?\.(?P<region>[a-z]{2,3}(?:-[a-z]+)+-\d+)\.")
_RUNTIME: Final = "-runtime"
"""Ends the name of a service in hosts, and not in signatures (`endpointPrefix` and `signingName` in botocore)."""


class AwsKeys(Struct, frozen=True, gc=False):
    """Keys that sign. The representation has none of them."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        """Omit the keys, because a traceback may show this."""
        return "AwsKeys(...)"


class AwsCredentials:
    """The credential chain of botocore. `profile` is one of the configuration files of AWS; `None`: the usual one."""

    def __init__(self, profile: str | None = None) -> None:
        try:
            from botocore.session import Session  # noqa: PLC0415  an extra
        except ImportError as error:
            raise ConfigurationError(missing_extra("botocore")) from error
        self._new_session: Callable[[], Any] = lambda: Session(profile=profile)
        self._credentials: Any = None

    @property
    def secrets(self) -> Collection[str]:
        """Nothing: the keys of a credential are its own secrets."""
        return ()

    def fetch(self, *, anew: bool) -> Credential[AwsKeys]:
        """Return the keys of now; botocore refreshes those that expire within minutes."""
        if self._credentials is None or anew:
            self._credentials = self._new_session().get_credentials()
        if self._credentials is None:
            raise SignInError(
                "AWS credentials were not found", "set AWS_PROFILE, AWS_ACCESS_KEY_ID or a role for this machine"
            )
        keys = self._credentials.get_frozen_credentials()
        expiry = getattr(self._credentials, "_expiry_time", None)
        return Credential(
            value=AwsKeys(keys.access_key, keys.secret_key, keys.token),
            expires_at=None if expiry is None else expiry.timestamp(),
            secrets=tuple(filter(None, (keys.secret_key, keys.token))),
        )


def signing_scope(host: str, region: str | None = None, service: str | None = None) -> tuple[str, str]:
    """Return the region and the name of the service that a signature for `host` is made for.

    `region` and `service` are those of a host that names none.

    Raises:
        ConfigurationError: they are neither in the host nor given.
    """
    found = _HOST.match(host)
    if found is not None:
        return found["region"], found["service"].removesuffix(_RUNTIME)
    if region is None or service is None:
        raise ConfigurationError(f"the host {host} names no AWS region and service; set `region` and `service`")
    return region, service


class AwsSigner:
    """Signs requests for the region and service of their host; those given are of hosts that name none.

    A signature is valid for five minutes by the clock of the server. Where the local clock differs by more, signatures
    are made for the time of the server; `clock` gives the local time (Unix seconds).
    """

    def __init__(
        self, region: str | None = None, service: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        from botocore.auth import SigV4Auth  # noqa: PLC0415  an extra
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415  an extra
        from botocore.credentials import ReadOnlyCredentials  # noqa: PLC0415  an extra

        getLogger("botocore.auth").setLevel(INFO)  # at DEBUG it logs the session token
        self._clock = clock
        self._offset = 0.0  # seconds from the local clock to that of the server
        self._given = region, service
        self._scopes: dict[str, tuple[str, str]] = {}
        self._auth: Any = SigV4Auth
        self._request: Any = AWSRequest
        self._keys: Any = ReadOnlyCredentials

    def scope(self, host: str) -> tuple[str, str]:
        """Return what signatures for `host` are made for; an upstream has few hosts. Raises as `signing_scope`."""
        found = self._scopes.get(host)
        if found is None:
            found = self._scopes[host] = signing_scope(host, *self._given)
        return found

    def corrected(self, date: str | None) -> bool:
        """Make signatures for the time in a refusal's `Date`, if the local clock is wrong; return whether it is."""
        try:
            offset = parsedate_to_datetime(date or "").timestamp() - self._clock()
        except (ValueError, OverflowError):
            return False
        if not MOST_SKEW < abs(offset) < LONGEST_SKEW:
            return False
        if not self._offset:
            _logger.warning("the clock of this machine is wrong by %.0f s: AWS refused a signature; corrected", offset)
        self._offset = offset
        return True

    def __call__(self, credential: AwsKeys, request: SignedRequest) -> Headers:
        """Return the header fields to add; the hash of a streamed body is not signed."""
        fields = {name: value for name, value in request.headers if name in _SIGNED}
        if request.body is None:
            fields[_CONTENT_HASH] = UNSIGNED
        unsigned = self._request(method=request.method, url=request.url, headers=fields, data=request.body or b"")
        keys = self._keys(credential.access_key, credential.secret_key, credential.token)
        region, service = self.scope(urlsplit(request.url).netloc)
        signer = self._auth(keys, service, region)
        if self._offset:
            signer.canonical_request = partial(_at_offset, signer.canonical_request, self._offset)
        signer.add_auth(unsigned)
        return [(name.lower(), value) for name, value in unsigned.headers.items() if name.lower() in _ADDED]


def _at_offset(canonical_request: Callable[[Any], str], offset: float, request: Any) -> str:  # noqa: ANN401  of botocore, without types
    """Return the canonical form of a request for a time `offset` seconds from now; its date changes with it."""
    stamp = (datetime.strptime(request.context["timestamp"], _STAMP) + timedelta(seconds=offset)).strftime(_STAMP)  # noqa: DTZ007  UTC
    request.context["timestamp"] = stamp
    del request.headers[_DATE_HEADER]
    request.headers[_DATE_HEADER] = stamp
    return canonical_request(request)
