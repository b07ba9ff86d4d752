# SPDX-License-Identifier: Apache-2.0
"""Two processes that train with PyTorch's DistributedDataParallel (gloo) end with the parameters of one process."""
import tempfile
import unittest
import wave
from pathlib import Path
from unittest import mock

import numpy as np
import torch
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

import millrace

SLOTS, STATES, SIZE, EPOCHS = 4, 6, 80, 2
LENGTHS = (2000, 1500, 900, 1210, 40, 1999, 80, 700, 1333, 81, 555)


def write_speech(folder):
    random = np.random.default_rng(2)
    for number, length in enumerate(LENGTHS):
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, length, "NONE", ""))
            file.writeframes(random.integers(-20000, 20000, length, np.int16).tobytes())


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.output = torch.nn.GRUCell(SIZE, STATES), torch.nn.Linear(STATES, 1)

    def forward(self, data, state):
        state = self.cell(data, state)
        return self.output(state)[:, 0], state


def trained(folder, rank, world, slots=SLOTS, seed=1):
    """The parameters after some epochs, the number of steps, and the sum of real frames of this rank."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = millrace.Dataset(folder, chunk={"size": SIZE}, dtype="f32", slots=slots, seed=seed, rank=rank, world=world)
    model = Model()
    module = DistributedDataParallel(model) if world > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state, steps, frames = torch.zeros(data.slots + 1, STATES), 0, 0
    for _ in range(EPOCHS):
        for batch in data:
            slot, reset = torch.from_dlpack(batch.slot).long(), torch.from_dlpack(batch.flags).bitwise_and(2).bool()
            state, size = state.detach(), torch.from_dlpack(batch.size)
            y, after = module(torch.from_dlpack(batch.data)[:, :, 0], state[slot].masked_fill(reset[:, None], 0))
            state[slot] = after
            loss = ((y - 1) ** 2 * (size > 0)).sum() / slots
            optimizer.zero_grad()
            (loss * world).backward()  # DistributedDataParallel divides the sum over the ranks by their number
            optimizer.step()
            steps, frames = steps + 1, frames + int(size.sum())
    return [parameter.detach().numpy().copy() for parameter in model.parameters()], steps, frames


def of_rank(folder, rank, world, seeds, address, results):
    """Runs in a process of its own."""
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world)
    try:
        result = trained(folder, rank, world, seed=seeds[rank])
    except ValueError as error:
        result = str(error)
    results.put((rank, result))
    torch.distributed.barrier()


class Ddp(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "speech").mkdir()
        write_speech(self.folder / "speech")
        self.speech = str(self.folder / "speech")

    def ranks(self, world, seeds=(1, 1)):
        context = torch.multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        address = f"file://{self.folder}/rendezvous_{len(list(self.folder.iterdir()))}"
        processes = [context.Process(target=of_rank, args=(self.speech, rank, world, seeds, address, results)) for rank in range(world)]
        for process in processes:
            process.start()
        found = dict(results.get() for _ in processes)
        for process in processes:
            process.join()
            self.assertEqual(process.exitcode, 0)
        return [found[rank] for rank in range(world)]

    def test_two_processes_end_with_the_parameters_of_one(self):
        alone, steps, frames = trained(self.speech, 0, 1)
        self.assertEqual(frames, EPOCHS * sum(LENGTHS))
        ranks = self.ranks(2)
        self.assertEqual([rank[1] for rank in ranks], [steps, steps])
        self.assertEqual(sum(rank[2] for rank in ranks), frames)
        for parameters, _, _ in ranks:
            for mine, expected in zip(parameters, alone, strict=True):
                np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-6)

    def test_the_parameters_depend_on_every_row(self):
        """Another seed gives other parameters, so equal parameters mean equal batches."""
        first, second = trained(self.speech, 0, 1)[0], trained(self.speech, 0, 1, seed=2)[0]
        self.assertGreater(max(np.abs(a - b).max() for a, b in zip(first, second)), 1e-4)

    def test_all_ranks_refuse_different_plans_together(self):
        for message in self.ranks(2, seeds=(1, 2)):
            self.assertRegex(message, "seed is")

    def test_a_data_set_that_is_alone_among_ranks_warns_once(self):
        with mock.patch.multiple(torch.distributed, is_initialized=lambda: True, get_world_size=lambda: 2), \
                self.assertLogs("millrace", "WARNING") as logged:
            for _ in range(2):
                with millrace.Dataset(self.speech, chunk={"size": SIZE}, slots=1) as data:
                    data.next()
        self.assertEqual(len([line for line in logged.output if "rank 0 of 1" in line]), 1)


if __name__ == "__main__":
    unittest.main()
