# SPDX-License-Identifier: Apache-2.0
"""A small Nemotron streaming model with random weights that writes many different tokens, and audio for it."""
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    NemotronAsrStreamingConfig,
    NemotronAsrStreamingEncoderConfig,
    NemotronAsrStreamingFeatureExtractor,
    NemotronAsrStreamingForRNNT,
    NemotronAsrStreamingProcessor,
    PreTrainedTokenizerFast,
)

PIECES = ["<unk>", *("▁" + letter for letter in "abcdefghijklmnopqrst"), *"aeiouklmnrst"]
BLANK = len(PIECES)


def random_model(hidden=32, layers=2, heads=4, channels=8, predictor=24, window=71):
    encoder = NemotronAsrStreamingEncoderConfig(
        hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden,
        subsampling_conv_channels=channels, sliding_window=window)
    model = NemotronAsrStreamingForRNNT(NemotronAsrStreamingConfig(
        vocab_size=BLANK + 1, blank_token_id=BLANK, decoder_hidden_size=predictor, max_symbols_per_step=4,
        encoder_config=encoder)).eval()
    random = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:  # layers that do not shrink their input, so that each sample counts
                weight.normal_(0, 1.3 * weight[0].numel() ** -0.5, generator=random)
        model.decoder.embedding.weight.mul_(10)  # the next token depends on the last one
        model.decoder.decoder_projector.weight.mul_(3)
        head = model.joint.head
        head.weight.sub_(head.weight.mean(1, keepdim=True))  # no token is always the likeliest
        head.bias[BLANK] = 2
    model.generation_config.decoder_start_token_id = BLANK
    return model


def processor():
    tokenizer = Tokenizer(models.Unigram([(piece, 0.0) for piece in PIECES], unk_id=0))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<unk>")
    fast.add_special_tokens({"additional_special_tokens": ["<blank>"]})
    return NemotronAsrStreamingProcessor(NemotronAsrStreamingFeatureExtractor(), fast)


def tones(samples, seed):
    """Noise and tones of 50 ms, as s16."""
    random = np.random.default_rng(seed)
    count = samples // 800 + 1
    pitch, loud = random.uniform(100, 6000, count), random.uniform(0.01, 0.5, count)
    audio = np.sin(np.outer(pitch, np.arange(800) * 2 * np.pi / 16000)) * loud[:, None]
    audio = audio.ravel()[:samples] + random.normal(0, 0.01, samples)
    return (audio * 32767).clip(-32768, 32767).astype(np.int16)
