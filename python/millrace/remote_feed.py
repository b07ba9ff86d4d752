# SPDX-License-Identifier: Apache-2.0
"""The batches of a plan from servers, ``millrace train-serve``."""

import dataclasses
import json
import logging
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from millrace import _core
from millrace.batch_server import WAIT, BatchServer, Place
from millrace.errors import PlanDiffers, Refused, ServiceGone
from millrace.joined_batch import JoinedBatch, Taken
from millrace.plan_origin import difference_of
from millrace.request import whole

_log = logging.getLogger("millrace")
_KEYS = ("rank", "world", "device", "buffers")  # that a trainer chooses
_BUFFERS = 16  # batches that are kept or filled at once


def is_served(streams: Sequence[str]) -> bool:
    """Whether the streams come from servers. Raises ValueError if only some do."""
    served = [address.startswith(("tcp://", "unix:")) for address in streams]
    if any(served) and not all(served):
        raise ValueError("streams: servers and other sources cannot be mixed")
    return any(served)


class RemoteLoader:
    """Takes the batches of servers in the order of the plan. If they share the slots, server i of n fills the i-th part of those of
    this rank. Otherwise it has every n-th step of this process, from the i-th on. Has the properties and functions of
    ``_core.Loader``. Confined to one thread."""

    def __init__(self, servers: Sequence[BatchServer], place: Place, share: int, buffers: int) -> None:
        """``share``: the slots of a server, if the servers share the slots; else 0. ``buffers``: most batches that are kept."""
        self._servers = servers
        self._place = place
        self._share = share
        self._buffers = buffers
        self._stride = place.stride if share else place.stride * len(servers)  # between the steps of a server
        self._joined: list[weakref.ref[Any]] = []  # the memory of batches that are kept
        self._number = 0  # the id of the next one
        self.position = (0, place.first_step)
        self._resets = False  # the next step has to begin with fresh states
        self.at_end = False
        self.left_behind = False  # a call was under way when it was stopped: it gives no further batch
        self.opened: dict[int, tuple[str, str]] = {}  # name and meta of the streams so far
        self._steps = {plan["epoch"]: plan["steps"] for plan in (server.plan for server in servers)}
        self._ahead: dict[int, _core.Batch] = {}  # by server: a part of the next step, or a batch of a later epoch
        self._first_step = place.first_step  # in this epoch
        self._waited = 0.0
        self._first: float | None = None
        self._made = time.monotonic()

    def next(self, seconds: float | None) -> Taken | None:
        asked = time.monotonic()
        self.at_end = False
        try:
            return self._next(None if seconds is None else asked + seconds)
        finally:
            now = time.monotonic()
            self._waited += now - asked
            if self._first is None:
                self._first = now - self._made

    def seek(self, epoch: int, step: int, resets: bool) -> None:
        self.stop()
        self.position = (epoch, step)
        self._resets = resets
        self._first_step = step % self._place.stride
        self.at_end = False

    def stop(self) -> None:
        """Leaves the servers. The next batch attaches again."""
        self._ahead.clear()
        for server in self._servers:
            server.leave()

    def steps(self, epoch: int) -> int:
        """Steps of the epoch, which is the current or the next one. Attaches to a server for a moment, if it is not known."""
        if epoch not in self._steps and not self._servers[0].has_ended(epoch):
            step = self.position[1] if epoch == self.position[0] else self._place.first_step
            owner = self._owner(self.position[1])
            if self._servers[owner].is_attached:
                self._receive(owner, None)
            else:
                server = self._servers[self._owner(step)]
                server.look((epoch, step), self._stride)
                self._steps[server.plan["epoch"]] = server.plan["steps"]
        return int(self._steps.get(epoch, 0))

    @property
    def stats(self) -> dict[str, Any]:
        batches, frames, padding, bodies = (sum(counts) for counts in zip(*(s.counts for s in self._servers)))
        return {"batches": batches // len(self._servers) if self._share else batches, "frames": frames, "padding": padding,
                "bodies": bodies, "waited": self._waited, "first": self._first,
                "kept": self._count_kept()}

    def _next(self, deadline: float | None) -> Taken | None:
        epoch, step = self.position
        steps = self._steps.get(epoch)
        if (steps is not None and step >= steps) or self._servers[0].has_ended(epoch):
            if steps is not None and step >= steps + self._place.stride:
                raise ValueError(f"step {step}: epoch {epoch} has {steps} steps")
            self._end_epoch()
            return None
        if self._count_kept() >= self._buffers:
            raise RuntimeError(f"all {self._buffers} buffers are in batches that are kept: keep fewer batches, or set `buffers` to a "
                               "larger number")
        owners = range(len(self._servers)) if self._share else (self._owner(step),)
        for owner in owners:
            part = self._receive(owner, deadline)
            if part is None or part.epoch > epoch:
                if part is not None or step >= self._steps.get(epoch, step + 1):  # this epoch has no such step
                    self._end_epoch()
                return None
        parts = [self._ahead.pop(owner) for owner in owners]
        batch = self._join(parts) if self._share else parts[0]
        self.position = (epoch, step + self._place.stride)
        self._resets = False
        for stream, _, name, meta in batch.opened:
            self.opened[stream] = (name, meta)
        return batch

    def _join(self, parts: list[_core.Batch]) -> JoinedBatch:
        batch = JoinedBatch(self._number, parts, self._share)
        self._number += 1
        self._joined.append(weakref.ref(batch.memory))
        return batch

    def _count_kept(self) -> int:
        self._joined = [memory for memory in self._joined if memory() is not None]
        return sum(server.kept for server in self._servers) - len(self._ahead) + len(self._joined)

    def _end_epoch(self) -> None:
        epoch, _ = self.position
        self.at_end = True
        if self._servers[0].has_ended(epoch):
            return
        if self._first_step != self._place.first_step:  # the servers continue with other steps
            self.stop()
            self._first_step = self._place.first_step
        self._steps.pop(epoch - 1, None)
        self.position = (epoch + 1, self._first_step)

    def _receive(self, owner: int, deadline: float | None) -> _core.Batch | None:
        """The next batch of a server, which stays in ``_ahead``."""
        server = self._servers[owner]
        epoch, step = self.position
        for _ in range(2):
            if owner not in self._ahead:
                batch = server.next(self.position, self._stride, deadline, self._resets)
                if batch is not None:
                    self._ahead[owner] = batch
                self._steps[server.plan["epoch"]] = server.plan["steps"]
                if batch is None:
                    return None
                self._steps[batch.epoch] = batch.steps
            found = self._ahead[owner]
            if self._is_next(found):
                return found
            # An exception of a signal handler may have dropped the batch before.
            del self._ahead[owner]
            server.leave()
        raise ServiceGone(f"the server at {server.url} sends other steps than epoch {epoch}, step {step}")

    def _is_next(self, batch: _core.Batch) -> bool:
        """Whether no step of the server lies between this process's position and the batch."""
        epoch, step = self.position
        if batch.epoch == epoch:
            return batch.step == step
        first = step % self._stride
        return batch.epoch > epoch and batch.step == first and step >= self._steps.get(epoch, step + 1)

    def _owner(self, step: int) -> int:
        """The server that has the step, or a part of it."""
        return 0 if self._share else step // self._place.stride % len(self._servers)


class RemoteFeed:
    """A plan of servers, which must all have the same one. ``streams`` are their addresses."""

    def __init__(self, streams: Sequence[str], keys: Mapping[str, Any], stride: int, first_step: int) -> None:
        _check_keys(keys)
        self._place = Place(keys.get("rank") or 0, keys.get("world") or 1, stride, first_step)
        self._buffers = whole("buffers", keys.get("buffers") or _BUFFERS, 1, 1024)
        self.device: str = keys.get("device") or "host"
        self.extents: list[str] = []  # the server has the streams
        self._urls = list(streams)
        self._loader: RemoteLoader | None = None
        self._process = 0
        self._shares = len(streams) > 1 and self._must_share()
        self._servers = self._attach()
        plan, welcome = self._servers[0].plan, self._servers[0].welcome
        parts = len(streams) if self._shares else 1
        self.slots: int = parts * plan["slots"]
        _, rows, self.width, values, features, element, rate, chunk, *_ = welcome
        self.rows: int = parts * rows
        self.chunk: dict[str, Any] | None = json.loads(chunk)
        self.frame_type = (element, values, rate, features)
        self.streams: int = plan["origin"]["streams"]
        self.companions = [
            (entry["name"], entry["element"], entry["values"], entry["frames_per_entry"], entry["entries_per_frame"])
            for entry in plan["companions"]
        ]

    @property
    def origin(self) -> dict[str, Any]:
        origin: dict[str, Any] = self._servers[0].plan["origin"]
        return origin

    def loader(self) -> RemoteLoader:
        process = os.getpid()
        if self._loader is None or self._process != process:
            if self._process not in (0, process):
                origin = self.origin
                self._servers = self._attach()
                difference = difference_of(origin, self.origin)
                if difference:
                    raise PlanDiffers(f"the server at {self._urls[0]} has another plan now: {difference}")
            share = self.slots // len(self._servers) if self._shares else 0
            self._loader = RemoteLoader(self._servers, self._place, share, self._buffers)
            self._process = process
        return self._loader

    def within(self, extents: Sequence[str]) -> "RemoteFeed":
        return self

    def name(self, i: int) -> str:
        return self._text(i)[0]

    def meta(self, i: int) -> str:
        return self._text(i)[1]

    @property
    def sources(self) -> int:
        return self.streams

    def place(self, i: int) -> tuple[int, int]:
        return i, 0  # the server has the sources

    def events(self, i: int) -> list[tuple[str, int, int]]:
        raise ValueError('companions: per = "segment" needs the streams in this process: a server does not send their events')

    def padding_warning(self) -> str | None:
        return None  # the server warns

    def _text(self, i: int) -> tuple[str, str]:
        text = None if self._loader is None else self._loader.opened.get(i)
        if text is None:
            raise LookupError(f"stream {i} was in no batch yet: a server sends names and meta with the first row")
        return text

    def _attach(self) -> list[BatchServer]:
        """Attaches to each server, compares their plans, and leaves: the first batch attaches again, at its step."""
        count, place = len(self._urls), self._place
        servers = [self._server(i, self._shares) for i in range(count)]
        for i, server in enumerate(servers):
            if self._shares:
                server.look((0, place.first_step), place.stride)
            else:
                server.look((0, place.first_step + i * place.stride), place.stride * count)
            difference = difference_of(servers[0].plan["origin"], server.plan["origin"])
            if difference:
                raise PlanDiffers(f"the servers {servers[0].url} and {server.url} have different plans: {difference}")
        return servers

    def _server(self, number: int, shares: bool) -> BatchServer:
        """``shares``: it fills a part of the slots."""
        count, place, credits = len(self._urls), self._place, self._buffers
        if shares:
            place = dataclasses.replace(place, rank=place.rank * count + number, world=place.world * count)
        else:
            credits = -(-credits // count)
        return BatchServer(self._urls[number], place, credits, self.device)

    def _must_share(self) -> bool:
        """Whether the servers share the slots of this rank. All ranks decide the same, by the plan and the addresses. Servers
        refuse another world than that of trainers that are attached, so it is asked for with both worlds."""
        count, place = len(self._urls), self._place
        sharing = self._server(0, True)
        while True:
            for server, stride in (sharing, place.stride), (self._server(0, False), place.stride * count):
                try:
                    server.attach((0, place.first_step), stride, WAIT, plan_only=True)
                except Refused as error:
                    if error.code == "plan" and server is sharing:
                        continue  # the larger world does not divide the slots
                    refused = error
                else:
                    server.leave()
                    slots: int = server.plan["slots"] * (count if server is sharing else 1)
                    is_local = all(url.startswith("unix:") for url in self._urls)
                    if is_local and not server.plan.get("shares_slots", True):
                        return False
                    why = f"{count} servers cannot share {slots} slots" if slots % count else f"batches are on {self.device}"
                    if slots % count or (slots and self.device != "host"):
                        _log.warning("%s: each server gives every %d-th step, and reads all streams", why, count)
                        return False
                    return slots > 0
            sharing.await_room(refused)


def _check_keys(keys: Mapping[str, Any]) -> None:
    for key, given in keys.items():
        if key not in _KEYS and given not in (None, _DEFAULTS.get(key)):
            raise ValueError(f"{key}={given!r}: the server of the batches chooses it; a trainer has {', '.join(_KEYS)}")


_DEFAULTS = {"frames": "auto", "convert": False, "mapped": False, "seed": 0, "shuffle": True, "drop_last": True, "on_error": "raise"}
