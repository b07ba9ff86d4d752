#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding of FLAC beside libsndfile alone, on one core; and catalogs of many files: their index, opening, first batch and memory.

  bench/datasets/files.py [NUMBER-OF-FILES…]      default: 100000 1000000. Needs soundfile; throughput.py has made the corpus before
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

import loop
import servers
import soundfile

import millrace

ROUNDS = 9

# For a process of its own: its memory counts.
OPENING = """
import sys, time, millrace
begin = time.perf_counter()
data = millrace.Dataset(sys.argv[1], chunk={"size": "100ms"}, slots=64, seed=1, progress=False)
opened = time.perf_counter()
next(iter(data))
taken = time.perf_counter()
memory = next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"opened in {opened - begin:.2f} s, first batch after {taken - opened:.2f} s, {memory} MB")
"""


def seconds_of(work):
    """Seconds of CPU of this process."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def flac():
    """The median of the ratio of libsndfile's time to that of a Dataset, for the same files."""
    servers.encode()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    data = millrace.Dataset(str(servers.FLAC), chunk=loop.KEYS["chunk"], slots=64, seed=1)
    files = [str(path) for path in sorted(servers.FLAC.glob("*.flac"))]

    def alone():
        for file in files:
            soundfile.read(file, dtype="int16")

    def ours():
        for _ in data:
            pass

    ours()
    pairs = [(seconds_of(alone), seconds_of(ours)) for _ in range(ROUNDS)]
    one, other = (statistics.median(column) for column in zip(*pairs))
    print(f"FLAC, s of CPU per epoch: libsndfile alone {one:.2f}, a Dataset {other:.2f};"
          f" ratio {statistics.median(mine / theirs for mine, theirs in pairs):.2f}")


def make(folder, number):
    """A folder of links to files of 1 to 7 s, 50 000 to each."""
    for i in range(number):
        first = folder / f"{i // 50_000}.wav"
        if i % 50_000 == 0:
            with wave.open(str(first), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes(os.urandom(2 * (16000 + 100 * (i // 1000))))
        if i % 1000 == 0:
            (folder / "all" / f"{i // 1000:04}").mkdir(parents=True)
        os.link(first, folder / "all" / f"{i // 1000:04}" / f"{i:07}.wav")


def many(number):
    with tempfile.TemporaryDirectory(dir=loop.FOLDER) as name:
        folder = Path(name)
        make(folder, number)
        for what in "with the index to make", "again":
            found = subprocess.run([sys.executable, "-c", OPENING, folder / "all"], check=True, stdout=subprocess.PIPE, text=True)
            print(f"{number} files, {what}: {found.stdout}", end="", flush=True)


if __name__ == "__main__":
    flac()
    for given in sys.argv[1:] or ("100000", "1000000"):
        many(int(given))
