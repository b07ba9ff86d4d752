# SPDX-License-Identifier: Apache-2.0
"""The streams of the comparison: noise, as WAV files of 16 bits and as arrays of f32. All have the same length, so that no
loader has padding."""

import wave
from pathlib import Path

import numpy as np

RATE, WIDTH, ROWS = 16000, 1600, 64  # a batch is 64 x 100 ms
STREAMS, SECONDS = 256, 30
FRAMES = SECONDS * RATE
STEPS = STREAMS // ROWS * FRAMES // WIDTH  # steps of an epoch


def make(folder):
    """Writes the streams, if they do not exist."""
    done = folder / "complete"
    if done.exists():
        return
    (folder / "s16").mkdir(parents=True, exist_ok=True)
    (folder / "f32").mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    for stream in range(STREAMS):
        samples = random.integers(-20000, 20000, FRAMES, np.int16)
        with wave.open(str(folder / f"s16/{stream:03}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, FRAMES, "NONE", ""))
            file.writeframes(samples.tobytes())
        np.save(folder / f"f32/{stream:03}.npy", samples / np.float32(32768))
    done.touch()


def paths(folder, kind):
    return sorted((folder / kind[:3]).glob("[0-9]*"))


def mapped(folder, kind):
    """The streams as arrays in mapped memory."""
    if kind == "f32":
        return [np.load(path, mmap_mode="r") for path in paths(folder, kind)]
    return [np.memmap(path, np.int16, "r", offset=path.stat().st_size - 2 * FRAMES) for path in paths(folder, kind)]


def whole(folder, kind):
    """All streams one after the other in one array in memory, for loaders that index into one array."""
    return np.concatenate(mapped(folder, kind))


def order(seed=1):
    """An epoch: the stream in each slot, and its frame, for each step: [STEPS, ROWS] each. A slot takes its streams one after
    the other."""
    chunks = FRAMES // WIDTH
    slots = np.random.default_rng(seed).permutation(STREAMS).reshape(-1, ROWS)
    return np.repeat(slots, chunks, axis=0), np.tile(np.arange(chunks) * WIDTH, len(slots))[:, None].repeat(ROWS, axis=1)


def touch(folder, kind):
    """Reads all files, so that they are in the page cache."""
    for path in map(Path, paths(folder, kind)):
        path.read_bytes()
