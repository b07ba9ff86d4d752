# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's cache-aware FastConformer transducer from the library transformers, for many streams in different states at once.

Two things differ from the library's own streaming: the rows of a batch may be at any place of their streams, and each has its own
number of frames. The library's modules compute everything else. Some of their interfaces are private, so the version of the
library is pinned.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import torch
from caches import Attention, Caches, Convolution, Rows, RunBegin
from features import FACTOR, FFT, HOP, RATE, Features, Mel
from torch import nn
from transformers import NemotronAsrStreamingForRNNT, NemotronAsrStreamingProcessor
from transformers.utils import logging

from millrace import Row


def load(folder: str, device: str) -> tuple[NemotronAsrStreamingForRNNT, NemotronAsrStreamingProcessor]:
    """Reads the model and its processor from a folder, as ``save_pretrained`` writes them. Downloads nothing.

    Raises RuntimeError, with one line, if files are missing or damaged, if the device is missing or too small, or if the model
    differs from the ones that this program is for.
    """
    if not (Path(folder) / "config.json").is_file():
        raise RuntimeError(f"{folder} is not the folder of a model: config.json is missing")
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        processor = NemotronAsrStreamingProcessor.from_pretrained(folder, local_files_only=True)
        model, found = NemotronAsrStreamingForRNNT.from_pretrained(
            folder,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are in `found`
            dtype=torch.float32,
        )
        model.eval().to(device)
        extractor, encoder = processor.feature_extractor, model.config.encoder_config
        extractor.mel_filters = extractor.mel_filters.to(device)  # else each step copies them there
    except Exception as error:  # several libraries raise their own
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise RuntimeError(f"cannot load the model in {folder}: {reason}") from error
    absent = sorted((*found["missing_keys"], *(name for name, *_ in found["mismatched_keys"])))
    if absent:
        raise RuntimeError(f"the weights in {folder} are not complete: {absent[0]} is missing or has another shape")
    form = extractor.sampling_rate, extractor.hop_length, extractor.n_fft, encoder.subsampling_factor
    convolution = encoder.subsampling_conv_kernel_size, encoder.subsampling_conv_stride
    if (*form, *convolution) != (RATE, HOP, FFT, FACTOR, 3, 2) or extractor.feature_size != encoder.num_mel_bins:
        raise RuntimeError(f"the model in {folder} has other mel frames, or another subsampling, than this program is for")
    return model, processor


class Streams:
    """The model, and the state of a stream in each slot. Confined to one thread. It changes the model, whose own ``forward``
    does not work afterwards."""

    def __init__(self, model: NemotronAsrStreamingForRNNT, features: Features, slots: int) -> None:
        self._model, self._features, self._width = model, features, features.lookahead + 1
        left = model.config.encoder_config.sliding_window - 1
        self._kept = left // self._width * self._width  # whole chunks, as the model was trained
        self._caches = Caches(model.config, slots, self._kept, model.device)
        self._positions = self._projected_positions()
        self._first = torch.tensor([model.config.blank_token_id], device=model.device)  # the predictor's first input

    @torch.inference_mode()
    def clear(self, slots: Sequence[int]) -> None:
        """Begins new streams in these slots."""
        if slots:
            places = torch.tensor(slots, device=self._model.device)
            self._caches.clear(places)
            self._predict(places, self._first.expand(len(places)))

    def warm_up(self, rows: int) -> None:
        """Takes a step with this number of full rows, because the first step of a process takes longer. Their slots are
        those of new streams afterwards."""
        audio, full = self._features.silence(rows)
        self.clear(range(rows))
        self.step(audio.to(self._model.device), full)
        self.clear(range(rows))

    @torch.inference_mode()
    def step(self, audio: torch.Tensor, rows: Sequence[Row]) -> list[list[int]]:
        """Returns the new tokens of each row. ``audio``: samples from -1 to 1 of these rows [rows, width], which the step changes.
        The body of each row has at least one mel frame."""
        mel = self._features(audio, rows)
        taken = Rows([row.slot for row in rows], mel.encoded, self._width, audio.device)
        return self._decode(self._encode(mel, taken), taken)

    @torch.inference_mode()
    def _projected_positions(self) -> list[torch.Tensor]:
        """Returns the relative positions as each layer projects them. They are the same in all steps. The library projects them
        again for each row, which takes half of a step with one frame."""
        encoder = self._model.encoder
        frames = torch.zeros(1, self._width, encoder.config.hidden_size, device=self._model.device)
        positions = encoder.encode_positions(frames, cached_frames=self._kept)
        projected = [layer.self_attn.relative_k_proj(positions) for layer in encoder.layers]
        for layer in encoder.layers:
            layer.self_attn.relative_k_proj = nn.Identity()
        return projected

    def _encode(self, mel: Mel, rows: Rows) -> torch.Tensor:
        """Does what ``forward`` of the library's encoder does, with a mask for each row. Returns [rows, width, features]."""
        encoder = self._model.encoder
        attention, convolution = Attention(self._caches, rows), Convolution(self._caches, rows)
        hidden = encoder.subsampling(mel.frames, padding_cache=RunBegin(mel.missing)) * encoder.input_scale
        mask = attention.mask(self._width)
        for layer, positions in zip(encoder.layers, self._positions):
            hidden = layer(
                hidden,
                attention_mask=mask,
                position_embeddings=positions.expand(len(hidden), -1, -1),
                cache=attention,
                padding_cache=convolution,
            )
        attention.end()
        return self._model.encoder_projector(hidden)

    def _decode(self, encoded: torch.Tensor, rows: Rows) -> list[list[int]]:
        """Takes the likeliest token until it is blank, at each frame; at most ``max_symbols_per_step`` tokens, so that noise
        does not make it endless. Each row is at its own frame; a row that is after its last frame leaves."""
        tokens: list[list[int]] = [[] for _ in rows.slots]
        frame, at_frame = [0] * len(tokens), [0] * len(tokens)
        live, emitted, blank = list(range(len(tokens))), list[int](), self._model.config.blank_token_id
        while live or emitted:
            given, newest, asked, at = self._on_device(
                [rows.slots[i] for i in emitted],
                [tokens[i][-1] for i in emitted],
                [rows.slots[i] for i in live],
                [i * self._width + frame[i] for i in live],
            )
            self._predict(given, newest)
            best = self._joint(encoded.flatten(0, 1)[at], asked).argmax(-1).tolist()  # waits for the device
            emitted = [i for i, token in zip(live, best) if token != blank]
            for i, token in zip(live, best):
                if token != blank:
                    tokens[i].append(token)
                    at_frame[i] += 1
                if token == blank or at_frame[i] == self._model.config.max_symbols_per_step:
                    frame[i] += 1
                    at_frame[i] = 0
            live = [i for i in live if frame[i] < rows.frames[i]]
        return tokens

    def _on_device(self, *lists: list[int]) -> tuple[torch.Tensor, ...]:
        """Copies lists to the device, together."""
        numbers = torch.tensor(list(chain(*lists)), dtype=torch.long)
        return numbers.to(self._model.device, non_blocking=True).split([len(each) for each in lists])

    def _joint(self, encoded: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        return self._model.joint(encoder_hidden_states=encoded, decoder_hidden_states=self._caches.predicted[slots])

    def _predict(self, slots: torch.Tensor, tokens: torch.Tensor) -> None:
        """Gives a token to the predictor of each of these slots."""
        if not len(slots):
            return
        decoder, (hidden, cell) = self._model.decoder, self._caches.predictor
        output, (hidden[:, slots], cell[:, slots]) = decoder.lstm(
            decoder.embedding(tokens[:, None]), (hidden[:, slots], cell[:, slots])
        )
        self._caches.predicted[slots] = decoder.decoder_projector(output)[:, 0]
