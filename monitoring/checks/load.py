# SPDX-License-Identifier: Apache-2.0
"""The load that the dashboards show: services with correct and faulty clients and workers.

Requires: MILLRACE and MILLRACE_SIMULATED name the programs, and tests/system is on the path."""
import asyncio
import contextlib
import json
import ssl
import struct
import tempfile
import threading
import time

import websockets

from gpu_faults import SimulatedService
from harness import MILLRACE, Process, Service, wait_for
from raw_worker import RawWorker
from tls_front import Authority
from worker_faults import REMOTE

PIPELINES = """
[[pipeline]]
name = "asr"
chunk = { size = "100ms", left = "20ms" }
batch = { rows = 8, max_wait = "2ms", row_buckets = [1, 4, 8] }
record = { answers = true }
[[pipeline]]
name = "live"
slots = 8
shed_after = "300ms"
frames = "f32"
chunk = { size = "100ms" }
batch = { rows = 4 }
"""
PACKET = 1600
ROOM = 6  # streams of `live` that get a slot


def bench(service, url, *more):
    return Process(MILLRACE, "bench", "--url", url, "--pipeline", "asr", "--workers", service.workers, "--life", "2s",
                   "--jitter", "20ms", "--duration", "600s", *more)


class Answering:
    """A worker that answers each batch after `seconds`, on its own thread."""

    def __init__(self, link, seconds):
        self.link = link.attached().beat()
        self.thread = threading.Thread(target=self._work, args=(seconds,), daemon=True)
        self.thread.start()

    def _work(self, seconds):
        self.link.wait_forever()
        while (batch := self.link.batch()) is not None:
            taken = time.monotonic_ns()
            time.sleep(seconds)
            self.link.answer(batch, taken=taken, finished=time.monotonic_ns())

    def close(self):
        self.link.hang_up()
        self.thread.join()
        self.link.close()


async def sends(load, number):
    """A stream of `live` in real time: frames, flushes, gaps, resets, NaN, and values out of range."""
    messages = [json.dumps({"type": "flush"}), json.dumps({"type": "gap", "frames": PACKET}),
                json.dumps({"type": "reset"}), struct.pack("<f", float("nan")) * 16, struct.pack("<f", 3.0) * 16]
    async with load.connect(pipeline="live", format="f32le") as connection:
        async def reads():
            with contextlib.suppress(websockets.ConnectionClosed):
                async for _ in connection:
                    pass

        reader = asyncio.create_task(reads())
        for turn in range(100):
            await connection.send(bytes(4 * PACKET))
            if turn % 3 == number % 3:
                await connection.send(messages[turn // 3 % len(messages)])
            await asyncio.sleep(0.1)
        await connection.send(json.dumps({"type": "end"}))
        await reader


async def again_and_again(load, what, pause):
    while not load.stopped.is_set():
        with contextlib.suppress(websockets.WebSocketException, OSError):
            await what()
        await asyncio.sleep(pause)


async def clients(load):
    async def refused(**parameters):
        async with load.connect(**parameters):
            pass

    await asyncio.gather(*(again_and_again(load, lambda number=number: sends(load, number), 0.5)
                           for number in range(ROOM + 4)),  # the other 4 are refused
                         again_and_again(load, lambda: refused(pipeline="missing"), 0.3))


class Load:
    """The load of all dashboards except *gpu*. It runs until `running` is closed."""

    def __init__(self, running):
        recordings = running.enter_context(tempfile.TemporaryDirectory(prefix="millrace-recordings-"))
        authority = Authority(running.enter_context(tempfile.TemporaryDirectory(prefix="millrace-certificates-")))
        certificate, key = authority.certificate("service")
        self.trusted = ssl.create_default_context(cafile=authority.ca)
        self.service = service = Service(PIPELINES, f'{REMOTE}[recording]\ndirectory = "{recordings}"\n'
                                                    f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
        self.encrypted = f"wss://127.0.0.1:{service.port}", "--ca", str(authority.ca)
        running.callback(service.process.kill)
        running.callback(service.kill)
        slow = RawWorker(service.workers, pipeline="live")  # half as fast as its streams
        running.callback(Answering(slow, 0.2).close)
        answering = bench(service, *self.encrypted, "--streams", "24", "--aborts", "0.2", "--worker", "answer")
        running.callback(answering.kill)
        wait_for(lambda: service.get("/readyz")[0] == 200, "the workers to attach")
        running.callback(bench(service, f"tcp://127.0.0.1:{service.zeromq_port}", "--streams", "8").kill)
        self.stopped = threading.Event()
        streaming = threading.Thread(target=lambda: asyncio.run(clients(self)), daemon=True)
        streaming.start()
        running.callback(self.stopped.set)

    def connect(self, **parameters):
        return websockets.connect(self.service.url(**parameters).replace("ws://", "wss://"), ssl=self.trusted, max_size=None)

    def lose_workers(self, running):
        """Kills one worker. Another one sends nothing, and is evicted after 6 s."""
        killed = bench(self.service, *self.encrypted, "--streams", "1", "--worker", "answer")
        running.callback(killed.kill)
        silent = RawWorker(self.service.workers, pipeline="asr").attached()
        running.callback(silent.close)
        self.lost("timeout")
        killed.kill()
        self.lost("disconnect")

    def lost(self, reason):
        wait_for(lambda: self.service.metric("millrace_worker_failures_total", reason=reason), "a worker to be lost", 0.5)


class DeviceLoad:
    """The load of *gpu*: two simulated devices with a worker each."""

    def __init__(self, running):
        self.service = service = SimulatedService("devices=2", "[[pipeline]]\nname = \"asr\"\nchunk = { size = 1600 }\nbatch = { rows = 4 }\n", "")
        running.callback(service.process.kill)
        running.callback(service.kill)
        for number in range(2):
            worker = RawWorker(service.workers, device=f"cuda:{number}", pipeline="asr")
            running.callback(Answering(worker, 0.005).close)
        running.callback(bench(service, f"ws://127.0.0.1:{service.port}", "--streams", "24").kill)
