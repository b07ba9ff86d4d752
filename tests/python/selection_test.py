# SPDX-License-Identifier: Apache-2.0
"""Datasets of a part of the streams (split), and of long streams in several parts (max_stream)."""
import tempfile
import unittest
import wave
from pathlib import Path

import lhotse
import numpy as np

import millrace

CHUNK = {"size": 50}
LENGTHS = [230, 1000, 64, 3210, 999, 2000]


def arrays(count=6, seed=1):
    random = np.random.default_rng(seed)
    return [random.integers(-30000, 30000, LENGTHS[i % 6], np.int16) for i in range(count)]


def drawn(text):
    """The number from 0 to 1 that decides: FNV-1a of the length and the text, then a step of SplitMix64."""
    number = 0xCBF29CE484222325
    for byte in len(text).to_bytes(8, "little") + text.encode():
        number = (number ^ byte) * 0x100000001B3 % 2**64
    number = (number + 0x9E3779B97F4A7C15) % 2**64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return ((number ^ number >> 31) >> 11) * 2.0**-53


def streams_of(data):
    """The frames, labels and flags of the first row of each stream, by name."""
    frames, labels, first = {}, {}, {}
    for batch in data:
        for number, row in enumerate(batch.framed):
            name = data.name(row.stream)
            first.setdefault(name, row.flags)
            frames.setdefault(name, []).append(batch.data[number, :row.size, 0].copy())
            if "label" in batch.companions:
                count = int(data.companions["label"].entries_in(row.begin, row.size)[1])
                labels.setdefault(name, []).append(batch.companions["label"][number, :count, 0].copy())
    return {name: np.concatenate(part) for name, part in frames.items()}, \
        {name: np.concatenate(part) for name, part in labels.items()}, first


class Selection(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def data(self, streams, **keys):
        return millrace.Dataset(streams, **{"chunk": CHUNK, "slots": 2, "seed": 3, "progress": False, **keys})

    def test_a_part_of_a_split_has_the_streams_of_its_hash(self):
        split = {"valid": 0.2, "test": 0.3}
        parts = {part: streams_of(self.data(arrays(60), split=split, part=part))[0] for part in ("train", "valid", "test")}
        expected = {"test": [], "valid": [], "train": []}
        for i in range(60):
            number = drawn(str(i))
            expected["test" if number < 0.3 else "valid" if number < 0.5 else "train"].append(str(i))
        self.assertEqual({part: sorted(names) for part, names in parts.items()},
                         {part: sorted(names) for part, names in expected.items()})
        for part in parts.values():
            for name, frames in part.items():
                np.testing.assert_array_equal(frames, arrays(60)[int(name)])

    def test_parts_have_different_origins_and_a_checkpoint_of_one_is_refused_by_the_other(self):
        train = self.data(arrays(60), split={"valid": 0.4})
        valid = train.copy(part="valid")
        self.assertEqual(train.streams + valid.streams, 60)
        with self.assertRaises(millrace.PlanDiffers):
            valid.load_state_dict(train.state_dict())
        same = self.data(arrays(60), split={"valid": 0.4}, part="train")
        same.load_state_dict(train.state_dict())

    def test_the_parts_of_long_streams_have_their_frames_and_labels_and_begin_with_reset(self):
        rate, whole = 100, arrays()
        labels = [np.arange(-(-len(array) // 10)) for array in whole]
        data = self.data(whole, rate=rate, max_stream="10s", companions={"label": {"source": labels, "frames_per_entry": 10}})
        frames, entries, first = streams_of(data)
        expected = {}
        for i, array in enumerate(whole):
            for begin in range(0, len(array), 1000):
                expected[f"{i}@{begin // 100}s" if begin else str(i)] = i, begin
        self.assertEqual(sorted(frames), sorted(expected))
        self.assertIn("3@30s", frames)
        for name, (i, begin) in expected.items():
            np.testing.assert_array_equal(frames[name], whole[i][begin:begin + 1000])
            np.testing.assert_array_equal(entries[name], labels[i][begin // 10:][:100])
            self.assertEqual(first[name] & 3, millrace.Flag.START | millrace.Flag.RESET)
        with self.assertRaisesRegex(ValueError, 'max_stream = "10.05s", .* must be a multiple of the 10 frames'):
            data.copy(max_stream="10.05s")

    def test_augment_and_copies_get_the_parts(self):
        lengths = {}

        def seen(stream, generator):
            lengths[stream.name] = len(stream.frames)
            return stream

        data = self.data(arrays(), rate=100, max_stream="10s", augment=seen)
        for _ in data.copy(slots=1):
            pass
        self.assertEqual(lengths["3"], 1000)
        self.assertEqual(lengths["3@30s"], 210)

    def test_cuts_of_a_part_are_those_of_the_recording(self):
        recordings = []
        for i, array in enumerate(arrays()):
            path = self.folder / f"{i}.wav"
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 16000, len(array), "NONE", ""))
                file.writeframes(array.tobytes())
            recordings.append(lhotse.Recording.from_file(path, recording_id=f"r{i}"))
        cuts = lhotse.CutSet.from_cuts(lhotse.MonoCut(f"cut {i}", 0, recording.duration, 0, recording=recording, supervisions=[])
                                       for i, recording in enumerate(recordings))
        data = self.data(millrace.catalogs.LhotseCuts(cuts), max_stream=500, split={"valid": 0.3})
        self.assertEqual({data.name(i).partition("@")[0] for i in range(data.streams)},
                         {f"cut {i}" for i in range(6) if drawn(f"r{i}") >= 0.3})
        for batch in data:
            for number, (row, cut) in enumerate(zip(batch.framed, data.cuts(batch), strict=True)):
                np.testing.assert_array_equal(cut.load_audio()[0], batch.data[number, :row.size, 0])

    def test_a_part_that_needs_a_split_is_an_error(self):
        with self.assertRaisesRegex(ValueError, 'part = "valid" needs split'):
            self.data(arrays(), part="valid")
        with self.assertRaisesRegex(ValueError, 'part = "a" has none of the 6 streams'):
            self.data(arrays(), split={"a": 1e-9}, part="a")


if __name__ == "__main__":
    unittest.main()
