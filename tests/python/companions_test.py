# SPDX-License-Identifier: Apache-2.0
"""Companions: arrays that belong to streams and are cut with them."""
import unittest

import numpy as np
import torch
from datasets import DatasetTest, arrays, write_wav

import millrace

LENGTHS = 10, 7, 21, 4


def entries(lengths, *shape, dtype=np.int32):
    """Entries that no other stream has near."""
    return [(1000 * i + 1 + np.arange(n * int(np.prod(shape, initial=1)))).reshape(n, *shape).astype(dtype)
            for i, n in enumerate(lengths)]


def joined(data, name, count):
    """The entries of each stream, put together from its bodies. `count(begin, size)`: those of a body."""
    streams = {}
    for batch in data:
        array = batch.companions[name]
        for number, row in enumerate(batch.framed):
            used = count(row.begin, row.size)
            streams.setdefault(row.stream, {})[row.begin] = array[number, :used]
            assert not array[number, used:].any(), "unused entries are not 0"
        assert not array[len(batch.framed):].any(), "padding rows are not 0"
    return {stream: np.concatenate([rows[begin] for begin in sorted(rows)]) for stream, rows in streams.items()}


class Arrays(DatasetTest):
    def check(self, companion, expected, count, shape, **keys):
        data = self.data(companions={"labels": companion}, **keys)
        self.assertEqual(next(iter(data)).companions["labels"].shape, shape)
        data.seek(0)
        found = joined(data, "labels", count)
        for stream, array in enumerate(expected):
            np.testing.assert_array_equal(found[stream], array.reshape(len(array), -1))

    def test_an_entry_per_frame(self):
        labels = entries(LENGTHS)
        self.check(labels, labels, lambda begin, size: size, (2, 4, 1))

    def test_several_values_per_entry_and_all_types(self):
        for dtype in np.int16, np.int32, np.int64, np.uint8, np.float16, np.float32:
            labels = [array.astype(dtype) for array in entries(LENGTHS, 3)]
            data = self.data(companions={"labels": labels})
            self.assertEqual(data.next().companions["labels"].dtype, dtype)
            self.check(labels, labels, lambda begin, size: size, (2, 4, 3))

    def test_a_ratio_may_be_given(self):
        labels = entries([1, 1])
        ratio = {"source": labels, "frames_per_entry": 9}
        data = self.data(arrays(9, 5), companions={"labels": ratio})
        found = joined(data, "labels", lambda begin, size: begin == 0)
        self.assertEqual({stream: array.tolist() for stream, array in found.items()}, {0: [[1]], 1: [[1001]]})

    def test_an_object_reads_its_entries(self):
        class Doubled:
            entries_per_frame = 2

            def read(self, i, begin, n):
                return np.arange(begin, begin + n, dtype=np.int32) + 100 * i

        expected = [np.arange(2 * length, dtype=np.int32) + 100 * i for i, length in enumerate(LENGTHS)]
        self.check(Doubled(), expected, lambda begin, size: 2 * size, (2, 8, 1))

    def test_a_catalog_may_be_a_companion(self):
        labels = entries([-(-length // 3) for length in LENGTHS])
        self.check({"source": millrace.catalogs.Arrays(labels), "frames_per_entry": 3}, labels,
                   lambda begin, size: -(-(begin + size) // 3) - -(-begin // 3), (2, 2, 1))
        with self.assertRaisesRegex(ValueError, "no whole ratio"):
            self.data(companions={"labels": millrace.catalogs.Arrays(entries((10, 7, 21, 5)))})

    def test_wrong_lengths_are_errors_before_the_first_batch(self):
        for companion, text in ((entries((10, 7, 21)), "3 arrays for 4 streams"),
                                (entries((10, 7, 21, 5)), "4 frames and 5 entries"),
                                ({"source": entries(LENGTHS), "frames_per_entry": 2}, "10 entries instead of 5"),
                                ({"source": entries(LENGTHS), "every": 2}, "every is an unknown key"),
                                (["hello"] * 4, "stream 0 has 'hello' instead of an array of entries"),
                                (7, "companions.labels")):
            with self.assertRaisesRegex((ValueError, TypeError), text):
                self.data(companions={"labels": companion})

    def test_the_form_of_each_companion_is_compared(self):
        labels = entries([9, 9])
        with self.assertRaisesRegex(ValueError, "entries of 1 values .float32."):
            self.data(arrays(9, 9), companions={"labels": [labels[0], labels[1].ravel().astype(np.float32)]})

    def test_tensors_share_the_memory_of_the_batch(self):
        batch = self.data(companions={"labels": entries(LENGTHS)}).next()
        tensor = torch.from_dlpack(batch.companions["labels"])
        self.assertEqual(tensor.data_ptr(), batch.companions["labels"].ctypes.data)


class Files(DatasetTest):
    def folder_of(self, lengths):
        for i, array in enumerate(arrays(*lengths)):
            write_wav(self.folder / "speech" / "part" / f"{i}.wav", array)
        return self.folder / "speech"

    def test_a_folder_of_npy_files_belongs_to_a_folder_of_audio_files(self):
        speech = self.folder_of(LENGTHS)
        (self.folder / "labels" / "part").mkdir(parents=True)
        labels = entries(LENGTHS, dtype=np.float32)
        for i, array in enumerate(labels):
            np.save(self.folder / "labels" / "part" / f"{i}.npy", array)
        data = self.data(speech, companions={"labels": self.folder / "labels"})
        found = joined(data, "labels", lambda begin, size: size)
        for stream, array in enumerate(labels):
            np.testing.assert_array_equal(found[stream][:, 0], array)

    def test_arrays_belong_to_a_folder_of_audio_files(self):
        labels = entries(LENGTHS)
        data = self.data(self.folder_of(LENGTHS), companions={"labels": labels})
        found = joined(data, "labels", lambda begin, size: size)
        for stream, array in enumerate(labels):
            np.testing.assert_array_equal(found[stream][:, 0], array)


if __name__ == "__main__":
    unittest.main()
