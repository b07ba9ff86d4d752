#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""English speech recognition with Moonshine Tiny. Answers the rows of a pipeline with transcripts: about once a second the
text of the segment so far, and the final text at its end."""

import argparse
import signal
import sys
from typing import Any

import endpoints
import numpy as np
from model import RATE, Model
from recogniser import LONGEST, Recogniser

import millrace

MODEL_LIMIT = 30 * RATE  # samples of a segment


def corrections(worker: millrace.Worker, silero: bool = False) -> list[str]:
    """Returns the lines that the pipeline needs for this model, without those that it has: mono audio, with each frame in one
    row, and in rows that are not too long. ``silero``: rows have the windows of Silero VAD."""
    if silero:
        size, fits = "1536, left = 64", _has_windows(worker.chunk)
    else:
        size, fits = '"100ms"', _each_frame_once(worker) and LONGEST + worker.width <= MODEL_LIMIT
    lines = {
        "rate = 16000": worker.rate == RATE,
        "channels = 1": worker.channels == 1,
        'dtype = "f32"': worker.dtype == np.float32,
        f"chunk = {{ size = {size} }}": fits,
    }
    return [line for line, there in lines.items() if not there]


def _has_windows(chunk: dict[str, Any]) -> bool:
    return endpoints.CHUNK.items() <= (chunk | {"step": chunk["step"] or chunk["size"]}).items()  # 0: as long as the body


def _each_frame_once(worker: millrace.Worker) -> bool:
    frames = 4 * worker.width + 1
    rows = millrace.chunks(worker.chunk, [("frames", frames), ("end", 0)])
    return sum(size for _, _, _, size, *_ in rows) == frames and not any(left or right for _, _, left, _, right, *_ in rows)


def serve(worker: millrace.Worker, model: Model, every: float, voice: endpoints.Voice | None = None) -> None:
    """Answers batches until the worker has left. ``voice``: finds the ends of segments; None: the service does."""
    recogniser = Recogniser(model.transcribe, worker.slots, worker.width, every)
    ends = endpoints.Endpoints(voice, worker.slots) if voice else None
    context = endpoints.CONTEXT if ends else 0

    def answer(batch: millrace.Batch) -> None:
        answers, marks = recogniser.take(batch.framed, batch.data[:, context:, 0], batch.marks)
        batch.done(answers, marks, endpoint=ends.of(batch) if ends else None)

    worker.run(answer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", help="unix:PATH or tcp://HOST:PORT of the service (default: on this machine)")
    options.add_argument("--pipeline", default="default", help="pipeline to work for (default: default)")
    options.add_argument("--threads", type=int, default=1, help="threads of the model (default: 1)")
    options.add_argument("--every", type=float, default=1.0, help="seconds after which a segment is decoded again (default: 1)")
    options.add_argument("--silero", action="store_true", help="Silero VAD ends the segments (silero.toml)")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # also as the first process of a container
    try:
        model = Model(chosen.threads)
        voice = endpoints.Voice(chosen.threads) if chosen.silero else None
    except RuntimeError as error:
        sys.exit(f"moonshine: {error}")
    with millrace.Worker(chosen.url, pipeline=chosen.pipeline) as worker:
        if lines := corrections(worker, chosen.silero):
            sys.exit(f"moonshine: pipeline {chosen.pipeline} does not fit the model; it needs: {', '.join(lines)}")
        print(f"attached to {chosen.pipeline}: {worker.slots} slots", flush=True)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # run() handles it: the streams move to other workers first
        serve(worker, model, chosen.every, voice)


if __name__ == "__main__":
    main()
