# SPDX-License-Identifier: Apache-2.0
"""Workers of one pipeline, each a process, and the faults that can happen to them."""
import asyncio
import os
import signal
import sys
import time

from harness import PATIENCE, Process, wait_for
from traces import SECOND, Worker, read_worker

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logging_worker.py")
REMOTE = 0.3  # share of the workers that connect over TCP, as from another machine
SILENCE = 6  # seconds without a heartbeat until a worker is evicted
ANSWER = 10  # seconds without an answer until a worker is evicted


class Member:
    """A worker: its process, and its trace."""

    def __init__(self, service, trace, pace, remote):
        self.trace, self.killed, self.finished = trace, False, False
        self.log = os.path.join(service.folder.name, trace.name + ".log")
        url = service.workers_remote if remote else service.workers
        self.process = Process(sys.executable, SCRIPT, url, trace.pipeline, trace.name,
                               self.log, str(trace.credits), str(pace))

    def signal(self, which):
        self.process.process.send_signal(which)

    def may_end(self):
        """From now on, the worker may be gone."""
        if self.trace.leaving is None:
            self.trace.leaving = time.monotonic_ns()

    async def over(self):
        """Waits until its process has ended, with a limit: asyncio.run() waits for this thread, also after a failure."""
        await asyncio.to_thread(self.process.process.wait, PATIENCE)

    def finish(self):
        """Ends its process if it runs, reads its log, and returns its complaints."""
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
        unjust = [] if ended in (None, "left", "lost", "timeout") else [f"{self.trace.name} was refused: {ended}"]
        return self.process.errors + unjust


class Crew:
    """Each fault is a coroutine with the name of the fault. `serving` are the workers that had no fault."""

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
        member.may_end()
        member.killed = True
        member.signal(signal.SIGKILL)
        await self._ended(member)

    async def _ended(self, member):
        await member.over()
        member.trace.over = time.monotonic_ns() + SECOND

    async def kill(self):
        await self._kill(self._take())

    async def pause(self):
        """Stops a worker for a time that is too short for its eviction."""
        member, began = self._take(), time.monotonic_ns()
        member.signal(signal.SIGSTOP)
        await asyncio.sleep(self.random.uniform(0.1, SILENCE / 2))
        member.signal(signal.SIGCONT)
        if time.monotonic_ns() - began > (SILENCE - 2.5) * SECOND:  # too long: it may be evicted
            member.trace.leaving = began
            return await self._kill(member)
        self.serving.append(member)

    async def hang(self):
        """Stops a worker until it is evicted for its silence. Then it is killed, or continues and sees its eviction."""
        member = self._take()
        member.may_end()
        member.signal(signal.SIGSTOP)
        await asyncio.to_thread(wait_for, lambda: not self._is_listed(member), "the worker to be evicted")
        if self.random.random() < 0.5:
            return await self._kill(member)
        member.signal(signal.SIGCONT)
        await self._ended(member)

    def _is_listed(self, member):
        return member.trace.name in [worker["worker"] for worker in self.service.listed("workers")]

    async def doze(self):
        """Makes a worker keep a batch until it is evicted, and give the batch back afterwards."""
        member = self._take()
        member.may_end()
        member.signal(signal.SIGUSR1)
        await asyncio.wait([asyncio.create_task(member.over())], timeout=ANSWER + 8)
        if member.process.process.poll() is None:  # it had no batch to keep
            return await self._kill(member)
        await self._ended(member)

    async def leave(self):
        """Makes a worker leave with Bye. It may be killed before it has left."""
        member = self._take()
        member.may_end()
        member.signal(signal.SIGTERM)
        if self.random.random() < 0.2:
            await asyncio.sleep(self.random.uniform(0, 0.5))
            return await self._kill(member)
        await self._ended(member)

    async def famine(self):
        """Kills all workers at once. For a while, no other attaches."""
        self.starved = True
        await asyncio.gather(*(self.kill() for _ in list(self.serving)))
        await asyncio.sleep(self.random.uniform(1, 12))
        self.starved = False

    def finish(self):
        """The traces and the complaints of all workers."""
        complaints = [line for member in self.members for line in member.finish()]
        return [member.trace for member in self.members], complaints
