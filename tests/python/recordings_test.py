# SPDX-License-Identifier: Apache-2.0
"""millrace.recordings on files of the writer."""
import dataclasses
import gc
import os
import resource
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import millrace
import numpy as np


def written(test, *what):
    """Returns a directory with recording files, removed after the test."""
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    subprocess.run([os.environ["WRITE_RECORDING"], folder.name, *map(str, what)], check=True)
    return Path(folder.name)


class Example(unittest.TestCase):
    """The stream of docs/recording_format.md."""

    def setUp(self):
        self.recordings = millrace.recordings.open(written(self, "example"))
        (self.stream,) = self.recordings

    def test_a_stream_has_the_facts_of_its_open(self):
        stream = self.stream
        self.assertEqual((stream.number, stream.name, stream.pipeline), (17, "call-4711", "asr"))
        self.assertEqual((stream.meta, stream.rule), ({"user": "ada"}, {"size": 4}))
        self.assertEqual(stream.client, {"format": "mulaw", "rate": 8000, "channels": 1})
        self.assertEqual((stream.rate, stream.values, stream.features), (8000, 1, False))
        self.assertEqual((stream.dtype, stream.length, stream.opened), (np.int16, 6, 1_760_000_000))
        self.assertEqual((stream.whole, stream.open), (False, False))
        self.assertIn("17 'call-4711': 6 frames", repr(stream))

    def test_events_have_their_places(self):
        self.assertEqual(
            [dataclasses.astuple(event) for event in self.stream.events()],
            [("open", "client", 0, None, 0.0, 0, 0, None),
             ("frames", "client", 4, None, 0.01, 0, 0, None),
             ("message", "client", 17, None, 0.015, 4, 4, {"words": ["Ada"]}),
             ("flush", "client", 0, 7, 0.02, 4, 4, None),
             ("reset", "recorder", 0, None, 0.5, 4, 4, None),
             ("gap", "load", 160, None, 0.5, 4, 4, None),
             ("frames", "client", 2, None, 0.51, 164, 4, None),
             ("end", "client", 0, None, 0.52, 166, 6, None)])

    def test_missing_parts_are_named(self):
        self.assertEqual([dataclasses.astuple(part) for part in self.stream.missing()], [(4, 4, 1, "not recorded: queue_full")])

    def test_answers_are_values(self):
        self.assertEqual([dataclasses.astuple(answer) for answer in self.stream.answers()], [(0, 31, "json", {"text": "yes"})])

    def test_frames_are_arrays_that_cannot_be_written(self):
        frames = self.stream.frames()
        self.assertEqual((frames.shape, frames.dtype, frames.tolist()), ((6, 1), np.int16, [[1], [2], [3], [4], [5], [6]]))
        self.assertFalse(frames.flags.writeable)
        self.assertFalse(self.stream.frames(1, 3).flags.writeable)

    def test_frames_in_one_chunk_are_not_copied(self):
        def addresses(begin, end):
            return {self.stream.frames(begin, end).__array_interface__["data"][0] for _ in range(3)}

        (begin,), (second,) = addresses(0, 4), addresses(1, 4)
        self.assertEqual(second, begin + 2)
        kept = [self.stream.frames(3, 5) for _ in range(3)]
        self.assertEqual(len({array.__array_interface__["data"][0] for array in kept}), 3)
        self.assertEqual(kept[0].tolist(), [[4], [5]])

    def test_frames_that_are_not_there_are_refused(self):
        self.assertEqual(self.stream.frames(6).shape, (0, 1))
        for begin, end, words in ((0, 7, "has 6 frames"), (4, 3, "has 6 frames"), (7, None, "has 6 frames"),
                                  (-1, None, "at least 0"), (0, -1, "at least 0")):
            with self.subTest(begin=begin, end=end), self.assertRaisesRegex(ValueError, words):
                self.stream.frames(begin, end)

    def test_the_rows_of_a_stream_are_cut_from_its_events(self):
        events = [(event.kind, event.count) for event in self.stream.events()[1:]]
        rows = millrace.chunks(self.stream.rule, events)
        self.assertEqual([row[1:5] for row in rows if row[3]], [[0, 0, 4, 0], [164, 0, 2, 0]])


class Moved(unittest.TestCase):
    """A stream that was lost at position 14, and opened anew at position 8."""

    def setUp(self):
        self.recordings = millrace.recordings.open(written(self, "moved"))
        (self.stream,) = self.recordings

    def test_its_parts_are_one_stream(self):
        self.assertEqual(len(self.recordings), 1)
        self.assertEqual([self.recordings[number].number for number in (1, 2)], [1, 1])
        self.assertEqual([stream.number for stream in self.recordings.named(self.stream.name)], [1])
        self.assertEqual((self.stream.key, self.stream.whole), ("0" * 32, True))
        self.assertEqual([dataclasses.astuple(part) for part in self.stream.parts], [(1, 0, 0, 0, 14), (2, 3, 8, 2, 3)])

    def test_its_frames_and_events_come_once(self):
        self.assertEqual(self.stream.frames()[:, 0].tolist(), list(range(1, 12)))
        self.assertEqual(self.stream.length, 11)
        self.assertEqual(
            [(event.kind, event.count, event.at, event.position, event.frame) for event in self.stream.events()],
            [("open", 0, 1.0, 0, 0), ("frames", 8, 1.0, 0, 0), ("open", 8, 31.0, 8, 8), ("frames", 3, 31.0, 8, 8),
             ("end", 0, 31.0, 11, 11)])
        self.assertEqual([answer.seq for answer in self.stream.answers()], [1, 2])

    def test_a_dataset_has_the_frames_of_both_parts_for_rows_and_once_for_whole_streams(self):
        directory = written(self, "moved")
        with millrace.Dataset(str(directory), chunk={"size": 4, "right": 2}, slots=1, shuffle=False) as dataset:
            rows = [(row.seq, row.begin, row.size, row.right) for batch in dataset for row in batch.framed]
        self.assertEqual(rows, [(0, 0, 4, 2), (1, 4, 4, 2), (2, 8, 3, 0)])
        with millrace.Dataset(str(directory), chunk=None, mode="stateless", rows=1) as dataset:
            self.assertEqual([batch.size.tolist() for batch in dataset], [[11]])


class Directory(unittest.TestCase):
    def test_streams_are_found_by_number_and_name(self):
        recordings = millrace.recordings.open(written(self, "streams", 5, 3, 100))
        self.assertEqual(len(recordings), 5)
        self.assertEqual([stream.number for stream in recordings], [1, 2, 3, 4, 5])
        self.assertEqual(recordings[3].name, "call-3")
        self.assertEqual([stream.number for stream in recordings.named("call-4")], [4])
        self.assertEqual(recordings.named("call-6"), [])
        self.assertTrue(all(stream.whole and stream.length == 300 for stream in recordings))
        for number in (0, 6, -1):
            with self.assertRaises(KeyError):
                recordings[number]

    def test_an_array_is_valid_as_long_as_it_is_used(self):
        directory = written(self, "streams", 2, 3, 1000)
        recordings = millrace.recordings.open(str(directory))
        array = recordings[1].frames(0, 1000)
        expected = array.copy()
        for file in directory.glob("*.mcap"):
            file.unlink()
        self.assertTrue(recordings.refresh())
        self.assertEqual(len(recordings), 0)
        del recordings
        gc.collect()
        np.testing.assert_array_equal(array, expected)

    def test_a_stream_stays_readable_if_its_files_are_deleted(self):
        directory = written(self, "streams", 1, 3, 1000)
        recordings = millrace.recordings.open(directory)
        stream = recordings[1]
        before = stream.events()
        for file in directory.glob("*.mcap"):
            file.unlink()
        recordings.refresh()
        self.assertEqual(stream.events(), before)
        self.assertEqual(stream.frames().shape, (3000, 1))

    def test_a_file_that_cannot_be_opened_is_an_error_and_no_missing_part(self):
        stream = millrace.recordings.open(written(self, "streams", 1, 3, 100))[1]
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertEqual(limits[0], limits[1])  # raised by open()
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with self.assertRaisesRegex(OSError, "0000000001.mcap: Too many open files"):
                stream.frames()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        self.assertEqual((len(stream.frames()), stream.whole), (300, True))

    def test_a_stream_whose_file_was_deleted_before_it_was_read_is_not_whole(self):
        directory = written(self, "streams", 1, 3, 100)
        stream = millrace.recordings.open(directory)[1]
        self.assertTrue(stream.whole)
        (directory / "0000000001.mcap").unlink()
        self.assertEqual((len(stream.frames()), stream.whole, stream.missing()[0].why), (0, False, "deleted"))

    def test_threads_share_the_recordings(self):
        recordings = millrace.recordings.open(written(self, "streams", 8, 4, 500))
        sums = {}

        def read(number):
            sums[number] = int(recordings[number].frames().astype(np.int64).sum())

        threads = [threading.Thread(target=read, args=(number,)) for number in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sums, {stream.number: int(stream.frames().astype(np.int64).sum()) for stream in recordings})

    def test_a_file_that_cannot_be_read_is_named(self):
        directory = written(self, "streams", 1, 1, 10)
        (directory / "0000000002.mcap").write_text("This is text.")
        recordings = millrace.recordings.open(directory)
        self.assertEqual(len(recordings), 1)
        self.assertEqual(len(recordings.problems), 1)
        self.assertIn("0000000002.mcap", recordings.problems[0])

    def test_a_directory_that_cannot_be_read_is_named(self):
        with self.assertRaisesRegex(OSError, "/missing/recordings"):
            millrace.recordings.open("/missing/recordings")


if __name__ == "__main__":
    unittest.main()
