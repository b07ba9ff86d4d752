# SPDX-License-Identifier: Apache-2.0
"""Workers of one pipeline as processes of their own, and what can happen to them."""
import asyncio
import json
import os
import signal
import sys
import time

from harness import COUNTED, Process, wait_for
from traces import SECOND, Worker, read_worker

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logging_worker.py")
REMOTE = 0.3  # of them are on another machine, as far as the service knows
SILENCE = 6  # seconds without a heartbeat until a worker is given up
ANSWER = 10  # seconds without an answer until then


class Member:
    """A worker: its process, and what is known of it."""

    def __init__(self, service, trace, pace, remote):
        self.trace, self.killed, self.finished = trace, False, False
        self.log = os.path.join(service.folder.name, trace.name + ".log")
        url = service.workers_remote if remote else service.workers
        self.process = Process(sys.executable, SCRIPT, url, trace.pipeline, trace.name,
                               self.log, str(trace.credits), str(pace))

    def signal(self, which):
        self.process.process.send_signal(which)

    def ends(self):
        """It may be gone from now on."""
        if self.trace.leaving is None:
            self.trace.leaving = time.monotonic_ns()

    async def over(self):
        """Until its process has ended."""
        await asyncio.to_thread(self.process.process.wait)

    def finish(self):
        """Ends what is left of it, reads its notes, and gives what it complained of."""
        if self.finished:
            return []
        self.finished = True
        self.process.kill()
        suspected = self.trace.leaving
        ended = read_worker(self.trace, self.log) if os.path.exists(self.log) else None
        self.trace.leaving = suspected or self.trace.leaving
        self.trace.over = self.trace.over or time.monotonic_ns()
        if ended == "left":
            self.trace.fate = "left"
        elif ended or self.killed:
            self.trace.fate = "lost"
        unjust = [] if ended in (None, "left", "lost", "timeout") else [f"{self.trace.name} was told {ended}"]
        return self.process.errors + unjust


class Crew:
    """Each fault is a coroutine, named as what happens. `serving` are those that nothing has
    happened to."""

    def __init__(self, service, pipeline, random):
        self.service, self.pipeline, self.random = service, pipeline, random
        self.members, self.serving, self.starved = [], [], False

    async def attach(self):
        name = f"{self.pipeline}-{len(self.members)}"
        trace = Worker(name, self.pipeline, credits=self.random.randint(1, 3))
        member = Member(self.service, trace, self.random.choice([2, 10, 60]),
                        remote=self.random.random() < REMOTE)
        self.members.append(member)
        attached = lambda: member.process.lines or member.process.process.poll() is not None
        await asyncio.to_thread(wait_for, attached, f"worker {name} to attach")
        if not member.process.lines:
            raise AssertionError(f"worker {name} did not attach: {member.process.errors}")
        self.serving.append(member)

    def _take(self):
        return self.serving.pop(self.random.randrange(len(self.serving)))

    async def _kill(self, member):
        member.ends()
        member.killed = True
        member.signal(signal.SIGKILL)
        await member.over()
        member.trace.over = time.monotonic_ns() + SECOND

    async def kill(self):
        await self._kill(self._take())

    async def pause(self):
        """Too short to be given up for."""
        member = self._take()
        member.signal(signal.SIGSTOP)
        await asyncio.sleep(self.random.uniform(0.1, SILENCE / 2))
        member.signal(signal.SIGCONT)
        self.serving.append(member)

    async def hang(self):
        """Given up for its silence; it sees so when it wakes, if it does."""
        member = self._take()
        member.ends()
        member.signal(signal.SIGSTOP)
        await asyncio.to_thread(wait_for, lambda: not self._is_listed(member), "it to be given up", COUNTED)
        if self.random.random() < 0.5:
            return await self._kill(member)
        member.signal(signal.SIGCONT)
        await member.over()

    def _is_listed(self, member):
        status, text = self.service.get("/workers")
        return status != 200 or member.trace.name in [worker["worker"] for worker in json.loads(text)["workers"]]

    async def doze(self):
        """Given up over a batch that it does not give back; then it does."""
        member = self._take()
        member.ends()
        member.signal(signal.SIGUSR1)
        await asyncio.wait([asyncio.create_task(member.over())], timeout=ANSWER + 8)
        if member.process.process.poll() is None:  # it had no batch to doze over
            await self._kill(member)

    async def leave(self):
        """With Bye; it may be killed before it is through."""
        member = self._take()
        member.ends()
        member.signal(signal.SIGTERM)
        if self.random.random() < 0.2:
            await asyncio.sleep(self.random.uniform(0, 0.5))
            return await self._kill(member)
        await member.over()

    async def famine(self):
        """All are killed at once, and for a while nobody comes."""
        self.starved = True
        await asyncio.gather(*(self.kill() for _ in list(self.serving)))
        await asyncio.sleep(self.random.uniform(1, 12))
        self.starved = False

    def finish(self):
        """Their traces, and what they complained of."""
        complaints = [line for member in self.members for line in member.finish()]
        return [member.trace for member in self.members], complaints
