# SPDX-License-Identifier: Apache-2.0
"""Little's law of a running service: the mean of each gauge of `millrace_queue_items` beside rate × mean wait.

MILLRACE=build/release/service/millrace python3 tests/system/littles_law.py [SECONDS]     120 by default

The load: 200 streams of `millrace bench` that come and go, eight clients that read more slowly than they send, and two
workers, one of which dies every ten seconds with unfinished batches. The exit code is 1 if a stage with at least two rows
on average differs by more than 10 %. Not in CI, where tests/workers/lanes/lanes_schedule_test.cpp checks that the law
holds exactly, in virtual time.
"""
import collections
import contextlib
import random
import re
import subprocess
import sys
import threading
import time

import worker_wire as wire
from harness import MILLRACE, Service, samples
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import RawWorker

PIPELINE = '[[pipeline]]\nslots = 256\nchunk = { size = "100ms" }\nbatch = { rows = 32, max_wait = "20ms" }\n'
WAITS = {"batch": ("batch",), "worker": ("copy", "handover", "compute"), "result": ("result",)}
ANSWER = b"x" * 2000


class Load:
    """The load during the measurement: it runs in the `with` block."""

    def __init__(self, service):
        self.service, self.over, self.threads = service, threading.Event(), []

    def __enter__(self):
        self.start(self.work, None)
        self.start(self.work_and_die)
        for _ in range(8):
            self.start(self.read_slowly)
        self.bench = subprocess.Popen([MILLRACE, "bench", "--url", f"ws://127.0.0.1:{self.service.port}", "--streams", "200",
                                       "--packet", "100ms", "--life", "5s", "--duration", "600s"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.bench.kill()
        self.bench.wait()
        for thread in self.threads:
            thread.join()

    def start(self, run, *arguments):
        self.threads.append(threading.Thread(target=run, args=arguments, daemon=True))
        self.threads[-1].start()

    def work(self, seconds):
        """A worker that sleeps as long as a model computes. With `seconds`, it dies after this time, with its batches."""
        with RawWorker(self.service.workers).attached().beat() as worker:
            end = time.monotonic() + seconds if seconds else float("inf")
            while not self.over.is_set() and (batch := worker.batch()) is not None:
                if time.monotonic() > end:
                    time.sleep(0.5)
                    return
                taken = time.monotonic_ns()
                time.sleep(0.01 + 0.0002 * len(batch.framed))
                answers = [(wire.TEXT, ANSWER)] * len(batch.framed), [(wire.TEXT, ANSWER)] * len(batch.marks)
                worker.send(wire.done(batch.id, *answers, taken=taken, finished=time.monotonic_ns()))

    def work_and_die(self):
        while not self.over.is_set():
            self.work(10)

    def read_slowly(self):
        with RawClient(self.service.port, upgrade(), receive_buffer=4096) as client:
            client.opened()
            self.start(self.send, client)
            while not self.over.wait(0.1) and client.message():
                pass

    def send(self, client):
        with contextlib.suppress(OSError):
            while not self.over.wait(0.05):
                client.socket.sendall(frame(BINARY, samples(0, 1600)))


def snapshot(service):
    """(time, gauge of each stage, seconds waited in each stage)"""
    lines = re.findall(r'^(millrace_queue_\w+)\{pipeline="default",stage="(\w+)"\} (\S+)$', service.get("/metrics")[1], re.MULTILINE)
    values = {(name, stage): float(value) for name, stage, value in lines}
    return (time.monotonic(), {stage: values["millrace_queue_items", stage] for stage in WAITS},
            {stage: sum(values["millrace_queue_wait_seconds_sum", wait] for wait in waits) for stage, waits in WAITS.items()})


def measure(service, seconds):
    gauges = collections.defaultdict(list)
    began, _, before = snapshot(service)
    while True:
        time.sleep(random.uniform(1.01, 1.2))  # the exporter collects once a second
        now, items, waited = snapshot(service)
        for stage in WAITS:
            gauges[stage].append(items[stage])
        if now - began > seconds:
            return {stage: (sum(gauges[stage]) / len(gauges[stage]), (waited[stage] - before[stage]) / (now - began)) for stage in WAITS}


def main(seconds=120):
    service, wrong = Service(PIPELINE, "[limits]\nsend_buffer = \"16KiB\"\n"), False
    with Load(service):
        time.sleep(10)  # until the queues of the clients that read slowly are full
        for stage, (items, waited) in measure(service, seconds).items():
            off = items / waited - 1 if waited else 0
            counts = min(items, waited) >= 2
            wrong |= counts and abs(off) > 0.1
            print(f"{stage:7} items {items:8.2f}   rate x mean wait {waited:8.2f}   {off:+.1%}{'' if counts else '   (few rows)'}")
    service.kill()
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
