"""A backend that compacts and clears the context of requests, around one whose server does not.

Edits are applied before the model is called. A summary is written by the same model, as a call of the same request: it
is in the usage of the answer, so limits, budgets and the ledger count it. If the model writes none, a compaction that
the client only allowed is left out with a loss; one that it requested is a failure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.backends.offload import offload
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.wrappers.fanout import UsageSum
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.compacted_history import is_of, open_history, summary_of
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.model.content import CompactedHistory, Opaque, Text
from xenoglot.model.context import ClearThinking, ClearToolUses, ContextManagement
from xenoglot.model.events import BlockEnded, BlockStarted, Failed, Finished, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, unfold
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.policy.context_edits import (
    SUMMARY_TOKENS,
    compacted,
    compaction_due,
    compaction_now,
    edited,
    summary_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.gateway.routing.router import Route
    from xenoglot.gateway.upstream.services import UpstreamServices
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.content import Extra
    from xenoglot.model.context import AppliedEdit, Compact
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

NO_SUMMARY = Failure(
    kind="upstream",
    message="the conversation was not compacted: the model wrote no summary; retry, or use another model",
)

_CUT_OFF: Final = f"the summary was cut off: it had more than {SUMMARY_TOKENS} tokens, or the context was full"
_TURN: Final = re.compile(r"\$\.messages\[([0-9]+)\]")


def compacting(backend: Backend, services: UpstreamServices, route: Route, dialect: str) -> Backend:
    """Return the backend for requests of clients of `dialect` that edit their context, around `backend`."""
    remote = services.models.backend(route)
    if isinstance(remote, Remote) and (native := remote.compacts(dialect, route.model)) is not None:
        return NativeCompaction(backend, native)
    return CompactionBackend(backend)


class NativeCompaction:
    """A backend whose server compacts by itself; only a summary that the server cannot read is opened."""

    def __init__(self, backend: Backend, dialect: str) -> None:
        self.name = backend.name
        self._backend = backend
        self._dialect = dialect

    async def answer(self, call: Call) -> Answer:
        """Answer; bytes pass untouched where the server can read all of them.

        Raises:
            FailureError: as the backend does.
        """
        return await self._backend.answer(self._readable(call))

    async def count(self, call: Call) -> int | None:
        """Count what the server would read."""
        return await self._backend.count(self._readable(call))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the backend's models."""
        return await self._backend.models()

    async def aclose(self) -> None:
        """Release nothing: the backend has an owner."""

    def _readable(self, call: Call) -> Call:
        summary = summary_of(call.request.messages) if _resumes(call.request) else None
        return call if summary is None or is_of(summary, self._dialect) else replace(call, body=None)


class CompactionBackend:
    """A backend that compacts by summaries and clears old parts itself, around one that answers plain requests."""

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self._backend = backend

    async def answer(self, call: Call) -> Answer:
        """Answer with a context that is edited as the request wants it.

        Raises:
            FailureError: as the backend does, or there is no summary.
            WireError: only another server can read the summary in the history.
        """
        context = call.request.context_management
        if context is None:
            return await self._backend.answer(call)
        _note_unknown(context, call.losses)
        plain = await offload(call.size, lambda: _plain(call))
        if (wish := compaction_now(context)) is not None:
            summary = await self._summary(plain, wish, plain.losses)
            return _answered(_unfolded(summary))
        change = await offload(call.size, lambda: edited(plain.request, context))
        plain = replace(plain, request=change.request)
        report = _report(call.dialect, context, change.applied)
        due = await offload(call.size, lambda: compaction_due(plain.request, context))
        if due is None:
            return _reported(await self._backend.answer(plain), report)
        return await self._compacted(plain, due, report)

    async def count(self, call: Call) -> int | None:
        """Count the context as it is after the edits."""
        context = call.request.context_management
        if context is None:
            return await self._backend.count(call)
        plain = await offload(call.size, lambda: _plain(call))
        change = await offload(call.size, lambda: edited(plain.request, context))
        return await self._backend.count(replace(plain, request=change.request))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the backend's models."""
        return await self._backend.models()

    async def aclose(self) -> None:
        """Release nothing: the backend has an owner."""

    async def _compacted(self, plain: Call, wish: Compact, report: Extra | None) -> Answer:
        """Return an answer that begins with a summary, to the request with it in place of old turns."""
        losses = Losses(strict=plain.losses.strict)
        try:
            summary = await self._summary(replace(plain, losses=losses), wish, plain.losses)
        except FailureError as error:
            if error.failure is not NO_SUMMARY:
                raise
            plain.losses.dropped("$", "context_management", "the model wrote no summary; the whole context was sent")
            return _reported(await self._backend.answer(plain), report)
        turns = len(plain.request.messages)
        plain.losses.extend(loss for loss in losses if _is_of_turn(loss.where, turns))
        if wish.pause:
            return _reported(_answered(_unfolded(summary)), report)
        part = _part(summary)
        answer = await self._backend.answer(await offload(plain.size, lambda: _shorter(plain, part)))
        return _reported(answer, report, part, summary.usage)

    async def _summary(self, call: Call, wish: Compact, losses: Losses) -> Response:
        """Return the model's answer to the request for a summary, its text as one `CompactedHistory`.

        Raises:
            FailureError: as the backend does, or the model declined, or wrote no text.
        """
        asked = replace(call, request=summary_request(call.request, wish), body=None)
        answer = await self._backend.answer(asked)
        try:
            said = await _folded(answer)
        finally:
            await answer.aclose()
        written = said.candidates[0] if said.candidates else Candidate()
        text = "".join(part.text for part in written.content if isinstance(part, Text)).strip()
        reason = None if written.finish is None else written.finish.reason
        if not text or reason == "refusal":
            raise FailureError(NO_SUMMARY)
        if reason in {"length", "context"}:
            losses.approximated("$", "context_management", _CUT_OFF)
        candidate = Candidate(content=(CompactedHistory(text=text),), finish=Finish(reason="compaction"))
        return replace(said, candidates=(candidate,), extra=None)


def _resumes(request: Request) -> bool:
    return request.context_management is not None and request.context_management.resumes


def _note_unknown(context: ContextManagement, losses: Losses) -> None:
    """Record the wishes that only a server of the client's dialect would know."""
    for at, edit in enumerate(context.edits):
        where = f"$.context_management.edits[{at}]"
        if isinstance(edit, Opaque):
            losses.dropped(where, "edit", "the gateway, which edits the context for this model, has no such edit")
        else:
            losses.carry(edit.extra, where, "")
    losses.carry(context.extra, "$.context_management", "")


def _plain(call: Call) -> Call:
    """Return the call with its summary opened, and without wishes."""
    request, losses = open_history(call.request, call.losses)
    return replace(call, request=replace(request, context_management=None), losses=losses, body=None)


def _is_of_turn(where: str, turns: int) -> bool:
    """Whether a path is of one of the client's own `turns`, not of what the request for a summary adds to them."""
    found = _TURN.match(where)
    return found is not None and int(found[1]) < turns


def _shorter(plain: Call, part: CompactedHistory) -> Call:
    """Return the call with the summary in place of old turns; losses keep the paths of the client's turns."""
    resuming = replace(plain.request, context_management=ContextManagement(resumes=True))
    request = compacted(resuming, part)
    stood = {id(message): f"$.messages[{index}]" for index, message in enumerate(plain.request.messages)}
    moved = {f"$.messages[{index}]": stood.get(id(message)) for index, message in enumerate(request.messages)}
    opened, losses = open_history(request, plain.losses.moved(moved))
    return replace(plain, request=opened, losses=losses)


def _part(summary: Response) -> CompactedHistory:
    part = summary.candidates[0].content[0]
    if not isinstance(part, CompactedHistory):
        raise TypeError(f"found {type(part).__name__}; expected a summary")
    return part


def _report(dialect: str, context: ContextManagement, applied: Sequence[AppliedEdit]) -> Extra | None:
    """Return the report of the edits that were applied, in a dialect that has one."""
    clears = any(isinstance(edit, ClearToolUses | ClearThinking) for edit in context.edits)
    tell = get(dialect).applied_edits if clears and dialect else None
    return None if tell is None else tell(applied)


async def _folded(answer: Answer) -> Response:
    """Return the whole of an answer.

    Raises:
        FailureError: it failed in between.
    """
    folder = Folder()
    if isinstance(answer, ByteAnswer):
        raise TypeError("a call without a body of its own is answered in events")
    async for batch in answer.batches:
        for event in batch:
            if isinstance(event, Failed):
                raise FailureError(event.failure)
            folder.feed(event)
    return folder.response()


async def _unfolded(response: Response) -> AsyncGenerator[Sequence[Event]]:
    yield list(unfold(response))


def _answered(batches: AsyncGenerator[Sequence[Event]]) -> EventAnswer:
    return EventAnswer(batches=batches, aclose=batches.aclose)


def _reported(
    answer: Answer, report: Extra | None, part: CompactedHistory | None = None, usage: Usage | None = None
) -> Answer:
    """Return `answer` with the summary before it, the usage of that, and the edits that were applied."""
    if isinstance(answer, ByteAnswer) or (report is None and part is None):
        return answer
    return replace(answer, batches=_changed(answer.batches, report, part, usage))


async def _changed(
    batches: AsyncIterator[Sequence[Event]], report: Extra | None, part: CompactedHistory | None, usage: Usage | None
) -> AsyncGenerator[Sequence[Event]]:
    total = UsageSum()
    if usage is not None:
        total.put(0, usage)
    async for batch in batches:
        changed: list[Event] = []
        for event in batch:
            if isinstance(event, Started):
                changed.append(event)
                if part is not None:
                    changed += [BlockStarted(part=part), BlockEnded()]
            elif isinstance(event, UsageReported) and usage is not None:
                changed.append(UsageReported(usage=replace(total.put(1, event.usage), extra=event.usage.extra)))
            elif isinstance(event, Finished) and report is not None:
                changed.append(replace(event, extra=_joined(event.extra, report)))
            else:
                changed.append(event)
        yield changed


def _joined(extra: Extra | None, report: Extra) -> Extra:
    if extra is None or extra.dialect != report.dialect:
        return report
    return replace(extra, fields=extra.fields | report.fields)
