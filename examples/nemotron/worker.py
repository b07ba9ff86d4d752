#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speech recognition with NVIDIA's streaming Nemotron model. Answers each row of a pipeline with the transcript of its segment
so far."""

import argparse
import sys

import numpy as np
import torch
from features import RATE, Features, chunk_rule
from model import Streams, load
from recogniser import Recogniser
from transformers import NemotronAsrStreamingProcessor

import millrace


def lookahead_of(worker: millrace.Worker, processor: NemotronAsrStreamingProcessor) -> int:
    """Returns the look-ahead of the pipeline's chunks, in encoder frames.

    Raises ValueError if the pipeline is not for this model.
    """
    supported = sorted(processor.supported_num_lookahead_tokens)
    if (worker.channels, worker.dtype, worker.rate, len(worker.width_buckets)) == (1, np.float32, RATE, 1):
        for lookahead in supported:
            if worker.chunk == chunk_rule(lookahead):
                return lookahead
    presets = [f"nemo-70-{lookahead}" for lookahead in supported]  # a middle one is the compromise
    raise ValueError(
        f'it needs: rate = {RATE}, dtype = "f32", chunk = {{ preset = "{presets[len(presets) // 2]}" }}, no width_buckets '
        f"(presets for this model: {', '.join(presets)})"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", required=True, help="folder of the model, with config.json and model.safetensors")
    options.add_argument("--url", help="unix:PATH or tcp://HOST:PORT of the service (default: on this machine)")
    options.add_argument("--pipeline", default="560ms", help="pipeline to work for (default: 560ms)")
    options.add_argument("--device", default="host", help="host, cuda or cuda:N (default: host)")
    options.add_argument("--threads", type=int, help="threads of the model on the host (default: one per core)")
    chosen = options.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.backends.cudnn.allow_tf32 = False  # a GPU's convolutions then compute in float32, as its products of matrices do
    try:
        model, processor = load(chosen.model, "cpu" if chosen.device == "host" else chosen.device)
    except RuntimeError as error:
        sys.exit(f"nemotron: {error}")
    with millrace.Worker(chosen.url, pipeline=chosen.pipeline, device=chosen.device) as worker:
        try:
            lookahead = lookahead_of(worker, processor)
        except ValueError as error:
            sys.exit(f"nemotron: pipeline {chosen.pipeline} is not for this model; {error}")
        streams = Streams(model, Features(processor.feature_extractor, lookahead), worker.slots)
        streams.warm_up(min(worker.rows, worker.slots))
        recogniser = Recogniser(streams, processor, worker.slots)
        print(f"attached to {chosen.pipeline}: {worker.slots} slots", flush=True)
        worker.run(lambda batch: batch.done(*recogniser.answer(batch)))


if __name__ == "__main__":
    main()
