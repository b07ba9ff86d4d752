#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the share of a step that the encoder's caches and the answers take, in CPU time of one thread: 32 rows of full chunks,
and one token per frame. The predictor's states are not counted. The model has 17 layers of 512 and random weights; it is a fifth
of the 0.6 B one."""

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import caches
import torch
from features import Features
from model import Streams
from recogniser import Recogniser
from transformers import (
    NemotronAsrStreamingConfig,
    NemotronAsrStreamingEncoderConfig,
    NemotronAsrStreamingFeatureExtractor,
    NemotronAsrStreamingForRNNT,
)

from millrace import Flag

ROWS, STEPS = 32, 5


class Timed:
    """A function that adds up its time, in seconds."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.spent = function, 0.0

    def __call__(self, *arguments: Any) -> Any:
        begin = time.process_time()
        try:
            return self._function(*arguments)
        finally:
            self.spent += time.process_time() - begin


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    encoder = NemotronAsrStreamingEncoderConfig(hidden_size=512, num_hidden_layers=17, intermediate_size=2048)
    model = NemotronAsrStreamingForRNNT(NemotronAsrStreamingConfig(encoder_config=encoder, max_symbols_per_step=1)).eval()
    extractor = NemotronAsrStreamingFeatureExtractor()
    words = SimpleNamespace(decode=lambda tokens, **_: " ".join(map(str, tokens)))
    extend = Timed(caches.Rows.extend)
    caches.Rows.extend = lambda *arguments: extend(*arguments)  # type: ignore[method-assign]
    for lookahead in (0, 1, 6, 13):
        features = Features(extractor, lookahead)
        streams = Streams(copy.deepcopy(model), features, ROWS)
        recogniser = Recogniser(streams, words, ROWS)
        streams.step = step = Timed(streams.step)  # type: ignore[method-assign]
        silence, rows = features.silence(ROWS)
        recogniser.take([row._replace(flags=Flag.RESET) for row in rows], silence[:, :, None], [])
        steps, shares, outside = [], [], []
        for _ in range(STEPS):
            audio = torch.rand_like(silence)[:, :, None] - 0.5
            step.spent = extend.spent = 0.0
            begin = time.process_time()
            recogniser.take(rows, audio, [])
            whole = time.process_time() - begin
            steps.append(whole)
            shares.append(extend.spent / whole)
            outside.append((whole - step.spent) / whole)
        print(
            f"{80 * (lookahead + 1)} ms: a step takes {1000 * statistics.median(steps):.0f} ms; of it, caches "
            f"{statistics.median(shares):.1%}, answers {statistics.median(outside):.2%}"
        )


if __name__ == "__main__":
    main()
