# SPDX-License-Identifier: Apache-2.0
"""Streams of arrays and of other toolkits, with the real libraries."""
import contextlib
import io
import os
import unittest

import h5py
import kaldiio
import lhotse
import numpy as np
import soundfile
from datasets import DatasetTest, arrays, frames_of, write_wav
from returnn.datasets.hdf import SimpleHDFWriter

import millrace

LENGTHS = 10, 7, 21, 4


def features(dim=3, lengths=LENGTHS, dtype=np.float32):
    return [(np.arange(n * dim).reshape(n, dim) + 1000 * i + 1).astype(dtype) for i, n in enumerate(lengths)]


class Precision(DatasetTest):
    def test_a_file_of_more_than_16_bits_makes_all_frames_f32(self):
        write_wav(self.folder / "speech" / "0.wav", np.array([1, 2, 3], np.int16))
        path = str(self.folder / "speech")
        self.assertEqual(self.data(path, slots=1).dtype, np.int16)
        before = self.data(path, slots=1, frames="s16").state_dict()
        self.data(path, slots=1).load_state_dict(before)  # checkpoints of 16-bit files keep loading
        for subtype, form in ("PCM_24", "WAV"), ("PCM_24", "FLAC"), ("FLOAT", "WAV"), ("DOUBLE", "WAV"):
            deep = self.folder / "speech" / f"1.{form.lower()}"
            soundfile.write(deep, np.full(8, 2**-20), 16000, subtype, format=form)
            with self.subTest(subtype), self.assertNoLogs("millrace", "WARNING"):
                for frames in {}, {"frames": "auto"}, {"dtype": "f32"}:
                    data = self.data(path, slots=1, **frames)
                    self.assertEqual(data.dtype, np.float32)
                    rows = {row.stream: batch.data[0, 2:, 0].tolist() for batch in data for row in batch.framed}
                    self.assertEqual(rows, {0: [2**-15, 2**-14, 3 * 2**-15, 0], 1: [2**-20] * 4})
                for frames in {"frames": "s16"}, {"dtype": "s16"}:
                    self.assertEqual({int(batch.data.max()) for batch in self.data(path, slots=1, **frames)}, {0, 3})
            deep.unlink()

    def test_one_type_for_all_catalogs(self):
        write_wav(self.folder / "plain" / "0.wav", np.array([1, 2, 3], np.int16))
        (self.folder / "deep").mkdir()
        soundfile.write(self.folder / "deep" / "1.wav", np.full(8, 2**-20), 16000, "FLOAT")
        plain, deep = str(self.folder / "plain"), str(self.folder / "deep")
        for streams in ([plain, deep], [deep, plain]):
            self.assertEqual(self.data(streams, slots=2).dtype, np.float32)
        mixed = self.data([plain, [np.array([4, 5], np.int16)], deep], slots=2)
        self.assertEqual(sorted({float(value) for batch in mixed for value in batch.data.flat}),
                         [0, 2**-20, 2**-15, 2**-14, 3 * 2**-15, 4 * 2**-15, 5 * 2**-15])


class Catalogs(DatasetTest):
    def check(self, streams, expected, names, **keys):
        """Checks that the bodies of each stream, put together, are the array; and the names."""
        data = self.data(streams, **keys)
        parts = {}
        for batch in data:
            for number, row in enumerate(batch.framed):
                parts.setdefault(row.stream, {})[row.begin] = batch.data[number, 2:2 + row.size].copy()
        self.assertEqual(len(parts), len(expected))
        for stream, array in enumerate(expected):
            found = np.concatenate([parts[stream][begin] for begin in sorted(parts[stream])])
            np.testing.assert_array_equal(found, array.reshape(len(array), -1))
        self.assertEqual([data.name(i) for i in range(data.streams)], names)
        return data

    def test_a_list_of_arrays(self):
        data = self.check(arrays(*LENGTHS), arrays(*LENGTHS), ["0", "1", "2", "3"])
        self.assertEqual((data.channels, data.dim, data.rate, data.dtype), (1, None, 16000, np.int16))
        data = self.check(features(), features(), ["0", "1", "2", "3"])
        self.assertEqual((data.channels, data.dim, data.rate, data.dtype), (None, 3, 100, np.float32))
        data = self.check(features(2), features(2), ["0", "1", "2", "3"], channels=2, rate=8000)
        self.assertEqual((data.channels, data.dim, data.rate), (2, None, 8000))

    def test_arrays_that_are_not_contiguous_or_of_another_type_are_converted(self):
        expected = features()
        strided = [np.repeat(array, 2, axis=0)[::2] for array in expected]
        self.check(strided, expected, ["0", "1", "2", "3"])
        self.check([array.astype(np.float64) for array in expected], expected, ["0", "1", "2", "3"])
        samples = arrays(*LENGTHS)
        self.check(samples, [array / np.float32(32768) for array in samples], ["0", "1", "2", "3"], frames="f32")

    def test_npy_files_are_read_or_mapped(self):
        for i, array in enumerate(features()):
            (self.folder / "npy" / "sub").mkdir(parents=True, exist_ok=True)
            np.save(self.folder / "npy" / "sub" / f"{i}.npy", np.asfortranarray(array) if i == 2 else array)
        streams = millrace.catalogs.NpyFiles(self.folder / "npy", rate=50)
        self.assertIsInstance(streams._place(0), tuple)
        self.assertIsNone(streams._place(2))
        for mapped in False, True:
            self.assertEqual(self.check(streams, features(), [f"sub/{i}" for i in range(4)], mapped=mapped).rate, 50)
        with self.assertRaisesRegex(FileNotFoundError, "no .npy files"):
            millrace.catalogs.NpyFiles(self.folder / "none")

    def test_npy_files_that_are_cut_are_errors_of_their_streams(self):
        path = self.folder / "cut.npy"
        for order in np.ascontiguousarray, np.asfortranarray:
            for dtype in np.float32, np.float64:
                np.save(path, order(np.ones((100_000, 4), dtype)))
                data = self.data(millrace.catalogs.NpyFiles([path]), slots=1)
                batches = iter(data)
                next(batches)
                os.truncate(path, 100_000)
                with self.assertRaisesRegex(millrace.DataError, "was cut"):
                    for _ in batches:
                        pass

    def test_hdf5_of_returnn_with_targets_as_companions(self):
        path = str(self.folder / "data.hdf")
        with contextlib.redirect_stdout(io.StringIO()):
            writer = SimpleHDFWriter(path, dim=3, ndim=2, extra_type={"classes": (10, 1, "int32"), "more": (2, 2, "float32")})
            for i, array in enumerate(features()):
                classes = (np.arange(len(array)) % 10).astype(np.int32)
                writer.insert_batch(array[None], seq_len={0: [len(array)]}, seq_tag=[f"seq-{i}"],
                                    extra={"classes": classes[None], "more": array[None, :, :2]})
            writer.close()
        data = self.check(millrace.catalogs.Hdf5(path), features(), [f"seq-{i}" for i in range(4)])
        data.seek(0)
        for batch in data:
            for number, row in enumerate(batch.framed):
                positions = np.arange(row.begin, row.begin + row.size)
                np.testing.assert_array_equal(batch.companions["classes"][number, :row.size, 0], positions % 10)
                np.testing.assert_array_equal(batch.companions["more"][number, :row.size],
                                              batch.data[number, 2:2 + row.size, :2])
        self.assertEqual(list(millrace.catalogs.Hdf5(path, companions=["more"]).companions), ["more"])
        with self.assertRaisesRegex(ValueError, "no target 'x'; targets: classes, more"):
            millrace.catalogs.Hdf5(path, companions=["x"])

    def test_hdf5_without_chunks_is_read_in_place(self):
        path = self.folder / "plain.hdf"
        with h5py.File(path, "w") as file:
            file["inputs"] = np.concatenate(features())
            file["seqLengths"] = np.array(LENGTHS, np.int32)[:, None]
            file["seqTags"] = [f"tag {i}".encode() for i in range(4)]
        streams = millrace.catalogs.Hdf5(path)
        self.assertIsInstance(streams._place(1), tuple)
        self.check(streams, features(), [f"tag {i}" for i in range(4)])

    def test_kaldi_plain_and_compressed(self):
        for method in None, 2, 3:
            # Files of their own: threads may still fill batches of the files before.
            ark, scp = self.folder / f"{method}.ark", self.folder / f"{method}.scp"
            with kaldiio.WriteHelper(f"ark,scp:{ark},{scp}", compression_method=method) as writer:
                for i, array in enumerate(features()):
                    writer(f"utt-{i}", array)
            expected = [np.asarray(matrix) for matrix in kaldiio.load_scp(str(scp)).values()]
            streams = millrace.catalogs.Kaldi(scp)
            self.assertEqual(isinstance(streams._place(0), tuple), method is None)
            self.check(streams, expected, [f"utt-{i}" for i in range(4)])

    def test_a_kaldi_matrix_of_another_width_is_an_error_that_names_it(self):
        one, other = np.ones((20, 4), np.float32), np.ones((20, 5), np.float32)
        for method in None, 2:
            path = self.folder / f"widths{method}"
            kaldiio.save_ark(f"{path}.ark", {"a": one, "bb": other}, scp=f"{path}.scp", compression_method=method)
            with self.assertRaisesRegex(ValueError, "'bb' has frames of 5 values .float32.; stream 'a' has frames of 4"):
                self.data(millrace.catalogs.Kaldi(f"{path}.scp"))

    def test_the_form_of_each_array_is_compared(self):
        for first, other, text in ((features(3), features(2), "'1' has frames of 2 values"),
                                   (features(3), arrays(9, 9), "'1' has frames of 1 value "),
                                   (arrays(9, 9), [array / np.float32(9) for array in arrays(9, 9)], "float32")):
            with self.assertRaisesRegex(ValueError, text):
                self.data([first[0], other[1]])
            for i, array in enumerate((first[0], other[1])):
                np.save(self.folder / f"{i}.npy", array)
            with self.assertRaisesRegex(ValueError, text):
                self.data(millrace.catalogs.NpyFiles(self.folder))

    def test_names_of_streams_are_unique(self):
        kaldiio.save_ark(f"{self.folder}/a.ark", {"a": features()[0]}, scp=f"{self.folder}/a.scp")
        line = (self.folder / "a.scp").read_text()
        (self.folder / "a.scp").write_text(line + line)
        for streams in (millrace.catalogs.Kaldi(self.folder / "a.scp"),
                        millrace.catalogs.Arrays(features()[:2], names=["a", "a"])):
            with self.assertRaisesRegex(ValueError, 'two streams have the name "a"'):
                self.data(streams)

    def test_lengths_of_hdf5_that_do_not_fit_are_errors(self):
        for lengths, tags, text in (([4, 5], ["a"], "seqTags has 1 entries, and seqLengths 2"),
                                    ([4, -1], ["a", "b"], "'b' has a negative length"),
                                    ([4, 5], ["a", "b"], "inputs has 10 rows, and its lengths add up to 9")):
            with h5py.File(self.folder / "a.hdf", "w") as file:
                file["inputs"] = np.ones((10, 3), np.float32)
                file["seqLengths"], file["seqTags"] = np.array(lengths, np.int32), tags
            with self.assertRaisesRegex(ValueError, text):
                millrace.catalogs.Hdf5(self.folder / "a.hdf")

    def test_segments_of_kaldi_are_parts_of_the_audio(self):
        write_wav(self.folder / "long.wav", frames_of(0, 16000))
        (self.folder / "wav.scp").write_text(f"rec {self.folder}/long.wav\n")
        (self.folder / "segments").write_text("u1 rec 0.25 0.5\nu2 rec 0.5 1\n")
        with self.assertRaisesRegex(ValueError, "its folder has segments"):
            millrace.catalogs.Kaldi(self.folder / "wav.scp")
        data = self.data(millrace.catalogs.Kaldi(self.folder / "wav.scp", segments=self.folder / "segments"))
        self.assertEqual(([data.name(0), data.name(1)], data.rate), (["u1", "u2"], 16000))
        self.assertEqual(data.next().framed["begin"].tolist(), [0, 0])
        for times, text in (("0.25 1.6", "'u1' ends at 1.6 s"), ("1 1.2", "'u1' begins at 1 s"), ("0.5 -2", "a later end"),
                            ("0.99999 1.2", "'u1' begins at 0.99999 s"), ("0.50001 0.50002", "has no samples at 16000 Hz"),
                            ("0.5 inf", "a later end"), ("inf -1", "a later end"), ("nan 1", "a later end")):
            (self.folder / "segments").write_text(f"u1 rec {times}\n")
            with self.assertRaisesRegex(ValueError, text):
                self.data(millrace.catalogs.Kaldi(self.folder / "wav.scp", segments=self.folder / "segments"))

    def test_a_segment_of_kaldi_may_end_a_little_behind_the_audio(self):
        write_wav(self.folder / "long.wav", frames_of(0, 16000))
        (self.folder / "wav.scp").write_text(f"rec {self.folder}/long.wav\n")
        (self.folder / "segments").write_text("u1 rec 0.25 1.5\nu2 rec 0.5 -1\nu3 rec 0 0.5\n")
        streams = millrace.catalogs.Kaldi(self.folder / "wav.scp", segments=self.folder / "segments")
        self.assertEqual([streams.frames(i) for i in range(3)], [12000, 8000, 8000])

    def test_names_of_files_need_not_be_utf_8(self):
        folder = os.fsencode(self.folder / "names")
        os.makedirs(folder)
        write_wav(self.folder / "a.wav", frames_of(0, 20))
        os.rename(self.folder / "a.wav", os.path.join(folder, b"gr\xf6.wav"))
        np.save(os.fsdecode(os.path.join(folder, b"gr\xf6.npy")), frames_of(0, 20))
        for streams in self.folder / "names", millrace.catalogs.NpyFiles(self.folder / "names"):
            data = self.data(streams, slots=1)
            opened = [stream for batch in data for stream in batch.opened]
            self.assertEqual([os.fsencode(data.name(0)), os.fsencode(opened[0].name)], [b"gr\xf6"] * 2)
        os.truncate(os.path.join(folder, b"gr\xf6.wav"), 50)
        with self.assertRaises(millrace.DataError) as raised:
            list(self.data(self.folder / "names", slots=1))
        self.assertIn(b"gr\xf6.wav", os.fsencode(str(raised.exception)))

    def test_streams_without_frames_are_named_once(self):
        with self.assertLogs("millrace", "WARNING") as logged:
            self.data([*arrays(9), np.zeros(0, np.int16)])
        self.assertEqual([record.getMessage() for record in logged.records if "frames" in record.getMessage()],
                         ['1 of 2 streams has no frames, and will be in no batch: "1"'])

    def test_lhotse_cuts(self):
        for i, array in enumerate(arrays(*LENGTHS)):
            write_wav(self.folder / f"{i}.wav", array)
        recordings = [lhotse.Recording.from_file(self.folder / f"{i}.wav", recording_id=f"r{i}") for i in range(4)]
        cuts = lhotse.CutSet.from_cuts(
            lhotse.MonoCut(f"cut {i}", 0, recording.duration, 0, recording=recording, supervisions=[
                lhotse.SupervisionSegment(f"s{i}", f"r{i}", 0, recording.duration, text=f"text {i}")])
            for i, recording in enumerate(recordings))
        expected = [array / np.float32(32768) for array in arrays(*LENGTHS)]
        data = self.check(millrace.catalogs.LhotseCuts(cuts), expected, [f"cut {i}" for i in range(4)])
        self.assertEqual(data.meta(2), {"text": "text 2"})
        cuts.to_file(self.folder / "cuts.jsonl.gz")
        for given in cuts, self.folder / "cuts.jsonl.gz", [str(self.folder / "cuts.jsonl.gz")]:
            self.check(given, expected, [f"cut {i}" for i in range(4)])
        data.seek(0)
        for batch in data:
            for number, (row, cut) in enumerate(zip(batch.framed, data.cuts(batch), strict=True)):
                np.testing.assert_array_equal(cut.load_audio()[0], batch.data[number, 2:2 + row.size, 0])
                self.assertEqual(cut.recording.id, f"r{row.stream}")

    def test_audio_files_without_a_folder(self):
        for i, array in enumerate(arrays(*LENGTHS)):
            write_wav(self.folder / "speech" / f"{i}.wav", array)
        paths = [self.folder / "speech" / f"{i}.wav" for i in range(4)]
        self.check([str(paths[2]), paths[0]], [arrays(*LENGTHS)[i] for i in (2, 0)], ["2", "0"])
        for single in paths[1], str(paths[1]), [paths[1]]:
            self.check(single, [arrays(*LENGTHS)[1]], ["1"], slots=1)
        self.check([(paths[1], 1), (str(paths[2]), 2)], arrays(*LENGTHS)[1:3], ["1", "2"], slots=1)
        self.assertFalse((self.folder / "speech" / ".millrace").exists())
        (self.folder / "m.csv").write_text('path,text\n"speech/3.wav","a, b"\n')
        data = self.check(self.folder / "m.csv", arrays(*LENGTHS)[3:], ["speech/3"], slots=1)
        self.assertEqual(data.meta(0), {"text": "a, b"})
        with self.assertRaisesRegex(ValueError, "two files have the name"):
            self.data([paths[0], paths[0]])

    def test_any_object_with_the_functions_is_a_catalog(self):
        class Ramps:
            rate = 25

            def __len__(self):
                return 3

            def frames(self, i):
                return 100_000 * i

            def name(self, i):
                return f"ramp {i}"

            def read(self, i, begin, n):
                return np.arange(begin, begin + n, dtype=np.float32) + i

        data = self.data(Ramps(), chunk={"size": 1000})
        self.assertEqual(data.rate, 25)
        seen = {1: 0, 2: 0}
        for batch in data:
            for number, row in enumerate(batch.framed):
                np.testing.assert_array_equal(batch.data[number, :row.size, 0],
                                              np.arange(row.begin, row.begin + row.size, dtype=np.float32) + row.stream)
                seen[row.stream] += row.size
        self.assertEqual(seen, {1: 100_000, 2: 200_000})


if __name__ == "__main__":
    unittest.main()
