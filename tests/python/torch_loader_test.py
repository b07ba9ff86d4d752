# SPDX-License-Identifier: Apache-2.0
"""millrace.torch.loader: a DataLoader that gives the batches of a plain loop, and continues after a checkpoint."""
import itertools
import unittest

import millrace
import millrace.torch
import torch
from datasets import DatasetTest, arrays
from millrace import torch_loader
from torch.utils.data import DataLoader

LENGTHS = [4 * (3 + 17 * (i % 5)) for i in range(10)]
KEYS = {"chunk": {"size": 4}, "slots": 2, "seed": 2, "dtype": "f32"}


def listed(batch):
    """A dict of tensors as lists, without the streams that begin, which depend on the first step."""
    return {key: value.tolist() if isinstance(value, torch.Tensor) else listed(value) if isinstance(value, dict) else value
            for key, value in batch.items() if key != "opened"}


class TorchLoader(DatasetTest):
    def data(self, **keys):
        return super().data(arrays(*LENGTHS), **{**KEYS, "companions": {"copy": arrays(*LENGTHS)}, **keys})

    def loader(self, workers, data=None, **options):
        return millrace.torch.loader(data or self.data(), workers, **options)

    def epoch(self, number):
        data = self.data()
        data.seek(number)
        return [listed(millrace.torch.tensors(batch)) for batch in data]

    def test_any_number_of_processes_gives_the_batches_of_a_plain_loop_in_order(self):
        expected = self.epoch(0) + self.epoch(1)
        for workers, options in (0, {}), (2, {"persistent_workers": True}), (1, {"multiprocessing_context": "spawn"}), (5, {}):
            with self.subTest(workers=workers):
                loader = self.loader(workers, **options)
                self.assertIsInstance(loader, DataLoader)
                self.assertEqual(len(loader), len(self.epoch(0)))
                self.assertEqual([listed(batch) for _ in range(2) for batch in loader], expected)

    def test_messages_in_any_order_lose_no_batch(self):
        for order in [[0], [1], [2, 4], [3, 5], [6]], [[1], [2, 4], [0], [6], [3, 5]]:
            messages = [[{"step": step} for step in steps] for steps in order]
            steps = [batch["step"] for batch in torch_loader._in_order(messages)]
            self.assertEqual(sorted(steps), list(range(7)))
            if order[0] == [0]:
                self.assertEqual(steps, list(range(7)))

    def test_batches_name_the_streams_that_begin(self):
        names = {stream.stream: stream.name for batch in self.loader(2) for stream in batch["opened"]}
        self.assertEqual(names, {number: str(number) for number in range(len(LENGTHS))})

    def test_a_checkpoint_of_any_loop_loads_in_any_other(self):
        expected = self.epoch(0) + self.epoch(1)
        steps = len(self.epoch(0))
        for taken in (0, 7, steps, steps + 3):
            states = []
            for workers in (0, 2):
                loader = self.loader(workers)
                given = (batch for _ in range(2) for batch in loader)
                self.assertEqual([listed(batch) for batch in itertools.islice(given, taken)], expected[:taken])
                states.append(loader.state_dict())
                given.close()
            self.assertEqual(states[0]["origin"], states[1]["origin"])
            for state, workers in itertools.product(states, (0, 3)):
                loader = self.loader(workers)
                loader.load_state_dict(state)
                rest = [listed(batch) for _ in range(2) for batch in loader]
                self.assertEqual(rest[: len(expected) - taken], expected[taken:])

    def test_the_state_of_a_pass_that_was_left_is_that_after_its_last_batch(self):
        for workers in 0, 2:
            loader = self.loader(workers)
            for batch in loader:
                if batch["step"] == 5:
                    break
            state = loader.state_dict()
            self.assertEqual((state["epoch"], state["step"]), (0, 6))
            self.assertNotIn("resets", state)

    def test_a_checkpoint_after_a_seek_has_fresh_states(self):
        data = self.data()
        data.seek(1, 3)
        state = self.loader(2, data).state_dict()
        self.assertEqual((state["epoch"], state["step"], state["resets"]), (1, 3, True))
        loader = self.loader(2)
        loader.load_state_dict(state)
        first, second = itertools.islice(loader, 2)
        self.assertEqual((first["reset"].tolist(), second["reset"].tolist()), ([True, True], [False, False]))
        self.assertNotIn("resets", loader.state_dict())

    def test_a_pass_that_is_left_early_is_followed_by_the_next_epoch(self):
        loader = self.loader(2)
        self.assertEqual([listed(batch)["step"] for batch in itertools.islice(loader, 5)], list(range(5)))
        self.assertEqual([listed(batch) for batch in loader], self.epoch(1))

    def test_an_error_of_a_process_comes_after_the_batches_before(self):
        data = self.data(augment=fails)
        given = []
        with self.assertRaisesRegex(Exception, "no such noise"):
            for batch in millrace.torch.loader(data, 2):
                given.append(batch["step"])
        with self.assertRaises(millrace.DataError) as raised:
            for _ in self.data(augment=fails):
                pass
        self.assertGreater(raised.exception.step, 8)  # in the middle of a message
        self.assertEqual(given[: raised.exception.step - 1], list(range(raised.exception.step - 1)))

    def test_a_data_loader_that_a_framework_makes_of_its_data_set_gives_the_batches(self):
        loader = self.loader(2)
        again = DataLoader(loader.dataset, batch_size=None, num_workers=2, collate_fn=loader.collate_fn)
        self.assertEqual([listed(batch) for batch in again], self.epoch(0))
        self.assertEqual([listed(batch) for batch in loader], self.epoch(1))

    def test_tensors_belong_to_the_program(self):
        for batch in itertools.islice(self.loader(1), 3):
            batch["data"][:] = 0.5
            self.assertNotIn(0.5, batch["companions"]["copy"].tolist())
            for tensor in batch["data"], batch["slot"], batch["stream"], batch["companions"]["copy"]:
                self.assertEqual(tensor.data_ptr() % 64, 0)

    def test_a_process_may_add_tensors_of_any_type(self):
        class More(millrace.torch.IterableDataset):
            def __iter__(self):
                for batch in super().__iter__():
                    batch["data"] = batch["data"].to(torch.bfloat16)
                    yield {**batch, "more": [torch.tensor(batch["step"])], "turned": batch["companions"]["copy"].transpose(0, 1)}

        for batch, wanted in zip(DataLoader(More(self.data()), batch_size=None, num_workers=2), self.epoch(0), strict=True):
            self.assertEqual((batch["data"].dtype, batch["data"].tolist()), (torch.bfloat16, torch.tensor(wanted["data"]).bfloat16().tolist()))
            self.assertEqual(batch["more"], [torch.tensor(wanted["step"])])
            self.assertEqual(batch["turned"].transpose(0, 1).tolist(), wanted["companions"]["copy"])

        with self.assertRaisesRegex(TypeError, "__iter__"):
            millrace.torch.loader(More(self.data()), 2)

    def test_options_are_those_of_a_data_loader_without_those_of_batches(self):
        for option in {"batch_size": 4}, {"collate_fn": list}:
            (name,) = option
            with self.assertRaisesRegex(TypeError, name):
                self.loader(0, **option)
        with self.assertRaisesRegex(TypeError, "must be a Dataset"):
            millrace.torch.loader("speech")


def fails(stream, generator):
    if stream.name == "2":
        raise RuntimeError("no such noise")
    return stream


if __name__ == "__main__":
    unittest.main()
