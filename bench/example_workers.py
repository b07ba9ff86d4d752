#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU time of the example workers outside their models: batches of 32 rows come from a service, and the models know the answers.

  MILLRACE=build/release/service/millrace PYTHONPATH=tests/system build/python/venv/bin/python bench/example_workers.py
"""
import importlib.util
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from harness import MILLRACE, Service

import millrace

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STREAMS = 32
SECONDS = 10  # the load lasts this long for each worker and round
ROUNDS = 3
PIPELINE = '[[pipeline]]\ndtype = "f32"\nslots = 32\nchunk = {{ {} }}\nbatch = {{ rows = 32, max_wait = "1s" }}\n'
WORDS = "he might even have been made amiable himself and had then leisure to consider how much there might be".split()


def example(name):
    """The module of an example's worker."""
    folder = EXAMPLES / name
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(f"{name}_worker", folder / "worker.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model:
    """Silero's model and Moonshine's, which know the answer. `spent`: seconds of CPU that they have taken."""

    def __init__(self):
        self.spent = 0.0

    def __call__(self, windows, state):
        begin = time.thread_time()
        found = np.full(len(windows), 0.5, np.float32), state
        self.spent += time.thread_time() - begin
        return found

    def transcribe(self, segments):
        begin = time.thread_time()
        texts = [" ".join((WORDS * 4)[: len(each) // 5000]) for each in segments]
        self.spent += time.thread_time() - begin
        return texts


class Timed(millrace.Worker):
    """A worker that notes for each full batch the milliseconds of CPU that its function and `done` take outside the model."""

    def __init__(self, url, model):
        super().__init__(url)
        self.model, self.times = model, []

    def run(self, function):
        def timed(batch):
            full = batch.rows == STREAMS
            begin, spent = time.thread_time(), self.model.spent
            answers = function(batch)
            if not batch.given_back:
                batch.done(answers)
            if full:
                self.times.append(1e3 * (time.thread_time() - begin - (self.model.spent - spent)))

        super().run(timed)


def measured(chunk, serve):
    """The times of a worker's batches. `serve(worker, model)` answers them."""
    service = Service(PIPELINE.format(chunk))
    model = Model()
    with Timed(service.workers, model) as worker:
        serving = threading.Thread(target=serve, args=(worker, model))
        serving.start()
        subprocess.run([MILLRACE, "bench", "--streams", str(STREAMS), "--duration", f"{SECONDS}s", "--url",
                        f"ws://127.0.0.1:{service.port}"], check=True, stdout=subprocess.DEVNULL)
        worker.bye()
        serving.join()
    service.close()
    return worker.times


def main():
    silero, moonshine = example("silero_vad"), example("moonshine")
    workers = {
        "silero_vad": ('preset = "silero-16k"', silero.serve),
        "moonshine": ('size = "100ms"', lambda worker, model: moonshine.serve(worker, model, 1.0)),
        "control": ('size = "100ms"', lambda worker, _: worker.run(lambda batch: [{"text": "", "stable": ""}] * batch.rows)),
    }
    times = {name: [] for name in workers}
    for _ in range(ROUNDS):
        for name, (chunk, serve) in workers.items():
            times[name] += measured(chunk, serve)
    control = statistics.median(times["control"])
    print(f"{'worker':12}{'batches':>9}{'median ms':>11}{'p90 ms':>9}{'p99 ms':>9}{'of control':>12}")
    for name, found in times.items():
        at = statistics.quantiles(found, n=100)
        print(f"{name:12}{len(found):9}{at[49]:11.3f}{at[89]:9.3f}{at[98]:9.3f}{at[49] / control:12.2f}")


if __name__ == "__main__":
    main()
