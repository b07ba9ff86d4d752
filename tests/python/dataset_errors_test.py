# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of a Dataset, and data that cannot be delivered."""
import unittest

import numpy as np
from datasets import DatasetTest, arrays, frames_of, write_wav

import millrace


class Arguments(DatasetTest):
    def refused(self, text, kind=ValueError, streams=None, **keys):
        with self.assertRaisesRegex(kind, text):
            self.data(streams, **keys)

    def test_unknown_keys_are_named(self):
        self.refused("slotz", TypeError, slotz=3)
        self.refused("sise", chunk={"size": 4, "sise": 4})
        self.refused("nose", companions={"a": {"nose": 1}})
        self.refused("companions.a: unknown key path", companions={"a": {"source": arrays(4, 4, 4, 4), "path": None}})
        self.refused('companions.a.frames_per_entry = "x" must be a whole number', companions={"a": {"source": [], "frames_per_entry": "x"}})

    def test_wrong_values_are_named(self):
        self.refused("mode", mode="statefull")
        self.refused("dtype", dtype="f64")
        self.refused("dtype", dtype=("a",))
        self.refused("slots", slots=-1)
        self.refused("size", chunk={"size": "0.33ms"})
        self.refused('size = "100" must be a number without quotes', chunk={"size": "100"})
        self.refused("prefetch|threads", threads=-1)
        self.refused("seed", TypeError, seed=object())
        self.refused("companions must be a dict", TypeError, companions=["a"])
        for chunk in "100ms", 1600, ["size", 4]:
            self.refused('chunk must be a dict, such as {"size": "100ms"}, not', TypeError, chunk=chunk)
        for seed in 2**64, -2**63 - 1, 10**30:
            self.refused(f"seed = {seed}: a whole number must be from", seed=seed)
        self.refused("split: names must be texts, not 1", TypeError, split={1: 0.5})
        self.refused("companions: a name must be a string, not 1", TypeError, companions={1: "a"})
        self.refused("augment must be a function, not 'x'", TypeError, augment="x")
        self.refused("pipeline must be a string", TypeError, pipeline=[])
        self.refused("longest_call must be seconds, not 'x'", TypeError, longest_call="x")
        self.refused("width_buckets: must be a text", TypeError, width_buckets=b"x")
        for waste in -1, float("nan"):
            self.refused("max_waste = .* must be a fraction from 0 to 1", mode="stateless", slots=None, rows=2, max_waste=waste)
        self.assertEqual(self.data(rank=None, world=None).slots, 2)
        self.assertEqual(self.data(seed=2**64 - 1).state_dict()["origin"]["seed"], str(2**64 - 1))

    def test_no_streams(self):
        self.refused("no streams|streams", streams=[])
        self.refused("no streams", streams=millrace.catalogs.Arrays([]))
        self.refused("streams must be", TypeError, streams=7)
        self.refused("streams: a path is empty", streams=["a.wav", ""])
        self.refused("not an array", TypeError, streams=np.zeros((3, 4), np.int16))
        (self.folder / "empty").mkdir()
        self.refused("empty", streams=self.folder / "empty")
        self.refused("missing", (ValueError, OSError), streams=self.folder / "missing")

    def test_more_slots_than_streams(self):
        self.refused("slots.*5.*4|4.*5", slots=5)

    def test_a_world_that_does_not_divide_the_slots(self):
        self.refused("world", slots=3, world=2, streams=arrays(4, 4, 4, 4))
        self.refused("rank", rank=2, world=2)

    def test_streams_that_differ_are_named(self):
        self.refused("frames", streams=[np.zeros(4, np.int64)])
        self.refused("channels=2", streams=arrays(4, 4), channels=2)
        write_wav(self.folder / "mixed" / "a.wav", frames_of(0, 8))
        write_wav(self.folder / "mixed" / "b.wav", frames_of(0, 8), rate=8000)
        self.refused(r"b\.wav", streams=self.folder / "mixed")
        streams = millrace.catalogs.Arrays(arrays(4, 4), rate=8000)
        self.refused("rate", streams=streams, rate=16000)

    def test_names_and_lengths_of_objects_are_checked(self):
        class Streams(millrace.catalogs.Arrays):
            def frames(self, i):
                return "long" if i else 4

        self.refused(r"frames\(1\)|whole number|interpreted", (TypeError, ValueError), streams=Streams(arrays(4, 4)))
        with self.assertRaisesRegex(ValueError, "names: 3 entries for 2 arrays"):
            millrace.catalogs.Arrays(arrays(4, 4), names=["a", "b", "c"])
        for events, text in (([("frames", 3)], "have 3 frames"), ([("bang", 3)], "bang"), ([7], "pairs"),
                             ([("open", 2), ("frames", 4)], "only an event of recordings")):
            self.refused(text, streams=millrace.catalogs.Arrays(arrays(4), events=[events]), slots=1)

    def test_more_values_per_frame_than_others(self):
        arrays = [np.ones((4, 2), np.float32), np.ones((4, 3), np.float32)]
        with self.assertRaisesRegex(ValueError, "stream '1' has frames of 3 values .float32.; stream '0' has frames of 2"):
            self.data(arrays)

        class Objects:  # of a program: only reading shows their form
            def __len__(self):
                return len(arrays)

            def frames(self, i):
                return len(arrays[i])

            def name(self, i):
                return str(i)

            def read(self, i, begin, n):
                return arrays[i][begin:begin + n]

        with self.assertRaisesRegex(millrace.DataError, r"stream '1': read\(1, 0, 4\) returned .*\[4, 3\] instead of \[4, 2\]"):
            list(self.data(Objects()))


    def test_values_that_the_type_of_the_frames_cannot_hold(self):
        class Streams(millrace.catalogs.Arrays):
            _place = None
            last = None

            def read(self, i, begin, n):
                frames = super().read(i, begin, n)
                return self.last if n > 1 and i == 1 else frames

        for first, last, text in ((np.float64, [0, 1e39, 0, 0], "returned 1e.39, which float32 cannot hold"),
                                  (np.float16, [0, 0, np.float32(1e6), 0], "1000000.0, which float16"),
                                  (np.int16, [0, 0, 0, 40000], "40000, which int16")):
            streams = Streams([np.ones(4, first), np.ones(4, first)])
            streams.last = np.array(last)
            with self.assertRaisesRegex(millrace.DataError, text):
                list(self.data(streams))

    def test_labels_that_their_type_cannot_hold(self):
        labels = [np.full(4, 7, np.int32), np.array([7, 2**40, 7, 7])]
        with self.assertRaisesRegex(millrace.DataError, "1099511627776, which int32 cannot hold"):
            list(self.data(arrays(4, 4), companions={"label": labels}))

    def test_a_frequency_may_be_a_number_of_numpy(self):
        for frequency in np.int64(2), np.float32(2), np.uint8(2):
            data = self.data([(arrays(8, 8), frequency)], slots=1)
            self.assertEqual(sum(row.begin == 0 for batch in data for row in batch.framed), 4)


class Data(DatasetTest):
    def fails(self, data, *texts, reason, stream, step=None):
        """Checks that the loop raises the error, with these texts, and again after a retry."""
        for _ in range(2):
            with self.assertRaises(millrace.DataError) as raised:
                list(data)
            error = raised.exception
            for text in texts:
                self.assertIn(text, str(error))
            self.assertEqual((error.reason, error.stream, error.epoch), (reason, stream, 0))
            self.assertEqual(error.step, data.step)
            if step is not None:
                self.assertEqual(error.step, step)

    def folder_of(self, *lengths):
        for i, array in enumerate(arrays(*lengths)):
            write_wav(self.folder / "speech" / f"{i}.wav", array)
        return self.folder / "speech"

    def test_nan_is_an_error_at_the_step_of_its_row(self):
        for threads in 0, 1, 2:
            streams = [array.astype(np.float32) for array in arrays(8, 12)]
            streams[1][9] = np.inf
            data = self.data(streams, threads=threads, shuffle=False)
            self.fails(data, "stream 1 (1)", "NaN or infinite", "9", reason="format", stream=1, step=2)

    def test_a_file_that_is_missing(self):
        folder = self.folder_of(8, 12)
        data = self.data(folder)
        (folder / "1.wav").unlink()
        self.fails(data, "1.wav", reason="read", stream=1)

    def test_an_exception_of_an_object_comes_with_its_traceback(self):
        class Streams(millrace.catalogs.Arrays):
            _place = None

            def read(self, i, begin, n):
                if i == 1 and n > 1:
                    raise OSError("the disk is on fire")
                return super().read(i, begin, n)

        for threads in 0, 2:
            data = self.data(Streams(arrays(8, 12)), threads=threads)
            self.fails(data, "the disk is on fire", "in read", reason="read", stream=1, step=0)


class OfServers(unittest.TestCase):
    def test_an_error_without_a_valid_place_is_refused(self):
        for details in ("{}", "[]", "no JSON", '{"message": "gone"}'):
            error = millrace.errors.error_of("a stream", "data", details)
            self.assertIsInstance(error, millrace.Refused)
            self.assertEqual(error.code, "data")


if __name__ == "__main__":
    unittest.main()
