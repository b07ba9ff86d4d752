# SPDX-License-Identifier: Apache-2.0
"""Passes over a data set that take exactly len() batches, or are left early: the next pass is the next epoch."""
import copy
import itertools
import logging
import types
import unittest
import unittest.mock

import millrace
import millrace.torch
import torch
from datasets import DatasetTest, arrays
from millrace.torch_passes import Passes
from torch.utils.data import DataLoader

LENGTHS = [4 * (3 + 17 * (i % 5)) for i in range(10)]  # epochs of 0.3 of them differ in their steps
EPOCHS = 4


def places(batches):
    return [(batch["epoch"], batch["step"]) if isinstance(batch, dict) else (batch.epoch, batch.step) for batch in batches]


class Watched:
    """A tensor; notes what the passes are after each change."""

    def __init__(self, tensor, watch):
        self.tensor, self.watch = tensor, watch

    def __setitem__(self, place, value):
        self.tensor[place] = value
        self.watch()

    def __getitem__(self, place):
        return self.tensor[place]

    def __mod__(self, number):
        return self.tensor % number

    def tolist(self):
        return self.tensor.tolist()


class PassesTest(DatasetTest):
    def setUp(self):
        super().setUp()
        self.streams = [(arrays(*LENGTHS), 0.3)]
        data = self.varied()
        steps = []
        for epoch in range(EPOCHS + 1):
            data.seek(epoch)
            steps.append(len(data))
        self.steps = steps
        self.expected = [[(epoch, step) for step in range(count)] for epoch, count in enumerate(steps[:EPOCHS])]
        self.assertEqual(len(set(steps)), len(steps))

    def varied(self, **keys):
        return self.data(self.streams, **{"slots": 1, "seed": 2, **keys})

    def batches(self, **keys):
        return millrace.torch.IterableDataset(self.streams, chunk={"size": 4}, slots=1, seed=2, **keys)


class OfDatasets(PassesTest):
    def test_a_pass_that_takes_len_batches_is_followed_by_the_next_epoch(self):
        data = self.varied()
        self.assertEqual([places(batch for _, batch in zip(range(len(data)), data)) for _ in range(EPOCHS)], self.expected)
        data = self.varied(threads=0)
        self.assertEqual([places(itertools.islice(data, len(data))) for _ in range(EPOCHS)], self.expected)

    def test_a_call_of_next_gives_the_end_of_each_epoch(self):
        data = self.varied()
        for epoch in range(2):
            for _ in range(self.steps[epoch]):
                self.assertEqual(data.next().epoch, epoch)
                self.assertFalse(data.at_end)
            self.assertIsNone(data.next())
            self.assertTrue(data.at_end)

    def test_len_is_that_of_the_next_iteration(self):
        data = self.varied()
        lengths = []
        for _ in range(EPOCHS):
            lengths.append(len(data))
            places(itertools.islice(data, len(data)))
        self.assertEqual(lengths, self.steps[:EPOCHS])
        self.assertEqual((data.epoch, data.step), (EPOCHS - 1, lengths[-1]))

    def test_a_checkpoint_after_the_last_batch_continues_with_the_next_epoch(self):
        data = self.varied()
        places(itertools.islice(data, len(data)))
        after = self.varied()
        after.load_state_dict(data.state_dict())
        self.assertEqual(len(after), self.steps[1])
        self.assertEqual(places(after), self.expected[1])

    def test_progress_after_the_last_batch_is_that_of_the_next_epoch(self):
        data = self.varied()
        places(itertools.islice(data, len(data)))
        self.assertEqual(places(millrace.progress(data)), self.expected[1])

    def test_a_stride_begins_the_next_epoch_after_its_own_last_step(self):
        for first in range(3):
            data = self.varied(stride=3, first_step=first)
            self.assertEqual([places(itertools.islice(data, len(data))) for _ in range(EPOCHS)],
                             [epoch[first::3] for epoch in self.expected])

    def test_an_epoch_without_a_step_of_the_stride_gives_nothing(self):
        data = self.varied(stride=1000, first_step=999)
        self.assertEqual((len(data), list(data)), (0, []))
        self.assertEqual((data.epoch, data.step), (1, 999))

    def test_a_step_behind_the_end_of_the_epoch_is_an_error(self):
        data = self.varied()
        data.seek(1, self.steps[1])
        self.assertEqual(places(data), [(2, step) for step in range(self.steps[2])])
        with self.assertRaisesRegex(ValueError, f"step {self.steps[1] + 1}: epoch 1 has {self.steps[1]} steps"):
            data.seek(1, self.steps[1] + 1)
        self.assertEqual((data.epoch, data.step), (3, 0))


class OfLoaders(PassesTest):
    def loader(self, workers, batches=None, **options):
        return DataLoader(batches or self.batches(), batch_size=None, num_workers=workers, **options)

    def test_a_pass_over_a_loader_that_takes_len_batches_is_followed_by_the_next_epoch(self):
        for workers, persistent in (0, False), (1, False), (2, False), (3, True):
            with self.subTest(workers=workers, persistent=persistent):
                loader = self.loader(workers, persistent_workers=persistent)
                passes = []
                for _ in range(EPOCHS):
                    count = len(loader)
                    passes.append(places(batch for _, batch in zip(range(count), loader)))
                self.assertEqual(passes, self.expected)

    def test_an_iterator_that_is_kept_does_not_move_the_next_pass(self):
        for workers in 0, 2:
            loader = self.loader(workers)
            passes = []
            for _ in range(EPOCHS):
                count = len(loader)
                kept = iter(loader)
                passes.append(places(next(kept) for _ in range(count)))
            self.assertEqual(passes, self.expected)

    def test_a_pass_of_processes_that_is_left_early_is_followed_by_the_next_epoch(self):
        for workers, taken, persistent in (1, 1, False), (2, 5, False), (4, 1, False), (2, 5, True):
            with self.subTest(workers=workers, taken=taken, persistent=persistent):
                loader = self.loader(workers, persistent_workers=persistent)
                passes = [places(itertools.islice(loader, taken)) for _ in range(EPOCHS)]
                self.assertEqual(passes, [epoch[:taken] for epoch in self.expected])

    def test_len_is_that_of_a_pass_that_runs_and_then_that_of_the_next_one(self):
        for workers in 0, 2:
            loader = self.loader(workers)
            for count, then in zip(self.steps, self.steps[1:EPOCHS]):
                batches = iter(loader)
                self.assertEqual(len(loader), count)
                if workers:
                    next(batches)
                    self.assertEqual(len(loader), count)
                    del batches
                else:
                    self.assertEqual(len(places(batches)), count)
                self.assertEqual(len(loader), then)

    def test_len_is_that_of_a_pass_that_begins_meanwhile(self):
        batches = self.batches()

        def begin(passes):
            worker = types.SimpleNamespace(id=0, seed=100 + passes._own)
            passes.begin(worker, lambda epoch: 9)
            passes.runs(worker, 0)

        begin(batches._passes)
        with unittest.mock.patch.object(Passes, "running", property(begin)):
            self.assertEqual(len(batches), self.steps[1])
        self.assertEqual(len(batches), self.steps[2])

    def test_a_process_that_begins_a_pass_never_gives_the_length_of_the_pass_before(self):
        for is_left in False, True:
            passes, seen = Passes(0, 0), []
            worker = types.SimpleNamespace(id=0, seed=100)
            passes.begin(worker, lambda epoch: 9)
            passes.runs(worker, 7 if is_left else 0)

            def watch():
                seen.append(passes.running or passes.next)

            passes._running, passes._begun = Watched(passes._running, watch), Watched(passes._begun, watch)
            passes.begin(worker, lambda epoch: 9)
            self.assertEqual(seen, [1, 1, (1, -1)])

    def test_another_number_of_processes_continues_with_the_next_epoch(self):
        batches = self.batches()
        passes = [places(self.loader(workers, batches)) for workers in (2, 3, 0, 1)]
        self.assertEqual(passes, self.expected)

    def test_a_process_that_was_ended_before_it_began_takes_part_in_the_next_pass(self):
        passes = Passes(0, 0)

        def begin(number, seed):
            worker = types.SimpleNamespace(id=number, seed=seed + number)
            return copy.copy(passes).begin(worker, lambda epoch: self.steps[epoch])

        self.assertEqual(begin(0, 100), (0, 0))  # process 1 does not begin
        self.assertEqual([begin(1, 200), begin(0, 200)], [(1, 0), (1, 0)])
        self.assertEqual([begin(0, 300), begin(1, 300)], [(2, 0), (2, 0)])

    def test_passes_with_the_same_seed_are_those_of_different_epochs(self):
        for workers in 0, 2:
            loader = self.loader(workers, generator=torch.Generator())
            passes = []
            for _ in range(EPOCHS):
                loader.generator.manual_seed(1)
                passes.append(places(loader))
            self.assertEqual(passes, self.expected)

    def test_a_seek_to_the_end_of_an_epoch_begins_the_next_one(self):
        for workers in 0, 2:
            batches = self.batches()
            batches.seek(0, self.steps[0])
            loader = self.loader(workers, batches)
            self.assertEqual([len(loader), places(loader)], [self.steps[1], self.expected[1]])

    def test_a_seek_to_the_last_step_gives_this_step(self):
        for workers in 0, 3:
            batches = self.batches()
            batches.seek(0, self.steps[0] - 1)
            loader = self.loader(workers, batches)
            self.assertEqual([places(loader), places(loader)], [self.expected[0][-1:], self.expected[1]])

    def test_the_first_pass_that_is_left_early_is_reported(self):
        log = self.folder / "log"
        handler = logging.FileHandler(log)
        logger = logging.getLogger("millrace")
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        self.addCleanup(handler.close)
        loader = self.loader(2)
        for _ in range(2):
            list(itertools.islice(loader, len(loader)))
        self.assertEqual(log.read_text(), "")
        for _ in range(3):
            next(iter(loader))
        self.assertEqual(log.read_text().splitlines(),
                         ["the pass of epoch 2 was left early: its further steps are left out, and epoch 3 begins"])


if __name__ == "__main__":
    unittest.main()
