#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the CPU time per batch of millrace-onnx-worker with that of a worker that is written for the
model, for Silero VAD, 500 streams and batches of 32 rows. They take turns batch by batch, on the same batches.

  python bench/onnx_worker.py     # needs the packages millrace[onnx] and silero-vad
"""
import importlib.metadata
import statistics
import time
import types
from pathlib import Path

import numpy as np

from millrace.onnx_worker.answers import shown_as
from millrace.onnx_worker.configuration import read
from millrace.onnx_worker.model import Model, session_of

SLOTS, ROWS, WIDTH = 500, 32, 576
BATCHES, ROUNDS = 500, 5
MODEL = importlib.metadata.distribution("silero-vad").locate_file("silero_vad/data/silero_vad.onnx")
CONFIGURATION = Path(__file__).parents[1] / "examples" / "silero_vad" / "model.toml"


def configured(session):
    model = Model(session, read(CONFIGURATION))
    model.allocate(types.SimpleNamespace(slots=SLOTS, chunk={"left": 64, "right": 0}))
    shown = shown_as(model.signature.answer, SLOTS)
    return lambda batch: shown(batch, model(batch))[0]


def written(session):
    state, rate = np.zeros((2, SLOTS + 1, 128), np.float32), np.array(16000)

    def answer(batch):
        state[:, batch.slot[batch.reset]] = 0
        inputs = {"input": batch.data[:, :, 0], "state": state[:, batch.slot], "sr": rate}
        probability, state[:, batch.slot] = session.run(["output", "stateN"], inputs)
        return probability[:, 0]

    return answer


def batches():
    random = np.random.default_rng(1)
    size, none = np.full(ROWS, 512, np.int32), np.zeros(ROWS, np.int32)
    for _ in range(BATCHES):
        yield types.SimpleNamespace(
            data=random.standard_normal((ROWS, WIDTH, 1), np.float32) / 10, slot=random.permutation(SLOTS)[:ROWS].astype(np.int32),
            reset=random.random(ROWS) < 0.01, left=none + 64, size=size, right=none, rows=ROWS, width=WIDTH)


def main():
    session = session_of(MODEL, 1)
    ratios, ours, control = [], [], []
    for _ in range(ROUNDS):
        answers, times = (configured(session), written(session)), [0, 0]
        for number, batch in enumerate(batches()):
            results = [None, None]
            for i in (0, 1) if number % 2 else (1, 0):
                begin = time.process_time_ns()
                results[i] = answers[i](batch)
                times[i] += time.process_time_ns() - begin
            np.testing.assert_array_equal(*results)
        ours.append(times[0] / BATCHES / 1000)
        control.append(times[1] / BATCHES / 1000)
        ratios.append(times[1] / times[0])
    print(f"configured {statistics.median(ours):.0f} µs per batch, written {statistics.median(control):.0f} µs, "
          f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}); at least 0.91")


if __name__ == "__main__":
    main()
