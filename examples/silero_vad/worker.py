#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Voice activity with the Silero VAD model. Answers each chunk (32 ms) of all streams of a pipeline with
the probability that it contains speech."""

import argparse
import importlib.metadata
import signal

import numpy as np
import onnxruntime

import millrace

CHUNK = {"size": 512, "left": 64, "align": "body", "pad": "zero"}  # preset "silero-16k"


class Model:
    """The model, for many streams at once. It keeps no state: the state of a stream, two vectors of 128 numbers, is an
    argument and a result."""

    def __init__(self, threads: int) -> None:
        wheel = importlib.metadata.distribution("silero-vad")
        path = wheel.locate_file("silero_vad/data/silero_vad.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._rate = np.array(16000)

    def __call__(self, windows: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Takes samples [rows, 576] and states [2, rows, 128]. Returns probabilities [rows] and the new states."""
        inputs = {"input": windows, "state": state, "sr": self._rate}
        probability, state = self._session.run(["output", "stateN"], inputs)
        return probability[:, 0], state


def fits(worker: millrace.Worker) -> bool:
    """Returns whether the batches of the pipeline have the shape that the model needs."""
    shape = worker.width_buckets, worker.channels, worker.dtype, worker.rate
    return shape == ((64 + 512,), 1, np.float32, 16000) and CHUNK.items() <= worker.chunk.items()


def serve(worker: millrace.Worker, model: Model) -> None:
    """Answers batches until the worker has left."""
    state = np.zeros((2, worker.slots + 1, 128), np.float32)  # one per slot, and one for padding rows

    def answer(batch: millrace.Batch) -> np.ndarray | None:
        if not batch.rows:
            return None
        state[:, batch.slot[batch.reset]] = 0
        probability, state[:, batch.slot] = model(batch.data[:, :, 0], state[:, batch.slot])
        return probability

    worker.run(answer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", help="unix:PATH or tcp://HOST:PORT of the service (default: on this machine)")
    options.add_argument("--pipeline", default="vad", help="pipeline to work for (default: vad)")
    options.add_argument("--threads", type=int, default=1, help="threads of the model (default: 1)")
    chosen = options.parse_args()
    model = Model(chosen.threads)
    with millrace.Worker(chosen.url, pipeline=chosen.pipeline) as worker:
        if not fits(worker):
            options.error(
                f"pipeline {chosen.pipeline} is not for this model: configure it as in examples/silero_vad/millrace.toml"
            )
        signal.signal(signal.SIGTERM, lambda *_: worker.bye())  # its streams move to other workers first
        serve(worker, model)


if __name__ == "__main__":
    main()
