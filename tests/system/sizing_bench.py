# SPDX-License-Identifier: Apache-2.0
"""The example of docs/sizing.md, measured: `millrace bench` sends, and a worker sleeps 8 ms and 0.25 ms per row.

MILLRACE=build/release/service/millrace python3 tests/system/sizing_bench.py [STREAMS...]
"""
import re
import subprocess
import sys
import threading
import time

from harness import COUNTED, MILLRACE, Service, wait_for
from raw_worker import RawWorker

PIPELINE = ('[[pipeline]]\nslots = 1024\nchunk = { size = "320ms", right = "80ms" }\n'
            'batch = { rows = 64, max_wait = "5ms" }\n')
STAGES = ("batch", "handover", "compute")


class Sleeper:
    """A worker that computes nothing: it sleeps for as long as the model of the example takes."""

    def __init__(self, service):
        self.late = []  # how long each batch took beyond its time, in seconds
        self.link = RawWorker(service.workers).attached().beat()
        self.link.wait_forever()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while (batch := self.link.batch()) is not None:
            taken = time.monotonic_ns()
            if batch.framed:
                takes = 0.008 + 0.00025 * len(batch.framed)
                time.sleep(takes)
                self.late.append((time.monotonic_ns() - taken) / 1e9 - takes)
            self.link.answer(batch, taken=taken, finished=time.monotonic_ns())

    def close(self):
        self.link.hang_up()
        self.thread.join()
        self.link.close()


class Counters:
    """The service's metrics at one moment."""

    def __init__(self, service):
        self.values = dict(re.findall(r"^(millrace_\S+) (\S+)$", service.get("/metrics")[1], re.MULTILINE))

    def buckets(self, name, stage):
        """{upper bound in seconds: rows}"""
        found = {}
        for sample, value in self.values.items():
            if sample.startswith(name + "_bucket{") and (not stage or f'stage="{stage}"' in sample):
                found[float(re.search(r'le="([^"]*)"', sample)[1])] = float(value)
        return found

    def total(self, name):
        return sum(float(value) for sample, value in self.values.items() if sample.startswith(name + "{"))


def quantile(before, after, part, name, stage=None):
    """A quantile in ms, interpolated between the bounds of its bucket."""
    start, low, below = before.buckets(name, stage), 0.0, 0.0
    counts = [(bound, count - start[bound]) for bound, count in sorted(after.buckets(name, stage).items())]
    wanted = part * counts[-1][1]
    for bound, count in counts:
        if count >= wanted:
            return 1000 * (low + (bound - low) * (wanted - below) / (count - below))
        low, below = bound, count


def measure(service, streams, together=True, rows=40):
    """Rows per batch, and the median and 99th percentile of each stage and of the whole, in ms. `rows`:
    the number of rows of each stream that count."""
    command = [MILLRACE, "bench", "--url", f"ws://127.0.0.1:{service.port}", "--streams", str(streams),
               "--packet", "100ms", "--duration", "600s", *([] if together else ["--life", "5s"])]
    skipped = 4 if together else 60  # until most streams were replaced by others, which start at any time
    results = lambda: service.metric("millrace_results_total", status="ok")
    earlier = results()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
        def reached(rows):
            wait_for(lambda: results() - earlier >= rows * streams, f"{rows} rows of each stream", COUNTED)
            return Counters(service)

        try:
            return result(reached(skipped), reached(skipped + rows))
        finally:
            bench.kill()


def result(before, after):
    figures = {"rows": (after.total("millrace_batch_rows_total") - before.total("millrace_batch_rows_total"))
               / (after.total("millrace_batches_total") - before.total("millrace_batches_total"))}
    for stage in STAGES:
        figures[stage] = [quantile(before, after, part, "millrace_queue_wait_seconds", stage) for part in (0.5, 0.99)]
    figures["all"] = [quantile(before, after, part, "millrace_result_latency_seconds") for part in (0.5, 0.99)]
    return figures


def main(*numbers):
    for streams in numbers or (50, 256, 597):
        for together in (False, True):
            service = Service(PIPELINE)
            worker = Sleeper(service)
            figures = measure(service, streams, together)
            cells = [f"{figures['rows']:.1f}"] + ["%.1f, %.1f" % tuple(figures[stage]) for stage in (*STAGES, "all")]
            print(f"| {streams} | {'together' if together else 'at any time'} | " + " | ".join(cells) + " |", flush=True)
            worker.close()
            service.kill()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
