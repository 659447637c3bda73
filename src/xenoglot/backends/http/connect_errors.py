"""Messages for failed connections, without any address."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.backends.http.timeouts import Kind

NAME_MISMATCH = frozenset((62, 64))
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH: the two whose OpenSSL message quotes the host."""


EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE))
"""What a system call fails with when this process, or the system, can open no more files."""


class ProxyError(OSError):
    """There is no way through the proxy; the text says why, and nothing of where it is."""

    def __init__(self, kind: Kind, problem: str) -> None:
        super().__init__(problem)
        self.kind: Kind = kind


def connect_problem(failure: OSError, *, secure: bool, who: str = "upstream") -> tuple[Kind, str]:
    """Return why there is no connection to `who`, to which TLS was wanted or not."""
    kind: Kind = "tls"
    match failure:
        case _ if is_exhausted(failure):
            kind, problem = "exhausted", f"no descriptor is left for a connection: {os.strerror(failure.errno or 0)}"
        case ProxyError():
            kind, problem = failure.kind, str(failure)
        case ssl.SSLCertVerificationError():
            named = failure.verify_code in NAME_MISMATCH
            reason = "it is for another host" if named else failure.verify_message
            problem = f"the {who}'s certificate is not accepted: {reason}"
        case ssl.SSLError():
            problem = f"no TLS with the {who}: {failure.reason}"
        case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError() if secure:
            problem = f"the {who} broke off the TLS handshake"
        case socket.gaierror():
            kind, problem = "connect", f"the {who}'s host name cannot be resolved"
        case _:
            reason = os.strerror(failure.errno) if failure.errno else "every address of it failed"
            kind, problem = "connect", f"no connection to the {who}: {reason}"
    return kind, problem


def is_exhausted(failure: OSError) -> bool:
    """Return whether this machine is out of descriptors, whatever the upstream or its name server would have said.

    The system's name lookup does not say so: without a descriptor to ask with, it reports a temporary failure. So
    after a failed lookup one is opened, to see.
    """
    if isinstance(failure, socket.gaierror):
        try:
            socket.socket().close()
        except OSError as error:
            return error.errno in EXHAUSTED
        return False
    return failure.errno in EXHAUSTED
