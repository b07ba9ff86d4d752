# SPDX-License-Identifier: Apache-2.0
"""Copies of a Dataset while its folder, or the directory of its recordings, grows: they have the plan of the first one."""
import copy
import pickle
import tempfile
import unittest
from pathlib import Path

import millrace
import millrace.torch
from datasets import DatasetTest, content, contents, frames_of, write_wav
from harness import SystemTest, wait_for
from torch.utils.data import DataLoader

RECORDED = """
[recording]
directory = "{}"
[[pipeline]]
slots = 4
chunk = {{ size = 1600 }}
record = true
"""
OTHER_PLAN = "not that of the Dataset that was copied or pickled: streams is 7 instead of 6"


def shown(batches):
    """The rows of the batches: slot, stream, reset, and the values of the frames."""
    return [[(slot, stream, reset, values) for slot, stream, reset, size, values in
             zip(batch["slot"].tolist(), batch["stream"].tolist(), batch["reset"].tolist(), batch["size"].tolist(),
                 batch["data"].tolist()) if size] for batch in batches]


class OfFolders(DatasetTest):
    def setUp(self):
        super().setUp()
        for i in range(6):
            self.write(i)

    def write(self, i):
        write_wav(self.folder / "speech" / f"{i}.wav", frames_of(i, 9 + i))

    def opened(self, **keys):
        return self.data(self.folder / "speech", **keys)

    def test_the_processes_of_a_data_loader_have_the_plan_of_the_data_set(self):
        data = self.opened()
        expected = shown(map(millrace.torch.tensors, data)), shown(map(millrace.torch.tensors, data))
        batches = millrace.torch.IterableDataset(self.opened())
        loader = DataLoader(batches, batch_size=None, num_workers=2)
        self.write(0.5)
        given = [shown(loader)]
        self.write(1.5)
        self.assertEqual((*given, shown(loader)), expected)

    def test_a_peek_has_the_streams_of_the_data_set(self):
        data = self.opened()
        expected = contents(data)
        self.write(0.5)
        data.seek(0)
        self.assertEqual(content(data.peek()), expected[0])
        self.assertEqual(contents(data.copy(processes=0, rate=None)), expected)

    def test_a_copy_with_processes_has_the_files_of_the_data_set(self):
        data = self.opened(augment=lambda stream, generator: stream, processes=1)
        expected = contents(data)
        self.write(0.5)
        data.seek(0)
        self.assertEqual(content(data.peek()), expected[0])
        self.assertEqual(contents(data.copy()), expected)

    def test_a_copy_has_the_streams_of_the_data_set(self):
        data = self.opened()
        expected = contents(data)
        self.write(0.5)
        self.assertEqual(contents(data.copy()), expected)
        self.assertEqual(contents(data.copy(stride=2, first_step=1)), expected[1::2])
        self.assertEqual(data.copy(seed=7, shuffle=False).streams, 6)
        ranks = [data.copy(rank=rank, world=2) for rank in range(2)]
        self.assertEqual([len(rank) for rank in ranks], [len(expected)] * 2)
        self.assertEqual(data.copy(streams=self.folder / "speech").streams, 7)

    def test_a_copy_of_a_copy_and_of_pythons_module_has_the_streams_and_the_position(self):
        data = self.opened()
        expected = contents(data)
        data.seek(0)
        for _ in range(3):
            data.next()
        self.write(0.5)
        for made in copy.copy(data), copy.deepcopy(data), copy.copy(copy.copy(data)):
            self.assertEqual((made.epoch, made.step), (0, 3))
            self.assertEqual(contents(made), expected[3:])
        self.assertEqual(data.step, 3)

    def test_a_copy_without_streams_of_files_has_the_same_objects(self):
        streams = [frames_of(i, 9) for i in range(3)]
        data = self.data(streams, companions={"same": [frames_of(i, 9) for i in range(3)]})
        self.assertEqual(contents(data.copy()), contents(data))

    def test_an_unknown_argument_of_a_copy_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "copy.. got an unexpected argument 'slot'"):
            self.opened().copy(slot=3)

    def test_a_pickled_data_set_with_other_streams_is_an_error(self):
        data = self.opened()
        pickled = pickle.dumps(data)
        twice = pickle.dumps(pickle.loads(pickled))
        self.assertEqual(contents(pickle.loads(twice)), contents(data))
        self.write(0.5)
        for use in contents, len, millrace.Dataset.copy, lambda again: again.slots, lambda again: again.seek(0, 1):
            for one in pickled, twice:
                with self.assertRaisesRegex(millrace.PlanDiffers, OTHER_PLAN):
                    use(pickle.loads(one))

    def test_a_spawned_process_of_a_data_loader_with_other_streams_is_an_error(self):
        batches = millrace.torch.IterableDataset(self.opened())
        self.write(0.5)
        with self.assertRaisesRegex(millrace.PlanDiffers, OTHER_PLAN):
            list(DataLoader(batches, batch_size=None, num_workers=1, multiprocessing_context="spawn"))


class OfRecordings(SystemTest):
    def test_a_data_loader_trains_from_a_directory_that_a_service_records_into(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        directory = Path(folder.name) / "recordings"
        service = self.service(RECORDED.format(directory))
        self.tap(service)
        client = millrace.Client(f"ws://127.0.0.1:{service.port}")

        def record(first, count):
            for i in range(first, first + count):
                with client.open() as stream:
                    stream.send(frames_of(i, 1600 * (1 + i % 3)))
                    stream.end()
                    list(stream)
            wait_for(lambda: directory.is_dir() and finished() == first + count, "the recordings")

        def finished():
            return sum(not stream.open for stream in millrace.recordings.open(directory))

        record(0, 5)
        data = millrace.Dataset(directory, chunk={"size": 400}, slots=2, seed=1)
        expected = [shown(map(millrace.torch.tensors, data)) for _ in range(2)]
        pickled = pickle.dumps(data.copy())
        loader = DataLoader(millrace.torch.IterableDataset(data.copy()), batch_size=None, num_workers=2)
        given = []
        for first in 5, 10:
            record(first, 5)
            given.append(shown(loader))
        self.assertEqual(given, expected)
        self.assertEqual(shown(map(millrace.torch.tensors, pickle.loads(pickled))), expected[0])
        self.assertEqual(millrace.Dataset(directory, chunk={"size": 400}, slots=2, seed=1).streams, 15)


if __name__ == "__main__":
    unittest.main()
