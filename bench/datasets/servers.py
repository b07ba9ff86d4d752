#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two servers of batches beside one, over FLAC files, which are decoded, and WAV files, which are only copied. Three epochs by each of
them take turns: seconds, and seconds of CPU of the servers and of the trainer.

  bench/datasets/servers.py PROGRAM [ROUNDS]      PROGRAM: millrace. Needs soundfile; throughput.py has made the corpus before
"""
import contextlib
import itertools
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import corpus
import loop
import soundfile

import millrace

FLAC = loop.WAVS.parent / "flac"
FILES = 128


def encode():
    FLAC.mkdir(exist_ok=True)
    for path in corpus.paths(loop.WAVS.parent, "s16")[:FILES]:
        if not (FLAC / f"{path.stem}.flac").exists():
            samples, rate = soundfile.read(path, dtype="int16")
            soundfile.write(FLAC / f"{path.stem}.flac", samples // 16, rate)


def cpu(processes):
    """Seconds of the processes, and of this one."""
    ticks = [Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()[11:13] for process in processes]
    return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK"), sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def measure(program, streams, where, rounds):
    loop.WAVS = streams
    with contextlib.ExitStack() as stack:
        processes, addresses = [], []
        for _ in range(3):
            process, listening = loop.serve(program, Path(stack.enter_context(tempfile.TemporaryDirectory())))
            stack.callback(process.wait)
            stack.callback(process.terminate)
            processes.append(process)
            addresses.append(listening[where])
        figures = {"one server": [], "two servers": []}
        for _ in range(rounds):
            for name, urls in zip(figures, (addresses[:1], addresses[1:])):
                with millrace.Dataset(urls) as data:
                    next(iter(data))  # attaches
                    before, begin = cpu(processes), time.perf_counter()
                    for batch in itertools.chain(data, data, data):
                        batch.data.max()
                    seconds = time.perf_counter() - begin
                figures[name].append((seconds, *(after - at for at, after in zip(before, cpu(processes)))))
        for name, own in figures.items():
            ratio = statistics.median(first[0] / mine[0] for first, mine in zip(figures["one server"], own))
            print(f"| {streams.name}, {addresses[0].partition(':')[0]}: {name} | {' | '.join(f'{statistics.median(column):.2f}' for column in zip(*own))} | {ratio:.2f} |")


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    encode()
    print("| streams | s | CPU of servers, s | CPU of the trainer, s | one server / this |\n|---|---|---|---|---|")
    for streams, where in (FLAC, "workers"), (loop.WAVS, "workers"), (loop.WAVS, "workers_remote"):
        measure(program, streams, where, rounds)


if __name__ == "__main__":
    main()
