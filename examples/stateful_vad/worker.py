#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves the trained model: answers each chunk of all streams with the probabilities of speech in its parts of 32 ms."""

import argparse

import torch
from model import FRAME, STATES, VoiceActivity

import millrace


def serve(worker: millrace.Worker, model: VoiceActivity) -> None:
    """Answers batches until the worker has left."""
    state = torch.zeros(worker.slots + 1, STATES)  # a line per slot, and one for padding rows

    def answer(batch: millrace.Batch) -> list[list[float]] | None:
        if not batch.rows:
            return None
        slot = torch.from_dlpack(batch.slot).long()
        reset = torch.from_dlpack(batch.flags).bitwise_and(int(millrace.Flag.RESET)).bool()
        before = state[slot].masked_fill(reset[:, None], 0)
        logits, state[slot] = model(torch.from_dlpack(batch.data)[:, :, 0], before)
        answers = torch.sigmoid(logits).tolist()
        return [row[: -(-int(size) // FRAME)] for row, size in zip(answers, batch.size)]

    with torch.no_grad():
        worker.run(answer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", help="the trained model (train.py)")
    options.add_argument("--url", help="unix:PATH or tcp://HOST:PORT of the service (default: on this machine)")
    options.add_argument("--pipeline", default="vad", help="pipeline to work for (default: vad)")
    chosen = options.parse_args()
    model = VoiceActivity()
    model.load_state_dict(torch.load(chosen.model)["model"])
    torch.set_num_threads(1)
    with millrace.Worker(chosen.url, pipeline=chosen.pipeline) as worker:
        if (worker.width_buckets, worker.channels, worker.rate) != ((3 * FRAME,), 1, 16000):
            options.error(f"pipeline {chosen.pipeline} is not for this model: configure it as in examples/stateful_vad/millrace.toml")
        serve(worker, model)


if __name__ == "__main__":
    main()
