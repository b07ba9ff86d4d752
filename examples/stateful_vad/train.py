#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the model on the chunks of the service. Gradients flow through several chunks of a stream, and the state through all
of them."""

import argparse
import itertools

import torch
from model import FRAME, STATES, VoiceActivity

import millrace

CHUNK = {"size": "96ms"}  # as in millrace.toml; 3 answers


def parts(data: millrace.Dataset, chunks: int) -> "itertools.Iterator[list[millrace.Batch]]":
    """Gives the batches of an epoch in lists of `chunks` batches."""
    batches = iter(millrace.progress(data))
    while part := list(itertools.islice(batches, chunks)):
        yield part


def loss_of(logits: torch.Tensor, batch: millrace.Batch) -> tuple[torch.Tensor, int]:
    """Returns the summed loss of a batch, and the number of its answers. Padding has none."""
    targets = torch.from_dlpack(batch.companions["vad"])[:, :, 0]
    answers = -(-torch.from_dlpack(batch.size).long() // FRAME)
    real = torch.arange(logits.shape[1]) < answers[:, None]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    return (loss * real).sum(), int(real.sum())


def epoch_of(model: VoiceActivity, optimizer: torch.optim.Optimizer, data: millrace.Dataset, chunks: int) -> float:
    """Trains for one epoch. Returns the mean loss of an answer."""
    state = torch.zeros(data.slots + 1, STATES)  # a line per slot, and one for padding rows
    total = count = 0.0
    for part in parts(data, chunks):  # these batches are kept: backward() reads their tensors
        state, losses, answers = state.detach(), [], 0
        for batch in part:
            slot = torch.from_dlpack(batch.slot).long()
            reset = torch.from_dlpack(batch.flags).bitwise_and(int(millrace.Flag.RESET)).bool()
            before = state[slot].masked_fill(reset[:, None], 0)
            logits, after = model(torch.from_dlpack(batch.data)[:, :, 0], before)
            state = state.index_copy(0, slot, after)  # a copy: backward() needs the states before, too
            loss, real = loss_of(logits, batch)
            losses.append(loss)
            answers += real
        optimizer.zero_grad()
        (torch.stack(losses).sum() / answers).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        total, count = total + float(torch.stack(losses).detach().sum()), count + answers
    return total / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("speech", help="folder of audio files")
    options.add_argument("targets", help="folder of their targets (targets.py)")
    options.add_argument("--epochs", type=int, default=20, help="default: 20")
    options.add_argument("--slots", type=int, default=4, help="streams at the same time (default: 4)")
    options.add_argument("--chunks", type=int, default=8, help="chunks that gradients flow through (default: 8)")
    options.add_argument("--output", default="vad.pt", help="the trained model (default: vad.pt)")
    chosen = options.parse_args()
    torch.manual_seed(1)
    model = VoiceActivity()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    companions = {"vad": {"path": chosen.targets, "frames_per_entry": FRAME}}
    data = millrace.Dataset(
        chosen.speech, chunk=CHUNK, dtype="f32", slots=chosen.slots, seed=1, companions=companions
    )
    for epoch in range(chosen.epochs):
        print(f"epoch {epoch} loss {epoch_of(model, optimizer, data, chosen.chunks):.4f}", flush=True)
    torch.save({"model": model.state_dict(), "chunk": CHUNK}, chosen.output)


if __name__ == "__main__":
    main()
