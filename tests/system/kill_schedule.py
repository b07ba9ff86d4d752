#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a service with clients that come and go in every way, and with workers that are killed, stopped, hung and made to
leave at random. Connections of clients that resume their stream are cut. Then checks the history against the promises of the
service (history.py).

  MILLRACE=build/debug/service/millrace ./kill_schedule.py [--seconds 60] [--seed N] [--streams 40]

The seed determines all random choices; the time of each event depends on the machine."""
import argparse
import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time

import websockets

from crew import Crew
from harness import PATIENCE, Service
from history import timeline, violations
from traces import History, Rule, Stream, contract, salted

PIPELINES = {"lookahead": Rule(contract.Spec(size=400, left=80, right=40, first=240), 64, 8, 8.0),
             "overlap": Rule(contract.Spec(size=480, step=320, tail="cover"), 12, 6, 8.0)}
# The weight of each fault in the random choice, and the number of serving workers that it needs.
FAULTS = {"attach": (10, 0), "kill": (6, 1), "pause": (5, 1), "leave": (5, 1), "hang": (2, 2),
          "doze": (1, 2), "famine": (1, 1)}
MOST_WORKERS = 4
CUTS = 0.1  # the part of the messages of a resuming client before which its connection is cut
RESULTS, LOSSES = 15, 1 / 12  # a thorough run has more of them per second


def configuration():
    text = ""
    for name, rule in PIPELINES.items():
        spec = rule.spec
        text += (f'[[pipeline]]\nname = "{name}"\nslots = {rule.slots}\n'
                 f'worker_wait = "{rule.worker_wait:.0f}s"\nbye_wait = "2s"\n'
                 f"chunk = {{ size = {spec.size}, step = {spec.step}, first = {spec.first}, left = {spec.left}, "
                 f'right = {spec.right}, tail = "{spec.tail}" }}\n'
                 f'batch = {{ rows = {rule.rows}, max_wait = "2ms" }}\n')
    return text


class Link:
    """The connection of a stream. That of a stream that resumes can be cut."""

    def __init__(self, service, stream, resumes):
        self.service, self.stream, self.resumes, self.cuts = service, stream, resumes, 0
        self.place, self.token, self.numbers = [0] * 5, None, {"n": 0, "have": 0, "flushed": 0}

    async def connect(self):
        stream, more = self.stream, {"rate": 16000, "resume": 1} if self.resumes else {}
        if self.token:
            more.update(zip(["seq", "from", "commands", "begin", "skip"], self.place), **self.numbers)
        self.connection = await websockets.connect(
            self.service.url(pipeline=stream.pipeline, id=stream.name, options=stream.options.replace('"', "%22"), **more),
            subprotocols=["millrace.v1", f"resume.{self.token}"] if self.token else None,
            compression=None, ping_interval=None, open_timeout=PATIENCE, max_size=None)
        self.ready = asyncio.get_running_loop().create_future()
        self.reader = asyncio.create_task(self.read(self.connection))

    async def read(self, connection):
        with contextlib.suppress(websockets.ConnectionClosed):
            async for text in connection:
                message = json.loads(text)
                self.stream.got.append((time.monotonic_ns(), message))
                self.note(message)

    def note(self, message):
        """Takes what only a client that resumes receives."""
        kind, number = message["type"], message.pop("n", None)
        if number is not None:
            if number != self.numbers["n"]:
                raise AssertionError(f"{message} has number {number}, not {self.numbers}")
            self.numbers["n"] += 1
        if kind == "ready":
            self.token = message.get("resume")
            self.ready.set_result(message)
        elif kind == "result" and self.resumes:
            self.place, self.numbers["have"] = message["ack"], message["seq"] + 1
        elif kind == "ack":
            self.place = [message[name] for name in ("seq", "frames", "commands", "begin", "skip")]
        elif kind == "flushed" and self.resumes:
            self.numbers["flushed"] = message.pop("seq") + 1

    async def cut(self):
        """Cuts the connection, and continues over a new one."""
        await self.ready
        self.cuts += 1
        self.connection.transport.abort()
        await self.reader
        await self.connect()
        ready = await self.ready
        if not ready["resumed"] and self.numbers["have"]:  # without input, it has ended
            raise AssertionError(f"{ready} is a new stream")
        await self.send_again(2 * ready["frames"], ready["commands"])

    async def send_again(self, arrived, commands):
        position = 0
        for kind, n in self.stream.sent:
            if kind == "frames":
                skip, begin = max(0, min(n, arrived - position)), position
                position += n
                if skip < n:
                    data = salted(self.stream.salt, begin // 2, n // 2 + 2).tobytes()[begin % 2:]
                    await self.connection.send(data[skip:n])
                continue
            position += 2 * n if kind == "gap" else 0
            commands -= 1
            if commands < 0:
                await self.connection.send(command(kind, n))


def command(kind, n):
    """The message of the client for an entry of Stream.sent."""
    words = {} if n is None else {{"flush": "mark", "gap": "frames", "message": "data", "set": "options"}[kind]: n}
    return json.dumps({"type": kind, **words})


class Client:
    """Opens one random stream after the other, until `stop` is set."""

    def __init__(self, service, number, seed, streams):
        self.service, self.number, self.streams = service, number, streams
        self.random, self.count, self.refused, self.cuts = random.Random(f"{seed} client {number}"), 0, 0, 0

    async def run(self, stop):
        while not stop.is_set():
            await asyncio.sleep(self.random.expovariate(4))
            await self.stream(stop)

    async def stream(self, stop):
        self.count += 1
        stream = Stream(f"s-{self.number}-{self.count}", self.random.choice(list(PIPELINES)),
                        salt=self.random.randrange(30000), how=self.random.choices(
                            ["end", "left", "abort"], [7, 1, 2])[0])
        stream.options = json.dumps({"salt": stream.salt}, separators=(",", ":"))
        stream.opened = time.monotonic_ns()
        # Only where no other stream needs its slot, and not if it ends like a stream that waits for its client.
        resumes = stream.how != "abort" and stream.pipeline == "lookahead" and self.random.random() < 0.5
        link = Link(self.service, stream, resumes)
        try:
            await link.connect()
        except (OSError, websockets.WebSocketException, asyncio.TimeoutError) as error:
            if not stop.is_set() and getattr(error, "status_code", None) != 503:
                raise
            self.refused += 1  # there is no room, or the service is stopping
            return
        self.streams.append(stream)
        try:
            await self.send(link, stream, stop)
        except websockets.ConnectionClosed:
            pass  # the service ended it
        await link.reader
        self.cuts += link.cuts
        stream.code, stream.over = link.connection.close_code, time.monotonic_ns()

    async def send(self, link, stream, stop):
        draw, position, connection = self.random, 0, link.connection
        for _ in range(draw.randint(0, 30)):
            await asyncio.sleep(draw.expovariate(10))
            if link.resumes and draw.random() < CUTS and not stop.is_set() and not connection.closed:
                await link.cut()
                connection = link.connection
            kind = draw.choices(["frames", "flush", "reset", "gap", "message", "set"], [20, 2, 1, 1, 3, 2])[0]
            if kind == "frames":
                count = draw.randint(1, 1500)
                await self.packets(connection, stream, salted(stream.salt, position, count).tobytes())
                position += count
                continue
            n = {"flush": draw.choice([None, draw.randrange(1000)]), "gap": draw.randint(1, 2000), "message": draw.randrange(1000),
                 "set": {draw.choice("ab"): draw.randrange(1000)}}.get(kind)
            stream.sent.append((kind, n))
            await connection.send(command(kind, n))
            position += n if kind == "gap" else 0
        if stream.how == "end":
            await connection.send('{"type":"end"}')
        elif stream.how == "left":
            stream.left = time.monotonic_ns()
            await connection.close(1000)
        else:
            connection.transport.abort()

    async def packets(self, connection, stream, data):
        """Sends data in messages of any length, whose borders may be within a frame."""
        while data:
            size = min(len(data), self.random.choice([self.random.randint(1, 200), 800, len(data)]))
            stream.sent.append(("frames", size))
            await connection.send(data[:size])
            data = data[size:]


class Schedule:
    def __init__(self, service, seed, clients):
        self.random, self.service, self.streams = random.Random(f"{seed} faults"), service, []
        self.crews = [Crew(service, pipeline, random.Random(f"{seed} {pipeline}")) for pipeline in PIPELINES]
        self.clients = [Client(service, number, seed, self.streams) for number in range(clients)]
        self.faults, self.running, self.stopping = collections.Counter(), set(), None
        self.memory = []

    async def run(self, seconds, thorough):
        stop, until = asyncio.Event(), time.monotonic() + seconds
        clients = [asyncio.create_task(client.run(stop)) for client in self.clients]
        while time.monotonic() < until or thorough and not self.is_enough(seconds) and time.monotonic() < until + PATIENCE:
            await asyncio.sleep(self.random.expovariate(2))
            self.fault(self.random.choice(self.crews))
            self.memory.append(self.service.memory())
            self.raise_failures(clients)
        await asyncio.gather(*self.running)
        await asyncio.gather(*(crew.attach() for crew in self.crews))
        stop.set()
        self.stopping = time.monotonic_ns()
        self.service.process.terminate()  # while streams are open
        await asyncio.wait_for(asyncio.gather(*clients), PATIENCE * 2)

    def is_enough(self, seconds):
        results = sum(len(stream.messages("result")) for stream in self.streams)
        return results > RESULTS * seconds and self.faults["kill"] > LOSSES * seconds

    def fault(self, crew):
        possible = {kind: often for kind, (often, workers) in FAULTS.items() if len(crew.serving) >= workers}
        if crew.starved or len(crew.serving) >= MOST_WORKERS:
            del possible["attach"]
        if not possible:
            return
        kind = self.random.choices(list(possible), possible.values())[0]
        self.faults[kind] += 1
        task = asyncio.create_task(getattr(crew, kind)())
        self.running.add(task)

    def raise_failures(self, clients):
        for task in [*self.running, *clients]:
            if task.done():
                self.running.discard(task)
                task.result()


def check(service, schedule, code):
    """(all violations, a summary of the run)"""
    ended = [crew.finish() for crew in schedule.crews]
    workers = [worker for workers, _ in ended for worker in workers]
    history = History(PIPELINES, schedule.streams, workers, schedule.stopping)
    wrong = violations(history)
    for name in re.findall(r"\(stream (\S+)\)", "\n".join(wrong))[:1]:
        print(*timeline(history, name), sep="\n")
    wrong += [line for _, lines in ended for line in lines]
    if code != 0:
        wrong.insert(0, f"drain: the service ended with {code}: {service.errors[-5:]}")
    seen = [row for worker in history.workers for kind, batch in worker.log if kind == "batch"
            for row, _ in batch.rows]
    fates = collections.Counter(worker.fate for worker in history.workers)
    closes = collections.Counter(stream.code for stream in history.streams)
    again = len(seen) - len({(row.stream, row.seq, row.begin) for row in seen})
    return wrong, {"streams": len(history.streams), "closes": dict(closes), "rows": len(seen), "again": again,
                   "messages": sum(len(stream.messages("message")) for stream in history.streams),
                   "posts": sum(len(batch.posts) for worker in history.workers for kind, batch in worker.log if kind == "batch"),
                   "results": sum(len(stream.messages("result")) for stream in history.streams),
                   "pending": sum(len(worker.pending) for worker in history.workers), "workers": dict(fates), "faults": {**schedule.faults, "cut": sum(client.cuts for client in schedule.clients)},
                   "refused": sum(client.refused for client in schedule.clients),
                   "memory_MB": [memory >> 20 for memory in schedule.memory[::len(schedule.memory) // 4 or 1]]}


def save(service, schedule):
    """Saves the traces of clients and workers and the log of the service, to find the cause of a violation."""
    folder = tempfile.mkdtemp(prefix="millrace-history-")
    for name in os.listdir(service.folder.name):
        if name.endswith((".log", ".toml")):
            shutil.copy(os.path.join(service.folder.name, name), folder)
    with open(os.path.join(folder, "streams.json"), "w") as file:
        json.dump([dataclasses.asdict(stream) for stream in schedule.streams], file)
    with open(os.path.join(folder, "workers.json"), "w") as file:
        traces = [member.trace for crew in schedule.crews for member in crew.members]
        json.dump([dataclasses.asdict(dataclasses.replace(trace, log=[])) for trace in traces], file, default=list)
    with open(os.path.join(folder, "service.txt"), "w") as file:
        file.write("\n".join(service.errors))
    return folder


def run(seconds, seed, clients=40, thorough=False):
    """(all violations, a summary of the run). A thorough run goes on until enough has happened, however slow the machine is."""
    service = Service(configuration(), 'workers_remote = "tcp://127.0.0.1:0"\n[limits]\nstream_buffer = "250ms"\npause_buffer = "0s"\n')
    schedule = Schedule(service, seed, clients)
    try:
        asyncio.run(schedule.run(seconds, thorough))
        wrong, summary = check(service, schedule, service.wait())
        if wrong:
            summary["saved"] = save(service, schedule)
    finally:
        for crew in schedule.crews:
            crew.finish()
        service.kill()
        service.folder.cleanup()
    return wrong, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--streams", type=int, default=40, help="at a time")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    wrong, summary = run(arguments.seconds, arguments.seed, arguments.streams)
    print(json.dumps(summary))
    print("\n".join(wrong[:50]), f"{len(wrong)} violations", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
