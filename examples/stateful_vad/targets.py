#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the targets of a folder of WAV files: the probability of speech in each 32 ms, from the Silero VAD model. The targets
of a/b.wav are in a/b.npy of the other folder."""

import argparse
import importlib.metadata
import wave
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

FRAME, CONTEXT = 512, 64  # samples of one answer, and the samples before them that the model needs


def probabilities(samples: NDArray[np.int16]) -> NDArray[np.float32]:
    """Returns the answers of the model to one utterance. The last 32 ms are padded with zeros, as in the model's own code."""
    wheel = importlib.metadata.distribution("silero-vad")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(wheel.locate_file("silero_vad/data/silero_vad.onnx")), options, providers=["CPUExecutionProvider"]
    )
    count = -(-len(samples) // FRAME)
    padded = np.zeros(CONTEXT + count * FRAME, np.float32)
    padded[CONTEXT : CONTEXT + len(samples)] = samples / np.float32(32768)
    state, answers = np.zeros((2, 1, 128), np.float32), np.zeros(count, np.float32)
    for number in range(count):
        window = padded[None, number * FRAME :][:, : CONTEXT + FRAME]
        answer, state = session.run(["output", "stateN"], {"input": window, "state": state, "sr": np.array(16000)})
        answers[number] = answer[0, 0]
    return answers


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("speech", type=Path, help="folder of WAV files: 16 kHz, mono, 16 bits")
    options.add_argument("targets", type=Path, help="folder for the targets")
    chosen = options.parse_args()
    for path in sorted(chosen.speech.rglob("*.wav")):
        with wave.open(str(path)) as file:
            if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (16000, 1, 2):
                options.error(f"{path}: must be 16 kHz, mono, 16 bits")
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        target = (chosen.targets / path.relative_to(chosen.speech)).with_suffix(".npy")
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, probabilities(samples))


if __name__ == "__main__":
    main()
