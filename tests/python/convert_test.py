# SPDX-License-Identifier: Apache-2.0
"""Files of other rates and channels, converted by a Dataset: their rows are those that a service cuts for a client that
sends the same samples."""
import pickle
import unittest

import numpy as np
from datasets import DatasetTest, contents, go, write_wav
from streams import WorkerTest

import millrace

RULE = {"size": "100ms", "left": "20ms"}
PIPELINE = '[[pipeline]]\nslots = 2\nchunk = { size = "100ms", left = "20ms" }\n'
#: Rate and channels of a file.
KINDS = (44100, 2), (8000, 1), (16000, 2), (48000, 1)


def noise(seed, seconds, rate, channels):
    frames = np.random.default_rng(seed).integers(-20000, 20000, (int(seconds * rate), channels), dtype=np.int16)
    return frames[:, 0] if channels == 1 else frames


class Service(WorkerTest):
    pipeline = PIPELINE

    def served_rows(self, worker, samples, rate, channels):
        """The windows of the rows that a worker receives, with their columns and flags."""
        with millrace.Client(f"ws://127.0.0.1:{self.served.port}").open(rate=rate, channels=channels,
                                                                         channel="mean" if channels > 1 else None) as stream:
            stream.send(samples)
            stream.end()
            rows = []
            while not rows or not rows[-1][1] & millrace.Flag.END:
                batch = self.batch(worker)
                rows += [(batch.data[i].tobytes(), int(batch.flags[i]), int(batch.size[i])) for i in range(len(batch.framed))]
                batch.done()
            return rows


class Conversion(DatasetTest, Service):
    def setUp(self):
        DatasetTest.setUp(self)

    def write(self):
        """A file of each kind, and their samples."""
        samples = [noise(i, 1.234, *kind) for i, kind in enumerate(KINDS)]
        for i, (frames, (rate, _)) in enumerate(zip(samples, KINDS)):
            write_wav(self.folder / "speech" / f"{i}.wav", frames, rate)
        return samples

    def dataset(self, streams="speech", **keys):
        keys = {"rate": 16000, "channels": 1, "chunk": RULE, "convert": True, "shuffle": False, **keys}
        return self.data(str(self.folder / streams), **keys)

    def test_rows_are_those_that_the_service_cuts(self):
        Service.setUp(self)
        worker = self.worker()
        expected = [self.served_rows(worker, frames, *kind) for frames, kind in zip(self.write(), KINDS)]
        data = self.dataset(slots=1)
        found = [[] for _ in KINDS]
        for batch in data:
            for i, row in enumerate(batch.framed):
                found[row.stream].append((batch.data[i].tobytes(), int(batch.flags[i]), int(batch.size[i])))
        self.assertEqual(found, expected)

    def test_a_stream_is_converted_from_its_begin_after_a_seek_and_in_any_order(self):
        self.write()
        data = self.dataset()
        whole = contents(data)
        for step in len(whole) - 3, 5, 1:
            fresh = self.dataset()
            go(fresh, 0, step)
            self.assertEqual(contents(fresh), whole[step:])
        frames = {(row.stream, row.begin): batch.data[i].tobytes() for batch in self.dataset(slots=1)
                  for i, row in enumerate(batch.framed)}
        random = self.dataset(mode="stateless", slots=None, rows=3, shuffle=True, seed=5)
        seen = {(row.stream, row.begin): batch.data[i].tobytes() for batch in random for i, row in enumerate(batch.framed)}
        self.assertEqual(seen, frames)

    def test_converted_files_are_listed_once_and_not_in_the_processes_of_a_program(self):
        self.write()
        with self.assertLogs("millrace", "WARNING") as logged:
            data = self.dataset()
        self.assertEqual(len(logged.output), 1)
        self.assertIn("4 of 4 files are converted to 16000 Hz and 1 channel: ", logged.output[0])
        with self.assertNoLogs("millrace", "WARNING"):
            data.copy(rank=1, world=2)

    def test_the_plan_knows_what_is_converted(self):
        write_wav(self.folder / "speech" / "0.wav", noise(1, 1, 44100, 1), 44100)
        write_wav(self.folder / "same" / "0.wav", noise(1, 1, 16000, 1))
        converted, plain = self.dataset(slots=1), self.dataset("same", slots=1, convert=False)
        self.assertEqual([row.size for batch in converted for row in batch.framed],
                         [row.size for batch in plain for row in batch.framed])
        with self.assertRaisesRegex(millrace.PlanDiffers, "catalog is"):
            converted.load_state_dict(plain.state_dict())
        converted.load_state_dict(self.dataset(slots=1).state_dict())
        again = pickle.loads(pickle.dumps(converted))
        self.addCleanup(again.close)
        self.assertEqual(contents(again), contents(self.dataset(slots=1)))
        self.dataset("same", slots=1).load_state_dict(plain.state_dict())  # nothing is converted there

    def test_companions_have_the_lengths_after_the_conversion(self):
        write_wav(self.folder / "speech" / "0.wav", noise(1, 1, 44100, 2), 44100)
        np.save(self.folder / "0.npy", np.arange(100, dtype=np.int64))
        (self.folder / "labels").mkdir()
        (self.folder / "0.npy").rename(self.folder / "labels" / "0.npy")
        data = self.dataset(slots=1, companions={"vad": str(self.folder / "labels")})
        self.assertEqual(data.companions["vad"].frames_per_entry, 160)
        np.testing.assert_array_equal(np.concatenate([batch.companions["vad"][0, :, 0] for batch in data]), np.arange(100))

    def test_files_that_cannot_be_converted_are_an_error(self):
        write_wav(self.folder / "speech" / "0.wav", noise(1, 0.1, 44100, 1), 44100)
        with self.assertRaisesRegex(ValueError, "0.wav: has 1 channel; the pipeline takes 2"):
            self.dataset(channels=2)
        with self.assertRaisesRegex(ValueError, "set convert = true"):
            self.dataset(convert=False)
        with self.assertRaisesRegex(ValueError, "only audio is converted"):
            self.dataset(channels=None, dim=1)


if __name__ == "__main__":
    unittest.main()
