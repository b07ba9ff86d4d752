# SPDX-License-Identifier: Apache-2.0
"""The connection of a trainer to one server, ``millrace train-serve``."""

import dataclasses
import json
import logging
import math
import os
import sys
import threading
import time
import weakref
from typing import Any

from millrace import _core
from millrace.errors import DataError, PlanDiffers, Refused, ServiceGone, WorkerError
from millrace.plan_origin import difference_of
from millrace.outage import Outage
from millrace.worker import PASSING

_log = logging.getLogger("millrace")
WAIT = 30.0  # seconds for which the first attachment waits for a server that does not listen yet
_ATTEMPT = 10.0  # the longest time of an attempt to attach again, in seconds
_CONFLICT = 10.0  # seconds after the first conflict: the server may not have noticed the end of a former connection
_LEAST_ATTEMPT = 1.0  # seconds for which an attempt lasts at least, so that short timeouts reach a slow server, too
_POLL_PERIOD = 0.1  # seconds: how often a wait lets signal handlers run


@dataclasses.dataclass(frozen=True)
class Place:
    """The steps that this process takes: every ``stride``-th, from ``first_step`` on in each epoch."""

    rank: int
    world: int
    stride: int
    first_step: int


_attached: "weakref.WeakSet[BatchServer]" = weakref.WeakSet()


class BatchServer:
    """The connection to one server, which attaches again after a loss."""

    def __init__(self, url: str, place: Place, credits: int, device: str) -> None:
        self.url = url
        self.plan: dict[str, Any] = {}
        self.welcome: Any = None
        self._place = place
        self._credits = credits
        self._device = device
        self._core: _core.Trainer | None = None
        self._outage: Outage | None = None
        self._conflict: float | None = None  # since when another connection has the rank or the memory
        self._counts = [0, 0, 0, 0]  # by earlier connections
        self._former: list[_core.Trainer] = []  # earlier connections whose batches are kept
        self._owner = (0, 0)  # the process and the thread that have attached
        self._steps = (0, 1)  # one of the steps of the connection, and the stride

    @property
    def counts(self) -> list[int]:
        now = (0, 0, 0, 0) if self._core is None else self._core.counts
        return [before + more for before, more in zip(self._counts, now)]

    @property
    def kept(self) -> int:
        self._former = [core for core in self._former if core.kept]
        return sum(core.kept for core in self._former) + (0 if self._core is None else self._core.kept)

    @property
    def is_attached(self) -> bool:
        return self._core is not None

    def next(self, position: tuple[int, int], stride: int, deadline: float | None, resets: bool) -> _core.Batch | None:
        """The next batch; None at the deadline, or if the epoch of ``position``, its step, has no such step. ``resets``: its
        rows have RESET, because the states of the slots are lost."""
        while True:
            try:
                if self._core is None:
                    if not self._attach_again(position, stride, deadline, resets):
                        return None
                    if self.plan["epoch"] == position[0] and position[1] >= self.plan["steps"]:
                        return None
                assert self._core is not None
                batch = self._core.next(None if deadline is None else max(deadline - time.monotonic(), 0))
                if batch is not None or not self._core.ended:
                    return batch
                self._lose("the server stops")
            except WorkerError as error:
                if self.plan == {} or isinstance(error, Refused) and not self._is_passing(error):
                    self.leave()
                    raise
                self._lose(str(error))
            except DataError:  # the server has ended the connection: the next call attaches again, at the same step
                self._forget()
                raise

    def has_ended(self, epoch: int) -> bool:
        """Whether the plan has ended before this epoch."""
        return self.plan.get("epochs") is not None and epoch >= self.plan["epochs"]

    def attach(self, position: tuple[int, int], stride: int, wait: float, until: float | None = None,
               resets: bool = False, plan_only: bool = False) -> None:
        """Attaches at this step, and checks that the plan is that of the attachment before. ``plan_only``: the server makes no
        batch, and ends the connection."""

        def meanwhile() -> None:
            if until is not None and time.monotonic() >= until:
                raise ServiceGone("the server did not answer")

        place = self._place
        self._steps = position[1], stride
        core = _core.Trainer(
            self.url, _name(place), self._credits, self._device, (place.rank, place.world, *position, stride, resets, plan_only), wait,
            lambda why: _log.warning("%s; waiting for up to %g s", why, wait), meanwhile,
        )
        plan = json.loads(core.plan)
        streams = plan["origin"].get("streams")
        if not isinstance(streams, int) or plan["slots"] not in (0, core.welcome[0]):
            core.leave()
            raise Refused(f"the server at {self.url} sent a plan that is not valid", "protocol")
        if self.plan:
            difference = difference_of(self.plan["origin"], plan["origin"])
            if difference:
                core.leave()
                raise PlanDiffers(f"the server at {self.url} has another plan now: {difference}")
        self.plan, self.welcome, self._core, self._outage, self._conflict = plan, core.welcome, core, None, None
        self._owner = os.getpid(), threading.get_ident()
        _attached.add(self)

    def look(self, position: tuple[int, int], stride: int) -> None:
        """Attaches for the plan only. Waits for a server that does not listen yet, for the rank, and for memory."""
        while True:
            try:
                self.attach(position, stride, WAIT, plan_only=True)
                return self.leave()
            except Refused as error:
                self.await_room(error)

    def await_room(self, error: Refused) -> None:
        """Waits a moment, if other trainers have the rank or the memory. Otherwise, or if this lasts too long, raises the refusal."""
        if error.code not in ("conflict", "no_room") or not self._may_wait(error):
            raise error
        time.sleep(_POLL_PERIOD)

    def leave(self) -> None:
        """Ends the connection. The rank is free afterwards."""
        self._conflict = None
        if self._core is not None:
            core = self._core
            self._forget()
            core.leave()

    def _forget(self) -> None:
        self._counts = self.counts
        if self._core is not None and self._core.kept:
            self._former.append(self._core)
        self._core = None

    def _lose(self, why: str) -> None:
        if self._core is not None:
            self._forget()
        if self._outage is None:
            _log.warning("attaching again to %s: %s", self.url, why)
            self._outage = Outage(float("inf"))
        else:
            self._outage.postpone()

    def _is_passing(self, error: Refused) -> bool:
        if error.code == "conflict" or (error.code == "no_room" and not any(self.counts)):
            return self._may_wait(error)
        return error.code in PASSING

    def _may_wait(self, error: Refused) -> bool:
        """Whether to ask again after this refusal. Ends the connections that this one replaces."""
        now = time.monotonic()
        others = [other for other in _attached if error.code == "conflict" and self._is_replaced(other)]
        for other in others:
            _log.warning("the connection to %s of another Dataset of this process ends: %s", self.url, error)
            other.leave()
        if self._conflict is None or others:
            self._conflict = now
            if not others:
                _log.warning("%s; waiting for up to %g s", error, _CONFLICT)
        return now < self._conflict + _CONFLICT

    def _is_replaced(self, other: "BatchServer") -> bool:
        """Whether the other one has a connection of this thread that is in conflict with this one. It attaches again when
        its next batch is taken."""
        if other is self or other.url != self.url or not other.is_attached:
            return False
        if other._owner != (os.getpid(), threading.get_ident()):
            return False
        common = math.gcd(self._steps[1], other._steps[1])
        shares = self._steps[0] % common == other._steps[0] % common
        return other._place.world != self._place.world or (other._place.rank == self._place.rank and shares)

    def _attach_again(self, position: tuple[int, int], stride: int, deadline: float | None, resets: bool) -> bool:
        """Returns false at the deadline. Raises WorkerError if an attempt failed."""
        if self._outage is None:
            self.attach(position, stride, WAIT, None if deadline is None else _end_of_attempt(deadline), resets)
            return True
        while (left := self._outage.retry_at - time.monotonic()) > 0:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(min(left, _POLL_PERIOD))
        self.attach(position, stride, 0, _end_of_attempt(deadline), resets)
        _log.warning("attached again to %s at epoch %d, step %d", self.url, *position)
        return True


def _end_of_attempt(deadline: float | None) -> float:
    now = time.monotonic()
    return now + _ATTEMPT if deadline is None else min(now + _ATTEMPT, max(deadline, now + _LEAST_ATTEMPT))


def _name(place: Place) -> str:
    program = os.path.basename(sys.argv[0]) or "python"
    return f"{program} {os.getpid()}, rank {place.rank}"
