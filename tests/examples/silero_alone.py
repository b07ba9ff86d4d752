# SPDX-License-Identifier: Apache-2.0
"""The Silero VAD model alone with one stream: no service, no batches, and nothing of Millrace except the rows of the
contract."""
import importlib.metadata
import os
import sys
import wave

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "conformance"))
import chunk_reference as contract  # noqa: E402

MODEL = str(importlib.metadata.distribution("silero-vad").locate_file("silero_vad/data/silero_vad.onnx"))
SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-{}.wav"
UTTERANCES = ("0870", "0880", "0890", "0920", "0930")


def stream_rows(events):
    """The rows of preset silero-16k."""
    return contract.stream_rows(contract.Spec(size=512, left=64), events)


def utterance(number):
    with wave.open(SPEECH.format(number)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


class Alone:
    """Works like OnnxWrapper of silero_vad/utils_vad.py, which keeps the state and 64 samples from one chunk to the next, and
    pads with zeros. OnnxWrapper accepts no short chunk in mid-stream; here, the context after one is the last 64 samples."""

    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
        self.reset()

    def reset(self):
        self.forget_state()
        self.context = np.zeros(64, np.float32)

    def forget_state(self):
        self.state = np.zeros((2, 1, 128), np.float32)

    def probability_of(self, chunk):
        """The probability of speech in at most 512 samples of s16."""
        chunk = chunk.astype(np.float32) / 32768
        window = np.concatenate([self.context, chunk, np.zeros(512 - len(chunk), np.float32)])
        inputs = {"input": window[np.newaxis], "state": self.state, "sr": np.array(16000)}
        probability, self.state = self.session.run(None, inputs)
        self.context = np.concatenate([self.context, chunk])[-64:]
        return float(probability[0, 0])

    def answers(self, samples, rows, lost=()):
        """The answers to the rows of a stream that have frames, by seq. samples[p] is the sample at position p. Before the rows
        in `lost`, the state was lost with a worker, but not the samples."""
        answers = {}
        for seq, begin, _, size, _, flags, _ in rows:
            if flags & contract.RESET:
                self.reset()
            elif seq in lost:
                self.forget_state()
            if size:
                answers[seq] = self.probability_of(samples[begin:begin + size])
        return answers
