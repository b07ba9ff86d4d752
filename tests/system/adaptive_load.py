#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many streams a pipeline with adaptive sizes carries, compared with a pipeline of its largest size, and which sizes it
uses at a tenth of them. The streams send in real time. The worker needs 20 ms for each batch and 1 ms for each row.

  MILLRACE=build/release/service/millrace ./adaptive_load.py [--seconds 30]

A load is *carried* if 95 % of the rows of the last third of the run have their result within a body of the largest size
after their last frame was read. The loads are 5 % apart, in percent of what the worker can compute with the largest size."""
import argparse
import asyncio
import collections
import json
import re
import sys
import time

import websockets

from harness import Process, Service, samples, wait_for
from raw_worker import RawWorker

RATE, PACKET = 8000, 320  # 40 ms
SIZES, ROWS, CREDITS = (80, 160, 320, 640), 16, 2  # milliseconds
T0, K = 0.020, 0.001
LARGEST = SIZES[-1] / 1000
CAPACITY = LARGEST * ROWS / (T0 + K * ROWS)  # streams


def work(url):
    """The worker, in its own process. Prints the number of rows of each size, once a second."""
    with RawWorker(url, credits=CREDITS).attached().beat() as worker:
        print("attached", flush=True)
        worker.socket.settimeout(None)
        due = printed = time.monotonic()
        sizes = collections.Counter()
        while (batch := worker.batch()) is not None:
            due = max(due, time.monotonic()) + T0 + K * len(batch.framed)
            time.sleep(max(0.0, due - time.monotonic()))
            worker.answer(batch)
            sizes.update(row.size for row in batch.framed)
            if due > printed + 1:
                print(json.dumps(sizes), flush=True)
                sizes.clear()
                printed = due


class Run:
    def __init__(self, rule, size, streams, seconds):
        self.streams, self.seconds = streams, seconds
        names = ", ".join(f'"{size}ms"' for size in SIZES)
        self.service = Service(
            f'[[pipeline]]\nrate = {RATE}\nslots = {streams + 1}\nbatch = {{ rows = {ROWS}, max_wait = "2ms" }}\n'
            f'chunk = {{ rule = "{rule}", size = "{size}ms", sizes = [{names}] }}\n', '[limits]\nstream_buffer = "30s"\n')
        self.worker = Process(sys.executable, __file__, "--worker", self.service.workers)
        wait_for(lambda: self.worker.lines, "the worker to attach")

    async def stream(self, number, began):
        async with websockets.connect(self.service.url(rate=RATE), compression=None, ping_interval=None) as connection:
            async def read():
                async for _ in connection:
                    pass

            reader = asyncio.create_task(read())
            due = began + number / self.streams * LARGEST
            while due < began + self.seconds:
                await asyncio.sleep(due - time.monotonic())
                await connection.send(samples(0, PACKET))
                due += PACKET / RATE
            reader.cancel()
            connection.transport.abort()

    def latencies(self):
        text = self.service.get("/metrics")[1]
        return {float(le): float(count) for le, count in
                re.findall(r'^millrace_result_latency_seconds_bucket\{.*le="([^"]+)"\} (\S+)$', text, re.M)}

    async def measure(self, began):
        await asyncio.sleep(began + self.seconds * 2 / 3 - time.monotonic())
        before, lines = await asyncio.to_thread(self.latencies), len(self.worker.lines)
        await asyncio.sleep(began + self.seconds - 1 - time.monotonic())
        after = await asyncio.to_thread(self.latencies)
        total = max(1.0, after[float("inf")] - before[float("inf")])
        within = {le: (after[le] - before[le]) / total for le in after}
        self.p95 = min((le for le, share in within.items() if share >= 0.95), default=float("inf"))
        sizes = collections.Counter()
        for line in self.worker.lines[lines:]:
            sizes.update(json.loads(line))
        frames = sum(int(size) * count for size, count in sizes.items())
        self.shares = {round(int(size) * 1000 / RATE): round(int(size) * count / frames, 3) for size, count in sorted(sizes.items())}

    async def run(self):
        began = time.monotonic() + 1
        await asyncio.gather(self.measure(began), *(self.stream(number, began) for number in range(self.streams)))

    def result(self):
        try:
            asyncio.run(self.run())
        finally:
            self.service.close()
            self.worker.kill()
        return self


def tried(rule, size, share, seconds):
    run = Run(rule, size, max(1, round(CAPACITY * share)), seconds).result()
    run.carried = run.p95 <= LARGEST
    print(json.dumps({"rule": rule, "size": size, "load": share, "streams": run.streams, "p95_at_most_s": run.p95,
                      "carried": run.carried, "shares_of_sizes_ms": run.shares}), flush=True)
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30, help="of each load")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker)
    carries = {}
    for rule, size in (("fixed", SIZES[-1]), ("adaptive", SIZES[-1])):
        loads = (round(1.0 - 0.05 * step, 2) for step in range(12))
        carries[rule] = next((run.streams for load in loads if (run := tried(rule, size, load, arguments.seconds)).carried), 0)
    tenth = tried("adaptive", SIZES[-1], carries["fixed"] / CAPACITY / 10, arguments.seconds)
    share = carries["adaptive"] / max(1, carries["fixed"])
    smallest = tenth.shares.get(SIZES[0], 0.0)
    print(f"the largest size carries {carries['fixed']} streams, adaptive sizes carry {carries['adaptive']} ({100 * share:.0f} %); "
          f"at a tenth of them {100 * smallest:.0f} % of the audio has the smallest size")
    return 0 if share >= 0.9 and smallest >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
