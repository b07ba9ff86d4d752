#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data sets with Python functions, in this process and in others, side by side.

  bench/datasets/python_work.py [--rounds 5]

Needs NumPy and millrace. The start of the processes is not counted.
"""
import argparse
import multiprocessing
import statistics
import time

import numpy as np

import millrace

STREAMS, SLOTS, RATE = 160, 16, 16000


class Reader:
    """Streams of about a second, of which each read takes some seconds."""

    rate = RATE

    def __init__(self, seconds=0.0):
        self.seconds = seconds
        self.frames_of = np.random.default_rng(1).integers(RATE // 2, RATE * 3 // 2, STREAMS)
        self.array = np.random.default_rng(2).integers(-1000, 1000, 2 * RATE).astype(np.int16)

    def __len__(self):
        return STREAMS

    def frames(self, i):
        return int(self.frames_of[i])

    def name(self, i):
        return str(i)

    def read(self, i, begin, n):
        time.sleep(self.seconds)
        return self.array[begin:begin + n]


class Work:
    """An augmentation in pure Python that needs the processor for about 20 ms, and counts its calls."""

    def __init__(self, loops):
        self.loops, self.calls = loops, multiprocessing.Value("l", 0)

    def __call__(self, stream, generator):
        with self.calls:
            self.calls.value += 1
        total = 0
        for i in range(self.loops):
            total += i * i
        stream.frames[0] = total % 1000
        return stream


def data_of(streams, **options):
    return millrace.Dataset(streams, chunk={"size": "100ms"}, dtype="f32", slots=SLOTS, seed=1, **options)


def epoch(data):
    """The seconds of an epoch. Afterwards nothing is opened ahead any more."""
    begin = time.perf_counter()
    for _ in data:
        pass
    taken = time.perf_counter() - begin
    data.seek(0)
    return taken


def side_by_side(name, unit, rounds, contestants, measure=epoch):
    """Prints the median of each contestant, and of the ratio of the first one to it. They take turns."""
    taken = {label: [] for label in contestants}
    for data in contestants.values():
        measure(data)  # opens files, starts processes
    for _ in range(rounds):
        for label, data in contestants.items():
            taken[label].append(measure(data))
    first = next(iter(taken.values()))
    for label, times in taken.items():
        ratios = [mine / its for mine, its in zip(first, times)]
        print(f"| {name}: {label} | {statistics.median(times):.4g} {unit} | {statistics.median(ratios):.2f} |", flush=True)
    for data in contestants.values():
        data.close()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5, help="turns of each (default: 5)")
    rounds = options.parse_args().rounds
    print("| work | median | first divided by it |\n|---|---|---|")
    side_by_side("a reader that sleeps 10 ms per stream", "s", rounds,
                 {f"{k} processes": data_of(Reader(0.01), threads=k or 1, processes=k) for k in (0, 2, 4)})
    loops, began = 100_000, time.perf_counter()
    Work(loops)(millrace.WholeStream(np.zeros(1), {}, {}, "", 0, 0, RATE), None)
    loops = int(loops * 0.02 / (time.perf_counter() - began))
    works = {k: Work(loops) for k in (0, 2)}
    side_by_side("augment in pure Python, 20 ms per stream", "s", rounds,
                 {f"{k} processes": data_of(Reader(), augment=work, processes=k) for k, work in works.items()})
    for k, work in works.items():
        print(f"| calls per stream and epoch with {k} processes | {work.calls.value / STREAMS / (rounds + 1):.2f} | |")
    array = np.zeros(RATE, np.int16)
    side_by_side("arrays, without Python work", "s", rounds,
                 {"1 thread": data_of([array] * 4000, threads=1), "2 processes": data_of([array] * 4000, processes=2)})
    waited = data_of(Reader(), augment=lambda stream, generator: time.sleep(0.005) or stream, processes=2)
    for _ in range(rounds):
        for _ in waited:
            time.sleep(0.01)
    print(f"| waits beside a model of 10 ms, augment of 5 ms in 2 processes | {100 * waited.stats.waited:.2f} % | |")
    waited.close()


if __name__ == "__main__":
    main()
