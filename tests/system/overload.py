#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""More load than the worker can process: streams in real time with rows of 100 ms, and a worker that needs a fixed time for
each batch. Prints the figures of the run, and the bound that the configuration gives: the time that the worker needs for
all rows that may wait for it.

  MILLRACE=build/release/service/millrace ./overload.py [--seconds 30] [--load 2] [--shed-after 500]

`chunk_to_result` is measured by the service, from reading the last frame of a row to writing its result. `sent_to_result`
is measured by the clients, which fall further and further behind without --shed-after."""
import argparse
import asyncio
import json
import math
import re
import sys
import time

import websockets

from harness import UNHURRIED, Process, Service, samples, wait_for
from raw_worker import RawWorker

PACKET, RATE = 1600, 16000
ROWS, CREDITS, READY = 8, 2, 8
BATCH = 0.05  # seconds that the worker needs for one
MB = 1 << 20


def work(url):
    """The worker, in its own process."""
    with RawWorker(url, credits=CREDITS).attached().beat() as worker:
        print("attached", flush=True)
        worker.socket.settimeout(None)
        due = time.monotonic()
        while (batch := worker.batch()) is not None:
            due = max(due, time.monotonic()) + BATCH
            time.sleep(max(0.0, due - time.monotonic()))
            worker.answer(batch)


class Overload:
    def __init__(self, load, shed_after=None):
        self.streams = round(load * ROWS / BATCH / (RATE / PACKET))
        self.shed_after, shed = (shed_after or 0) / 1000, f'shed_after = "{shed_after}ms"\n' if shed_after else ""
        # [limits] stream_buffer in seconds: with shed_after, the ready rows and the frames of that time must fit.
        self.buffer = self.shed_after + 6 if shed_after else 0.2
        self.service = Service(f"[[pipeline]]\nslots = {self.streams}\n{shed}chunk = {{ size = {PACKET} }}\n"
                               f"batch = {{ rows = {ROWS} }}\n", f'[limits]\nstream_buffer = "{self.buffer * 1000:.0f}ms"\npause_buffer = "0s"\n')
        self.sent = self.answered = 0
        self.delays, self.records = [], []
        self.worker = self.attach()

    def attach(self):
        worker = Process(sys.executable, __file__, "--worker", self.service.workers)
        wait_for(lambda: worker.lines, "the worker to attach")
        return worker

    def close(self):
        try:
            self.service.close()
        finally:
            self.worker.kill()

    async def stream(self, number, until):
        """Sends a stream in real time, whatever the service answers. Returns the connection, which is still open."""
        connection = await websockets.connect(self.service.url(), compression=None, **UNHURRIED)
        sent = []
        reader = asyncio.create_task(self.read(connection, sent))
        due = time.monotonic() + number / self.streams * PACKET / RATE
        while due < until:
            await asyncio.sleep(due - time.monotonic())
            await connection.send(samples(0, PACKET))
            sent.append(due)
            self.sent += 1
            due += PACKET / RATE
        return connection, reader

    async def read(self, connection, sent):
        async for text in connection:
            message = json.loads(text)
            if message["type"] == "result" and message["end"] > message["begin"]:
                self.answered += 1
                self.delays.append(time.monotonic() - sent[message["end"] // PACKET - 1])

    def record(self):
        """Records what waits."""
        text = self.service.get("/metrics")[1]
        def value(name):
            return sum(float(found) for found in re.findall(rf"^millrace_{name}(?:\{{.*\}})? (\S+)$", text, re.M))

        self.records.append({"memory": self.service.memory(), "held": value("chunk_buffer_bytes"),
                             "waiting": value('queue_items{pipeline="default",stage="batch"}'),
                             "handed": value('queue_items{pipeline="default",stage="worker"}'),
                             "paused": value("ingest_paused_connections")})

    async def record_until(self, until):
        """Records once a second, as often as the gauges are collected."""
        while time.monotonic() < until:
            await asyncio.to_thread(self.record)
            await asyncio.sleep(1.0)

    async def run(self, seconds):
        began = time.monotonic()
        recording = asyncio.create_task(self.record_until(began + seconds))
        streams = await asyncio.gather(*(self.stream(number, began + seconds) for number in range(self.streams)))
        self.seconds = time.monotonic() - began  # more than `seconds` on a busy machine
        await recording
        await asyncio.to_thread(self.settle)
        await asyncio.to_thread(self.record)  # while all that was not answered waits
        for connection, reader in streams:
            reader.cancel()
            connection.transport.abort()

    def settle(self):
        """Waits, after the last message was sent, until the gauges are collected."""
        self.service.recount()

    def rows_of_a_stream(self):
        """The most rows of a stream that may wait: those in its buffer, and a message that was read before the buffer was full.
        With shed_after, those that are ready or handed over; bound() adds the time of the other frames."""
        return READY + CREDITS if self.shed_after else math.ceil(self.buffer * RATE / PACKET) + 1

    def bound(self):
        """The bound of chunk_to_result in seconds, at the measured rate."""
        behind = self.streams * self.rows_of_a_stream() / (self.answered / self.seconds)
        return behind + (CREDITS + 1) * BATCH + self.shed_after

    def chunk_to_result(self, quantile):
        """The bounds of the bucket with this quantile."""
        text, low = self.service.get("/metrics")[1], 0.0
        buckets = re.findall(r'^millrace_result_latency_seconds_bucket\{.*le="([^"]+)"\} (\S+)$', text, re.M)
        for high, count in ((float(le), float(count)) for le, count in buckets):
            if count >= quantile * float(buckets[-1][1]):
                return low, high
            low = high

    def figures(self):
        self.delays.sort()
        settled = self.records[len(self.records) // 3:]
        lost = self.service.metric("millrace_stream_lost_audio_seconds_total", reason="overflow")
        return {"streams": self.streams, "offered_rows_per_s": round(self.sent / self.seconds),
                "answered_rows_per_s": round(self.answered / self.seconds),
                "chunk_to_result_p99_s": "%g to %g" % self.chunk_to_result(0.99), "bound_s": round(self.bound(), 2),
                "sent_to_result_p99_s": round(self.delays[int(0.99 * len(self.delays))], 2),
                "shed_s": round(lost, 1), "most_paused": max(record["paused"] for record in self.records),
                "memory_MB": [round(record["memory"] / MB, 1) for record in (self.records[0], settled[0], settled[-1])]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--load", type=float, default=2, help="as a multiple of what the worker can process")
    parser.add_argument("--shed-after", type=int, metavar="MS")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker)
    overload = Overload(arguments.load, arguments.shed_after)
    try:
        asyncio.run(overload.run(arguments.seconds))
        overload.service.recount()
        print(json.dumps(overload.figures()))
    finally:
        overload.close()


if __name__ == "__main__":
    main()
