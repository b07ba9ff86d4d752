# SPDX-License-Identifier: Apache-2.0
"""Streams that cannot be delivered and are skipped, and the states after a seek."""
import contextlib
import json
import logging
import pickle
import tempfile
import unittest
from pathlib import Path

import numpy as np
from datasets import DatasetTest, arrays, contents, go, rows_of, write_wav
from harness import SystemTest, wait_for
from training_server import TrainServer, write_speech

import millrace

LENGTHS = (10, 17, 21, 14, 30, 9)
STATELESS = {"mode": "stateless", "slots": None, "rows": 3}
MODES = ({}, STATELESS, {**STATELESS, "chunk": None}, {**STATELESS, "mode": "returnn-torch", "chunk": {"size": 4}},
         {**STATELESS, "buckets": [5]})
LOST = "worker_lost"


class Skipping(DatasetTest):
    def folder_of_files(self, name="speech"):
        for number, frames in enumerate(arrays(*LENGTHS)):
            write_wav(self.folder / name / f"{number}.wav", frames)
        return self.folder / name

    def skipping(self, streams, **keys):
        return self.data(streams, **{"on_error": "skip", "seed": 3, **keys})

    def test_a_missing_file_costs_its_own_rows_only_in_every_mode(self):
        folder = self.folder_of_files()
        for keys in MODES:
            with self.subTest(keys):
                clean = [list(batch.framed) for batch in self.skipping(folder, **keys)]
                shapes = [batch.data.shape for batch in self.skipping(folder, **keys)]
                data = self.skipping(folder, **keys)
                (folder / "2.wav").rename(self.folder / "away")
                try:
                    with self.assertLogs("millrace", logging.WARNING) as logged:
                        batches = [(batch.data.shape, rows_of(batch), batch.slot.tolist()) for batch in data]
                        again = [batch.step for batch in data]
                finally:
                    (self.folder / "away").rename(folder / "2.wav")
                self.assertEqual([shape for shape, *_ in batches], shapes)
                self.assertEqual([[row[0] for row in rows] for _, rows, _ in batches],
                                 [[row.stream for row in rows if row.stream != 2] for rows in clean])
                self.assertEqual(len(again), len(data))
                first, second = data.failed
                self.assertEqual(tuple(first)[0::2], (0, 2))
                self.assertEqual((first.reason, second.epoch, data.stats.failed), ("read", 1, 2))
                self.assertIn("2.wav", first.message)
                self.assertEqual(len([line for line in logged.output if "skipped" in line]), 1)

    def test_companions_and_augment_fail_as_frames_do(self):
        class Labels:
            values, element, frames_per_entry, entries_per_frame = 1, "s16", 1, 1

            def read(self, i, begin, n):
                if i == 2:
                    raise OSError("labels are gone")
                return np.full((n, 1), i, np.int16)

        def augment(stream, generator):
            if stream.stream == 2:
                raise ZeroDivisionError("division")
            return stream

        class Length:
            def frames(self, n, generator):
                if n == 21:
                    raise ZeroDivisionError("division")
                return n

            def __call__(self, stream, generator):
                return stream

        labels = {"labels": {"source": Labels(), "frames_per_entry": 1}}
        for keys, reason in (({"companions": labels}, "read"), ({"augment": augment}, "function"),
                             ({"augment": Length()}, "function")):
            for mode in MODES[:2]:
                with self.subTest(reason, mode=mode):
                    data = self.skipping(arrays(*LENGTHS), **keys, **mode)
                    clean = self.skipping(arrays(*LENGTHS), **mode)
                    self.assertEqual([[row[0] for row in rows_of(batch)] for batch in data],
                                     [[row[0] for row in rows_of(batch) if row[0] != 2] for batch in clean])
                    self.assertEqual([(failed.stream, failed.reason) for failed in data.failed], [(2, reason)])

    def test_a_stream_is_listed_once_per_epoch_also_if_its_rows_are_read_again(self):
        folder = self.folder_of_files()
        data = self.skipping(folder)
        (folder / "2.wav").unlink()
        for _ in range(3):
            data.seek(0)
            list(data)
        list(data)
        self.assertEqual([(failed.epoch, failed.stream) for failed in data.failed], [(0, 2), (1, 2)])
        self.assertEqual(data.stats.failed, 2)

    def test_other_values_are_refused(self):
        for given in "ignore", "", True:
            with self.assertRaisesRegex(ValueError, "on_error = .* must be raise or skip"):
                self.data(on_error=given)


class States(DatasetTest):

    def test_states_go_on_after_a_checkpoint_and_where_the_data_set_stands(self):
        streams = arrays(30, 30, 30, 30)
        data = self.data(streams, shuffle=False)
        whole = contents(data)
        go(data, 0, 5)
        self.assertEqual(contents(data), whole[5:])
        data.seek(0)
        for _ in range(5):
            data.next()
        data.seek(0, 5)
        self.assertEqual(contents(data), whole[5:])
        part = self.data(streams, shuffle=False, stride=2, first_step=1)
        part.seek(0, 5)
        self.assertEqual(contents(part), whole[5::2])

    def test_lost_states_stay_lost_until_a_batch_is_taken(self):
        data = self.data(arrays(30, 30, 30, 30), shuffle=False)
        data.seek(0, 5)
        data.seek(0, 5)
        data.close()
        again = pickle.loads(pickle.dumps(data))
        self.addCleanup(again.close)
        for each in data, again:
            self.assertTrue(each.next().reset.all())
            each.close()
            self.assertFalse(each.next().reset.any())
        data.seek(0, 5)
        state = json.loads(json.dumps(data.state_dict()))
        resumed = self.data(arrays(30, 30, 30, 30), shuffle=False)
        resumed.load_state_dict(state)
        self.assertTrue(resumed.next().reset.all())
        self.assertNotIn("resets", resumed.state_dict())
        data.seek(1, 0)
        self.assertNotIn(LOST, {row.reason for row in data.next().framed})


class Served(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.paths = write_speech(self.folder / "speech")

    def test_a_server_skips_and_its_trainers_list_the_streams(self):
        server = TrainServer(self.folder, more='on_error = "skip"')
        self.addCleanup(server.kill)
        own = millrace.Dataset(str(self.folder / "speech"), chunk={"size": "10ms"}, slots=4, dtype="f32", seed=7, on_error="skip")
        self.addCleanup(own.close)
        self.paths[3].unlink()
        expected = contents(own)
        for url in server.unix, server.tcp:
            data = millrace.Dataset(url)
            self.addCleanup(data.close)
            self.assertEqual(contents(data), expected)
            self.assertEqual(data.failed, own.failed)
            self.assertIn(self.paths[3].name, data.failed[0].message)
            self.assertEqual(data.stats.failed, 1)
            data.close()
        # Once per epoch: the server makes batches ahead, perhaps those of epoch 1 too.
        self.assertIn(server.metric("millrace_training_errors_total", '{reason="read"}'), (1, 2))
        wait_for(lambda: any("stream is skipped" in line for line in server.errors), "the log")
        self.assertEqual(len([line for line in server.errors if "stream is skipped" in line]), 1)

    def test_an_epoch_without_a_step_is_a_value_error(self):
        keys = {"mode": "stateless", "rows": 12}
        own = millrace.Dataset(str(self.folder / "speech"), **keys, rank=0, world=2)
        for begins in len, list, millrace.Dataset.next:
            with self.assertRaisesRegex(ValueError, "epoch 0 has no step: it has 1 batches for world = 2"):
                begins(own)


CONFIGURATION = """
[recording]
directory = "{directory}"
commit = "20ms"
[[pipeline]]
chunk = {{ size = 1600 }}
record = true
"""


class Recorded(SystemTest):
    def test_a_checkpoint_of_recordings_continues_with_its_own_streams(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        service = self.service(CONFIGURATION.format(directory=folder / "recordings"))
        self.tap(service, "default")
        client = millrace.Client(f"ws://127.0.0.1:{service.port}")

        def dataset():
            data = millrace.Dataset(folder / "recordings", chunk={"size": 1600}, slots=1, seed=2)
            self.addCleanup(data.close)
            return data

        def finished(count):
            with contextlib.suppress(ValueError):
                return len(millrace.recordings.open(folder / "recordings")) >= count and dataset().streams == count

        def record(*numbers):
            for number in numbers:
                with client.open(id=f"call-{number}") as stream:
                    stream.send(np.full(1600 * (2 + number), number, np.int16))
                    stream.end()
                    list(stream)

        with client.open(id="long") as long:  # begins first, and ends after the checkpoint
            long.send(np.ones(1600, np.int16))
            record(1, 2, 3)
            wait_for(lambda: finished(3), "the recordings")
            data = dataset()
            whole = contents(data) + contents(data)
            go(data, 0, 4)
            state = json.loads(json.dumps(data.state_dict()))
            long.end()
            list(long)
        record(4)
        wait_for(lambda: finished(5), "the recordings")
        data = dataset()
        self.assertEqual(data.streams, 5)
        data.load_state_dict(state)
        self.assertEqual((data.streams, data.epoch, data.step), (3, 0, 4))
        self.assertEqual(contents(data) + contents(data), whole[4:])
        data.load_state_dict(data.state_dict())
        other = millrace.Dataset(folder / "recordings", chunk={"size": 800}, slots=1, seed=2)
        self.addCleanup(other.close)
        with self.assertRaisesRegex(millrace.PlanDiffers, "chunk is "):
            other.load_state_dict(state)
        state["origin"]["streams"] = 4  # of which one was removed
        with self.assertRaisesRegex(millrace.PlanDiffers, "1 streams of the checkpoint were removed"):
            data.load_state_dict(state)
        del state["origin"]["streams"]
        with self.assertRaisesRegex(millrace.PlanDiffers, "another plan: 3 streams, the checkpoint has None"):
            data.load_state_dict(state)

    def test_another_number_of_files_is_named(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for number in range(2):
            write_wav(folder / f"{number}.wav", np.ones(40, np.int16))
        keys = {"chunk": {"size": 4}, "slots": 1}
        state = millrace.Dataset(folder, **keys).state_dict()
        write_wav(folder / "2.wav", np.ones(40, np.int16))
        with self.assertRaisesRegex(millrace.PlanDiffers, "another plan: 3 streams, the checkpoint has 2"):
            millrace.Dataset(folder, **keys).load_state_dict(state)
        state["origin"]["version"] = 1
        with self.assertRaisesRegex(millrace.PlanDiffers, "the version is 2 instead of 1: another release of Millrace"):
            millrace.Dataset(folder, **keys).load_state_dict(state)
