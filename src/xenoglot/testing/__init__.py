"""Test tools for LLM clients and gateways: a scripted server, canned answers, a raw client, and a leak check."""

from __future__ import annotations

from xenoglot.testing.cancellation import Interrupted, interrupt
from xenoglot.testing.canned import BROKEN, CUT, END, SILENT, Answers, answered, answers, frames, polyglot, refusal
from xenoglot.testing.client import AsyncRawClient, RawClient, RawReply
from xenoglot.testing.connection import ScriptedConnection
from xenoglot.testing.leaks import Baseline, LeakError
from xenoglot.testing.raw_http import Received
from xenoglot.testing.script import (
    Body,
    Close,
    Drip,
    End,
    Hang,
    Pause,
    Receive,
    Repeat,
    RequestMatcher,
    Reset,
    Respond,
    ResponseHead,
    ScriptRule,
    Send,
    Step,
    Steps,
    StopRead,
    WaitEvent,
)
from xenoglot.testing.upstream import Upstream

__all__ = [
    "BROKEN",
    "CUT",
    "END",
    "SILENT",
    "Answers",
    "AsyncRawClient",
    "Baseline",
    "Body",
    "Close",
    "Drip",
    "End",
    "Hang",
    "Interrupted",
    "LeakError",
    "Pause",
    "RawClient",
    "RawReply",
    "Receive",
    "Received",
    "Repeat",
    "RequestMatcher",
    "Reset",
    "Respond",
    "ResponseHead",
    "ScriptRule",
    "ScriptedConnection",
    "Send",
    "Step",
    "Steps",
    "StopRead",
    "Upstream",
    "WaitEvent",
    "answered",
    "answers",
    "frames",
    "interrupt",
    "polyglot",
    "refusal",
]
