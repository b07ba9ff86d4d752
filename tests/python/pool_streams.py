# SPDX-License-Identifier: Apache-2.0
"""Streams, companions and functions that processes call, in a module, so that they can be pickled."""
import os
import signal
import time

import numpy as np
from datasets import frames_of

LENGTHS = [10, 7, 21, 4, 13, 9]


class Streams:
    """Streams that are read by Python. ``note`` is called with each read; ``then`` may fail."""

    rate = 16000

    def __init__(self, note=None, then=None):
        self.note, self.then = note, then

    def __len__(self):
        return len(LENGTHS)

    def frames(self, i):
        return LENGTHS[i]

    def name(self, i):
        return f"stream {i}"

    def meta(self, i):
        return {"number": i}

    def read(self, i, begin, n):
        if self.note is not None and n > 1:  # not the sample that is read at the opening
            self.note(i)
        if self.then is not None and n > 1:
            self.then(i)
        return frames_of(i, LENGTHS[i])[begin:begin + n]


class Labels:
    """A companion: an entry of two values for each frame."""

    def entries(self, i):
        return LENGTHS[i]

    def read(self, i, begin, n):
        return np.stack([frames_of(i, LENGTHS[i])] * 2, 1)[begin:begin + n].astype(np.int64)


def change(stream, generator):
    """Changes frames and labels, at random, and with the meta."""
    by = generator.integers(1, 100) + 1000 * stream.meta["number"] + stream.epoch
    stream.frames = (stream.frames + by).astype(np.int16)
    stream.companions["labels"] = stream.companions["labels"] * 2
    return stream


class Shorter:
    """Takes away frames, at most 3."""

    def frames(self, n, generator):
        return n - int(generator.integers(0, 4))

    def __call__(self, stream, generator):
        n = self.frames(len(stream.frames), generator)
        stream.frames, stream.companions["labels"] = stream.frames[:n], stream.companions["labels"][:n]
        return stream


class Fails:
    """Fails with stream 2, in one of several ways."""

    def __init__(self, how):
        self.how = how

    def __call__(self, stream, generator):
        if stream.stream == 2:
            getattr(self, self.how)(stream)
        return stream

    def raises(self, stream):
        raise RuntimeError("no luck")

    def exits(self, stream):
        raise SystemExit(4)

    def ends(self, stream):
        os._exit(3)

    def is_killed(self, stream):
        os.kill(os.getpid(), signal.SIGKILL)

    def closes(self, stream):
        os.closerange(3, 1000)
        time.sleep(600)

    def hangs(self, stream):
        while True:
            time.sleep(1)

    def shortens(self, stream):
        stream.frames = stream.frames[:-1]

    def returns_more(self, stream):
        stream.frames = np.concatenate([stream.frames] * 100)

    def returns_floats(self, stream):
        stream.frames = stream.frames.astype(np.float32)

    def forks(self, stream):
        """Both processes return."""
        os.fork()


def louder(stream, generator):
    """Needs no companion."""
    stream.frames = (stream.frames * generator.uniform(0.3, 1)).astype(np.int16)
    return stream


class Halves:
    """Takes away about a half of the frames."""

    def frames(self, n, generator):
        return n // 2 + int(generator.integers(0, 100))

    def __call__(self, stream, generator):
        stream.frames = stream.frames[:self.frames(len(stream.frames), generator)]
        return stream


halves = Halves()


def fails_with_s03(stream, generator):
    if stream.name == "s03":
        raise RuntimeError("no luck")
    return stream


class FailsAtLength:
    """The number of frames of a stream is not known."""

    def frames(self, n, generator):
        if n == int(os.environ["FAILS_AT"]):
            raise KeyError("no such length")
        return n

    def __call__(self, stream, generator):
        return stream


fails_at_length = FailsAtLength()


def notes(stream, generator):
    """Writes a line for each call."""
    with open(os.environ["CALLED"], "a") as file:
        file.write(f"{stream.epoch} {stream.name}\n")
    return stream


def ends_with_s03(stream, generator):
    if stream.name == "s03":
        os._exit(3)
    return stream


def is_killed_with_s03(stream, generator):
    if stream.name == "s03":
        os.kill(os.getpid(), signal.SIGKILL)
    return stream


def hangs(stream, generator):
    with open(os.environ["CALLED"], "w"):
        time.sleep(600)
