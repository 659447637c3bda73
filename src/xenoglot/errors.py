"""The exceptions of Xenoglot.

XenoglotError
+-- WireError           what came over the wire is not what its dialect allows
+-- GrammarError        a stream of events is out of order: a bug of ours, or of a backend
+-- LossError           strict mode: the target cannot express what was asked
+-- FailureError        a `Failure` raised: the answer did not come
+-- ConfigurationError  a setting is wrong; the text names it and what is allowed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import types

    from xenoglot.model.failure import Failure
    from xenoglot.model.limits import RateLimits


_LONGEST_CHAIN = 20


class XenoglotError(Exception):
    """Everything that Xenoglot raises on purpose."""


class WireError(XenoglotError):
    """Wire data is malformed: `path` says where (`$.messages[0].content`), `problem` what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class GrammarError(XenoglotError):
    """An event came where `model.events.GRAMMAR` allows none of its kind."""


class LossError(XenoglotError):
    """A crossing would lose something, and the policy is to refuse. `losses` names each.

    `unknown` are the paths of fields among them that only their own dialect knows. They are named at first in the words
    of Anthropic's API: there are clients that read these, and leave the field out.
    """

    def __init__(self, losses: tuple[str, ...], unknown: tuple[str, ...] = ()) -> None:
        extra = [ascii(f"{path.removeprefix('$.')}: Extra inputs are not permitted")[1:-1] for path in unknown]
        super().__init__("; ".join([*extra, f"the target cannot express: {'; '.join(losses)}"]))
        self.losses = losses
        self.unknown = unknown


class FailureError(XenoglotError):
    """There is no answer; `failure` says why, in words every dialect can write, `limits` what an upstream allows."""

    def __init__(self, failure: Failure, limits: RateLimits | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.limits = limits


class ConfigurationError(XenoglotError):
    """A setting is wrong."""


def whereabouts(error: BaseException) -> str:
    """Return where `error` came from and of which class it is. Its text is left out: it may quote what was said."""
    links: list[str] = []
    link: BaseException | None = error
    while link is not None and len(links) < _LONGEST_CHAIN:
        links.append(f"{type(link).__module__}.{type(link).__qualname__} at {_frames(link.__traceback__)}")
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "; from ".join(links)


def _frames(traceback: types.TracebackType | None) -> str:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{traceback.tb_frame.f_globals.get('__name__', '?')}.{code.co_name}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return " > ".join(frames)
