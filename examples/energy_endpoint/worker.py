#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends the segments of streams by their energy: after speech, six quiet rows end a segment. Answers each row with whether
it is loud."""

import argparse

import numpy as np

import millrace

LOUD = 1e-4  # mean square of samples from -1 to 1: -40 dB of full scale
QUIET_ROWS = 6  # with rows of 100 ms: 0.6 s
BEGINS = millrace.Flag.SEGMENT | millrace.Flag.RESET


def serve(worker: millrace.Worker) -> None:
    """Answers batches until the worker has left."""
    quiet = np.zeros(worker.slots + 1, int)  # per slot: quiet rows since the last loud row; -1: no loud row yet

    def answer(batch: millrace.Batch) -> None:
        loud = np.square(batch.data).sum(axis=(1, 2)) > LOUD * batch.size
        rows = np.where(batch.flags & BEGINS, -1, quiet[batch.slot])
        rows = np.where(loud, 0, np.where(rows < 0, -1, rows + 1))
        quiet[batch.slot] = rows
        batch.done(loud, marks=[False] * len(batch.marks), endpoint=rows == QUIET_ROWS)

    worker.run(answer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", help="unix:PATH or tcp://HOST:PORT of the service (default: on this machine)")
    options.add_argument("--pipeline", default="speech", help="pipeline to work for (default: speech)")
    chosen = options.parse_args()
    with millrace.Worker(chosen.url, pipeline=chosen.pipeline) as worker:
        serve(worker)


if __name__ == "__main__":
    main()
