# SPDX-License-Identifier: Apache-2.0
"""A worker that knows what its batches must contain, and compares every value of each.

Prints JSON objects, a line each: {"attached": DEVICE}; with --announce {"taken": ID} for each batch; and its figures after
SIGUSR1, when it has attached again, and at its end. SIGTERM ends it when its streams have ended.
"""
import argparse
import json
import logging
import signal
import sys
import time

import numpy as np

import millrace
import ramp
from device import SimulatedDevice, TorchDevice

SKIPPED = 77  # exit code


def say(**fields):
    print(json.dumps(fields), flush=True)


def spread(values):
    """Percentiles of times in microseconds."""
    if not values:
        return None
    marks = np.percentile(values, (50, 99, 100))
    return {name: round(float(mark), 1) for name, mark in zip(("p50", "p99", "max"), marks)}


class Checking:
    """Takes batches, checks them and gives them back."""

    def __init__(self, worker, device, order, announce):
        """`order`: "plain"; "overlap": the next batch is put on the device before the answers to this one are ready;
        "early": a batch is given back before the device has finished with it."""
        self.worker, self.device, self.order, self.announce = worker, device, order, announce
        self.keys = np.zeros(worker.slots + 1, np.int64)
        self.reporting = self.leaving = False
        self.damaged = 0
        self.pending = None  # the batch that is not done, and the function that waits for its answers
        self._clear()

    def _clear(self):
        self.batches = self.rows = self.lost = 0
        self.waits, self.gives, self.ages = [], [], []
        self.device.times.clear()

    def run(self):
        attachments = self.worker.attachments
        while True:
            begin = time.thread_time_ns()
            batch = self.worker.next(0 if self.pending else None)
            spent = time.thread_time_ns() - begin
            if self.reporting or attachments != self.worker.attachments:
                self.report(attachments)
                attachments = self.worker.attachments
            elif not batch and not self.pending and self.leaving:
                return
            if batch:
                self.waits.append(spent / 1e3)
                self._take(batch)
            elif self.pending:
                self._finish()

    def report(self, attachments):
        """Prints the figures since the last report."""
        self.reporting = False
        before, self.damaged = self.damaged, self.device.read()
        say(batches=self.batches, rows=self.rows, damaged=self.damaged - before, lost=self.lost, copied=self.device.copied,
            **{name: spread(times) for name, times in self.device.times.items()}, closed_to_taken_us=spread(self.ages),
            next_cpu_us=spread(self.waits), done_us=spread(self.gives), free_mib=self.device.free_mib(), attachments=attachments)
        self._clear()

    def _take(self, batch):
        self.batches += 1
        self.rows += len(batch.framed)
        self.ages.append((batch.taken - batch.closed) / 1e3)
        for opened in batch.opened:
            self.keys[opened.slot] = ramp.key_of(opened.name)
        if self.announce:
            say(taken=batch.id)
        table = ramp.expected(batch.framed, batch.rows, self.keys, self.worker.slots)
        try:
            finish = self.device.launch(batch, table) if batch.rows else list
        except millrace.WorkerError as error:  # next() decides whether the worker can continue
            logging.warning("batch %d: %s", batch.id, error)
            self.lost += 1
            return
        if self.order == "early":
            self._done(batch, ramp.answers(table))
            return
        if self.pending:
            self._finish()
        self.pending = batch, finish
        if self.order == "plain":
            self._finish()

    def _finish(self):
        batch, finish = self.pending
        self.pending = None
        self._done(batch, finish())

    def _done(self, batch, answers):
        start = time.perf_counter_ns()
        batch.done(answers)
        self.gives.append((time.perf_counter_ns() - start) / 1e3)


def skip(why):
    say(skipped=why)
    sys.exit(SKIPPED)


def device_of(given):
    kind = SimulatedDevice
    if not given.simulated:
        kind = TorchDevice
        try:
            import torch
        except ImportError as error:
            skip(f"no PyTorch: {error}")
        if given.device != "host" and not torch.cuda.is_available():
            skip(f"PyTorch {torch.__version__} has no CUDA device")
    return kind(given.device, given.graph, given.order == "early", given.model_ms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--device", default="cuda:0", help="cuda:N or host")
    parser.add_argument("--simulated", action="store_true", help="the device is simulated; needs no PyTorch")
    parser.add_argument("--order", choices=("plain", "overlap", "early"), default="plain")
    parser.add_argument("--graph", action="store_true", help="the model is a CUDA graph")
    parser.add_argument("--model-ms", type=float, default=0, help="time of the device before it reads a batch")
    parser.add_argument("--announce", action="store_true", help="print a line for each batch")
    given = parser.parse_args()
    logging.basicConfig(format="worker: %(message)s")
    device = device_of(given)
    with millrace.Worker(pipeline=given.pipeline, device=given.device, credits=2 if given.order == "plain" else 3) as worker:
        device.prepare(worker)
        checking = Checking(worker, device, given.order, given.announce)

        def report(*_):
            checking.reporting = True
            worker.interrupt()

        signal.signal(signal.SIGUSR1, report)
        def leave(*_):
            checking.leaving = True
            worker.bye()

        signal.signal(signal.SIGTERM, leave)
        say(attached=worker.device)
        checking.run()
        checking.report(worker.attachments)


if __name__ == "__main__":
    main()
