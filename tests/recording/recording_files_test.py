# SPDX-License-Identifier: Apache-2.0
"""Recording files that are read by PyPI's mcap, and by struct and zlib: independently of Millrace."""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import slices
from annotate import annotate
from slices import Answer, Closing, Event, Lost

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "recording_format.md"


def written(directory, *how):
    """A recording file by the program of this folder."""
    subprocess.run([os.environ["WRITE_RECORDING"], directory, *map(str, how)], check=True)
    return Path(directory) / "0000000001.mcap"


class Example(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.path = written(cls.directory, "example")

    def test_the_worked_example_of_the_document_is_this_file(self):
        block, = re.findall(r"<!-- worked example -->\n```\n(.*?)```", DOCUMENT.read_text(), re.S)
        self.assertEqual(block.splitlines(), annotate(self.path.read_bytes()))

    def test_every_value_is_read(self):
        meta = {"number": "17", "name": "call-4711", "pipeline": "asr", "rule": '{"size":4}', "frames": "s16 1 8000", "batches": "f32 64 16 4",
                "options": '{"user":"ada"}', "client": '{"format":"mulaw","rate":8000,"channels":1}',
                "opened": "1760000000000000000", "pad": " ", "steady": "5000000000"}
        second = 1_000_000_000
        for seeking in (True, False):
            first, last = slices.read(self.path, seeking)
            self.assertEqual((first.meta, first.number, first.wall), (meta, 0, 1_760_000_000 * second))
            self.assertEqual(first.events, [Event("open", "client", 0, None, 5 * second),
                                            Event("frames", "client", 4, None, 5 * second + 10_000_000),
                                            Event("message", "client", 17, None, 5 * second + 15_000_000, b'{"words":["Ada"]}'),
                                            Event("flush", "client", 0, 7, 5 * second + 20_000_000)])
            self.assertEqual((first.first_event, first.begin, first.size), (0, 0, 0))
            self.assertEqual(first.frames, b"\1\0\2\0\3\0\4\0")
            self.assertEqual((first.answers, first.lost, first.closing), ([], None, None))
            self.assertEqual((last.meta, last.number), (meta, 2))
            self.assertEqual([(event.kind, event.cause, event.count) for event in last.events],
                             [("gap", "load", 160), ("frames", "client", 2), ("end", "client", 0)])
            self.assertEqual((last.first_event, last.begin, last.frames), (5, 4, b"\5\0\6\0"))
            self.assertEqual(last.answers, [Answer(0, 31, "json", b'{"text":"yes"}')])
            self.assertEqual(last.lost, Lost(4, 4, "queue_full"))
            self.assertEqual(last.closing, Closing(3, 6, 160, 0x1234abcd, "end", True))

    def test_the_parts_of_the_streams_are_read(self):
        self.assertEqual(slices.parts(self.path), [slices.Part(17, 0, 2, 0, 0, 166, 6, 1, True, True, True)])
        self.assertEqual(slices.metadata(self.path)["file"], "1")

    def test_a_flipped_bit_is_noticed_or_changes_no_slice(self):
        whole, good = self.path.read_bytes(), slices.read(self.path)
        first_chunk = re.search(rb"\x81\x26\0{7}", whole).start()
        damaged = Path(self.directory) / "damaged.mcap"
        noticed, data = [], range(first_chunk, whole.rindex(b"\x0f\4\0\0\0\0\0\0\0"))
        for at in range(first_chunk, len(whole)):
            damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:])
            try:
                read = slices.read(damaged, seeking=False)
            except Exception:
                noticed.append(at)
            else:
                self.assertEqual(read, good)
        # Between the first chunk and the end of the data section, no byte may change unnoticed.
        self.assertEqual(noticed[:len(data)], list(data))


class Streams(unittest.TestCase):
    def check(self, streams, count, frames):
        with tempfile.TemporaryDirectory() as directory:
            path = written(directory, "streams", streams, count, frames)
            read, parts = slices.read(path), slices.parts(path)
            self.assertEqual(slices.read(path, seeking=False), read)
        self.assertEqual(len(read), streams * count)
        following = [0] * streams
        for piece in read:
            stream = int(piece.meta["number"])
            number = following[stream - 1]
            following[stream - 1] += 1
            self.assertEqual((piece.number, piece.begin), (number, number * frames))
            first = 31 * stream + 2 * piece.begin
            self.assertEqual(piece.frames, bytes(byte % 256 for byte in range(first, first + 2 * frames)))
        self.assertEqual([(part.stream, part.slices, part.end, part.complete) for part in parts],
                         [(stream, count, count * frames, True) for stream in range(1, streams + 1)])

    def test_slices_of_many_streams_are_read_seeking_and_from_front_to_back(self):
        for streams, count, frames in ((1, 1, 0), (1, 3, 100_000), (300, 7, 77), (40, 3, 1601)):
            self.check(streams, count, frames)

    def test_streams_that_were_opened_anew_begin_at_their_position(self):
        with tempfile.TemporaryDirectory() as directory:
            path = written(directory, "streams", 2, 2, 50, 1000, 7)
            read, parts = slices.read(path), slices.parts(path)
        self.assertEqual([(piece.first_event, piece.begin) for piece in read], [(0, 1000)] * 2 + [(2, 1050)] * 2)
        for piece in read[:2]:
            opened, frames = piece.events
            self.assertEqual((opened.kind, opened.count, opened.rows, frames.count), ("open", 1000, 7, 50))
        self.assertEqual([(part.begin, part.end, part.frames) for part in parts], [(1000, 1100, 100)] * 2)

    def test_the_file_is_little_larger_than_its_frames(self):
        # As many slices of 100 ms as go into 256 MiB.
        for streams, count, bound in ((2000, 41, 0.06), (10_000, 8, 0.10)):
            with tempfile.TemporaryDirectory() as directory:
                path = written(directory, "streams", streams, count, 1600)
                overhead = path.stat().st_size / (3200 * streams * count) - 1
            print(f"{streams} streams, 3200 bytes per slice: {overhead:.2%}, {3200 * overhead:.0f} bytes per slice")
            self.assertLess(overhead, bound)


if __name__ == "__main__":
    unittest.main()
