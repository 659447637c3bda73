"""Steering input of one connection: what waits for which answer, and what becomes of it.

Theory of operation. Input for an answer in progress is accepted and waits. If the answer can end where it is, it does
(`gateway.stored.turn_intake`); otherwise it is completed. Then a request follows by itself that continues it with the
input. If the answer has calls that the client executes, the input waits for the client's own request instead, and goes
in front of its results. Input that was accepted is never lost: if no answer begins with it, it is returned in an event.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.features.web_socket import CreateEvent, SteerError
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.web_socket.turn import SteerInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.features.web_socket import SteerEvent, SteerForm
    from xenoglot.gateway.http.application import MessageSocket
    from xenoglot.gateway.web_socket.recent_answers import RecentAnswers
    from xenoglot.gateway.web_socket.turn import TurnExchange
    from xenoglot.model.json import JSON, JSONObject

MOST_STEERS: Final = 16
"""Inputs that wait for one answer."""

MOST_PENDING: Final = 16
"""Answers of a connection for whose results inputs wait."""


class SteerQueue:
    """Takes steering input for the answers of a connection."""

    def __init__(self, form: SteerForm, socket: MessageSocket, answers: RecentAnswers, limit: int) -> None:
        self._form = form
        self._socket = socket
        self._answers = answers
        self._limit = limit
        """Bytes that all input that waits may have."""
        self._pending: dict[str, tuple[list[SteerInput], Sequence[JSONObject], str | None]] = {}
        """Inputs that wait for the client's own request, what that must bring, and its lane; by the answer's id."""

    @property
    def not_created(self) -> SteerError:
        """Why input is returned whose request was not answered."""
        return self._form.not_created

    def take(self, event: SteerEvent, running: Sequence[TurnExchange], size: int) -> None:
        """Accept input whose message has `size` bytes, or report why not."""
        form = self._form
        turn = next((one for one in running if one.observer.answer_id == event.steered), None)
        waiting = self._pending.get(event.steered)
        queue = turn.steers if turn is not None else waiting[0] if waiting is not None else None
        error = self._problem(event, turn, queue)
        if error is None and (waits := self._waiting(running)) and waits + size > self._limit:
            error = form.too_many
        number = 0 if turn is None else turn.inject()
        lane = None if turn is None else turn.created.lane
        if error is not None or queue is None:
            self._put(form.failed(None, event, error or form.not_found, number), lane)
            return
        accepted = SteerInput(f"steer_{secrets.token_hex(16)}", event, size)
        queue.append(accepted)
        self._put(form.accepted(accepted.steer_id, event.steered, number), lane)
        if waiting is not None and turn is None:
            self._put(form.pending(accepted.steer_id, event.steered, waiting[1], number + 1), waiting[2])

    def _waiting(self, running: Sequence[TurnExchange]) -> int:
        """Return the bytes of all input that waits."""
        queues = [*(turn.steers for turn in running), *(steers for steers, _, _ in self._pending.values())]
        return sum(steer.size for queue in queues for steer in queue)

    def _problem(
        self, event: SteerEvent, turn: TurnExchange | None, queue: Sequence[SteerInput] | None
    ) -> SteerError | None:
        form = self._form
        if queue is None or (turn is not None and turn.observer.ended):
            return form.completed if event.steered in self._answers else form.not_found
        if event.unknown:
            return SteerError(form.invalid, f"unknown field `{event.unknown[0][:64]}`")
        if (wrong := form.problem(event.input)) is not None:
            return SteerError(form.invalid, wrong)
        if turn is not None and (refused := form.refusal(turn.created.body)) is not None:
            return SteerError(form.unsupported, refused)
        return form.too_many if len(queue) >= MOST_STEERS else None

    def merged(self, event: CreateEvent) -> tuple[CreateEvent, list[SteerInput]]:
        """Return a request with the input that waits for it in front of its own."""
        if event.previous is None or event.previous not in self._pending:
            return event, []
        steers, _, _ = self._pending.pop(event.previous)
        return replace(event, body=self._form.merged(event.body, self._items(steers))), steers

    def ended(self, turn: TurnExchange) -> tuple[CreateEvent, list[SteerInput]] | None:
        """Handle input that waits for an answer that has ended; return the request that follows by itself, if any."""
        form, answer_id = self._form, turn.observer.answer_id
        if answer_id is None:  # none of the input that it began with is part of an answer
            self.reject(turn.committing, form.not_created, turn)
        if not turn.steers:
            return None
        if answer_id is None or turn.refused or turn.observer.failed:
            self.reject(turn.steers, form.not_active, turn)
            return None
        wanted = form.required(turn.observer.answer)
        lane = turn.created.lane
        if not wanted:
            body = form.continuation(turn.created.body, answer_id, self._items(turn.steers))
            return CreateEvent(body, lane, previous=answer_id), turn.steers
        for steer in turn.steers:
            self._put(form.pending(steer.steer_id, answer_id, wanted, turn.inject()), lane)
        self._pending[answer_id] = (turn.steers, wanted, lane)
        if len(self._pending) > MOST_PENDING:
            steers, _, old = self._pending.pop(next(iter(self._pending)))
            for steer in steers:
                self._put(form.failed(steer.steer_id, steer.event, form.not_active, 0), old)
        return None

    def reject(self, steers: Sequence[SteerInput], error: SteerError, turn: TurnExchange) -> None:
        """Return input to the client."""
        for steer in steers:
            self._put(self._form.failed(steer.steer_id, steer.event, error, turn.inject()), turn.created.lane)

    def _items(self, steers: Sequence[SteerInput]) -> list[JSON]:
        return [item for steer in steers for item in self._form.items(steer.event.input)]

    def _put(self, event: JSONObject, lane: str | None) -> None:
        self._socket.put(encode_json(event if lane is None else event | {"stream_id": lane}))
