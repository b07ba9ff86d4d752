# SPDX-License-Identifier: Apache-2.0
"""millrace.torch with PyTorch's DataLoader: the batches are those of a plain loop."""
import unittest

import millrace.torch
import torch
import torch.multiprocessing
from folders import Folders, epochs_of
from torch.utils.data import DataLoader


def listed(batch):
    """A dict of tensors as lists, without the names of streams."""
    return {name: {key: tensor.tolist() for key, tensor in value.items()} if name == "companions"
            else value.tolist() if isinstance(value, torch.Tensor) else value
            for name, value in batch.items() if name != "opened"}


def loader(batches, workers, **options):
    return DataLoader(batches, batch_size=None, num_workers=workers, **options)


def of_rank(rank, world, speech, options, address, queue):
    """Runs in a process of its own: all batches of a rank."""
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world)
    batches = millrace.torch.IterableDataset(speech, **options)
    queue.put((rank, [listed(batch) for batch in loader(batches, rank)]))
    torch.distributed.barrier()


class Torch(Folders):
    def batches(self, **options):
        return millrace.torch.IterableDataset(self.speech, **{**self.options, **options})

    def test_any_number_of_processes_gives_the_batches_of_a_plain_loop_in_order(self):
        expected = epochs_of(self.dataset(), 2)
        for workers, context in ((0, None), (1, "fork"), (2, "fork"), (3, "spawn")):
            for persistent in (False, True) if workers else (False,):
                with self.subTest(workers=workers, context=context, persistent=persistent):
                    given = loader(self.batches(), workers, multiprocessing_context=context, persistent_workers=persistent)
                    self.assertEqual([listed(batch) for _ in range(2) for batch in given], expected)

    def test_more_processes_than_steps_give_each_step_once(self):
        chunk = {"size": 3000}  # each stream is one chunk
        steps = len(self.dataset(chunk=chunk))
        given = [batch["step"] for batch in loader(self.batches(chunk=chunk), steps + 2)]
        self.assertEqual(given, list(range(steps)))

    def test_tensors_use_the_memory_of_the_batch_and_keep_it(self):
        kept = [(batch, batch["data"].clone()) for batch in loader(self.batches(buffers=200), 0)]
        for batch, values in kept:
            self.assertTrue(torch.equal(batch["data"], values))
        batch = next(iter(self.dataset()))
        tensors = millrace.torch.tensors(batch)
        tensors["data"][0, 0, 0] = 0.75
        self.assertEqual(batch.data[0, 0, 0], 0.75)

    def test_batches_name_the_streams_that_begin(self):
        data = self.dataset()
        for workers in (0, 2):
            names = {stream.stream: stream.name for batch in loader(self.batches(), workers) for stream in batch["opened"]}
            self.assertEqual(names, {number: data.name(number) for number in range(23)})

    def test_a_loop_that_is_left_early_continues_and_with_processes_the_next_epoch_follows(self):
        both = [(batch["epoch"], batch["step"]) for batch in epochs_of(self.dataset(), 2)]
        first, second = ([position for position in both if position[0] == epoch] for epoch in range(2))
        for workers, expected in ((0, first[5:]), (2, second)):
            given = loader(self.batches(), workers)
            for batch in given:
                if batch["step"] == 4:
                    break
            self.assertEqual([(batch["epoch"], batch["step"]) for batch in given], expected)

    def test_seek_sets_the_next_pass(self):
        expected = epochs_of(self.dataset(), 4)
        for workers in (0, 2):
            batches = self.batches()
            given = loader(batches, workers)
            batches.seek(2, 7)
            after = [listed(batch) for _ in range(2) for batch in given]
            wanted = [batch for batch in expected if (batch["epoch"], batch["step"]) >= (2, 7)]
            self.assertEqual(after[1:], wanted[1:])
            first = {**after[0], "flags": wanted[0]["flags"], "reset": wanted[0]["reset"]}  # but for lost states
            self.assertEqual(first, wanted[0])
            self.assertEqual([reset for reset, size in zip(after[0]["reset"], after[0]["size"]) if size], [True] * sum(
                size > 0 for size in after[0]["size"]))

    def test_a_checkpoint_of_a_plain_loop_loads(self):
        data = self.dataset()
        for batch in data:
            if batch.step == 8:
                break
        checkpoint, rest = data.state_dict(), epochs_of(data, 1)
        for workers in (0, 1, 3):
            batches = self.batches()
            batches.load_state_dict(checkpoint)
            self.assertEqual([listed(batch) for batch in loader(batches, workers)], rest)

    def test_a_checkpoint_of_another_plan_is_refused(self):
        checkpoint = self.dataset(seed=4).state_dict()
        with self.assertRaisesRegex(ValueError, "seed"):
            self.batches().load_state_dict(checkpoint)

    def test_an_error_in_a_process_names_the_stream(self):
        def fails(stream, generator):
            raise RuntimeError("no such noise")

        for workers in (0, 2):
            with self.assertRaisesRegex(Exception, "no such noise"):
                for _ in loader(self.batches(augment=fails), workers):
                    pass

    def test_ranks_are_those_of_torch_distributed(self):
        expected = epochs_of(self.dataset(), 1)
        context = torch.multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        address = f"file://{self.folder}/rendezvous"
        processes = [context.Process(target=of_rank, args=(rank, 2, self.speech, self.options, address, queue)) for rank in range(2)]
        for process in processes:
            process.start()
        ranks = dict(queue.get() for _ in processes)
        for process in processes:
            process.join()
            self.assertEqual(process.exitcode, 0)
        self.assertEqual(len(ranks[0]), len(expected))
        for whole, first, second in zip(expected, ranks[0], ranks[1], strict=True):
            framed = [[number for number in range(2) if half["size"][number]] for half in (first, second)]
            side_by_side = [half["data"][number] for half, rows in zip((first, second), framed) for number in rows]
            self.assertEqual(side_by_side, [row for row, size in zip(whole["data"], whole["size"]) if size])

    def test_a_dataset_and_options_are_an_error(self):
        with self.assertRaisesRegex(TypeError, "slots"):
            millrace.torch.IterableDataset(self.dataset(), slots=3)


if __name__ == "__main__":
    unittest.main()
