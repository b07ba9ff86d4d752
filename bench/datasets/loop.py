#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of a Dataset on two cores: a second filling thread, DataLoaders with processes, a model of 10 ms per step, and batches
of `millrace train-serve`. Those that are compared take turns.

  bench/datasets/loop.py PROGRAM [ROUNDS]      PROGRAM: millrace; throughput.py has made the corpus before
"""
import contextlib
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import corpus
import torch
from throughput import FOLDER

import millrace
import millrace.torch

TURN, STEP = 4000, 0.010  # batches of a turn; seconds
WAVS = FOLDER / "corpus" / "s16"
KEYS = {"chunk": {"size": corpus.WIDTH}, "dtype": "f32", "slots": corpus.ROWS, "seed": 1}


def batches(data):
    while True:
        yield from data


def compare(rounds, loops, turn=TURN):
    """Batches per second of each loop, and those divided by the first one's: medians."""
    rates = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            begin = time.perf_counter()
            for _ in itertools.islice(loop, turn):
                pass
            rates[name].append(turn / (time.perf_counter() - begin))
    first, *_ = rates.values()
    for name, own in rates.items():
        ratio = statistics.median(mine / other for mine, other in zip(own, first))
        print(f"| {name} | {statistics.median(own):.0f} batches/s | {ratio:.2f} |")


class SentAsTensors(millrace.torch.IterableDataset):
    """PyTorch itself sends the tensors of a batch between processes."""

    def __iter__(self):
        return map(dict, super().__iter__())


def loaders():
    """Batches of 16 rows from two processes, and from none."""
    keys = {**KEYS, "slots": 16}
    sent = torch.utils.data.DataLoader(SentAsTensors(str(WAVS), **keys), batch_size=None, num_workers=2)
    return {"a DataLoader, which sends each tensor": batches(sent),
            "`DataLoader(IterableDataset(…))`": batches(torch.utils.data.DataLoader(
                millrace.torch.IterableDataset(str(WAVS), **keys), batch_size=None, num_workers=2)),
            "`millrace.torch.loader`": batches(millrace.torch.loader(millrace.Dataset(str(WAVS), **keys), 2)),
            "no DataLoader": map(millrace.torch.tensors, batches(millrace.Dataset(str(WAVS), **keys)))}


def wait_of_a_model(seconds):
    """The fraction of the time that a loop waits whose model keeps one core busy."""
    data = millrace.Dataset(str(WAVS), **KEYS)
    end = time.perf_counter() + seconds
    for _ in batches(data):
        if (now := time.perf_counter()) > end:
            return data.stats.waited
        while time.perf_counter() < now + STEP:
            pass


@contextlib.contextmanager
def served(program, where):
    """The batches of a server of the same plan. `where`: "workers" or "workers_remote"."""
    with tempfile.TemporaryDirectory() as folder:
        server, listening = serve(program, Path(folder))
        try:
            with millrace.Dataset(listening[where]) as data:
                yield batches(data)
        finally:
            server.terminate()
            server.wait()


def serve(program, folder):
    """Starts the server. Returns its process and its addresses."""
    config = folder / "train.toml"
    config.write_text(f'[listen]\nworkers = "unix:{folder}/train.sock"\nworkers_remote = "tcp://127.0.0.1:0"\nadmin = "127.0.0.1:0"\n'
                      f'[plan]\nstreams = "{WAVS}"\nchunk = {{ size = {corpus.WIDTH} }}\ndtype = "f32"\nslots = {corpus.ROWS}\nseed = 1\n')
    server = subprocess.Popen([program, "train-serve", config], stderr=subprocess.PIPE, text=True)
    line = next((line for line in server.stderr if "event=listening" in line), None)
    if line is None:
        sys.exit(f"the server ended with {server.wait()}")
    return server, dict(part.split("=", 1) for part in line.split() if "=" in part)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    print("| loop | median | divided by the first |\n|---|---|---|")
    compare(rounds, {name: batches(millrace.Dataset(str(WAVS), threads=threads, **KEYS))
                     for threads, name in ((1, "one filling thread"), (2, "two filling threads"))})
    compare(rounds, loaders(), 1000)
    with served(program, "workers") as local, served(program, "workers_remote") as remote:
        compare(rounds, {"in the process": batches(millrace.Dataset(str(WAVS), **KEYS)),
                         "from a server, in shared memory": local, "from a server, over TCP": remote})
    print(f"\nwaits for data beside a model of {1000 * STEP:.0f} ms: {100 * wait_of_a_model(20):.2f} % of the time")


if __name__ == "__main__":
    main()
