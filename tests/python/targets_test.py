# SPDX-License-Identifier: Apache-2.0
"""Targets of free length: they come with the row that ends their stream or segment."""
import json
import pickle
import unittest

import millrace.returnn
import millrace.torch
import numpy as np
import torch
from datasets import RULE, DatasetTest, arrays, frames_of, go, write_wav

import millrace
from millrace.targets import _begins_of

LENGTHS = 10, 8, 21, 4  # with bodies of 4 frames, two streams end in a marker row
TOKENS = [[7, 8, 9], [], [5], [1, 2]]


def letters(text):
    return [ord(letter) - ord("a") for letter in text]


class Segmented:
    """Streams with flushes, resets and gaps. An event is a kind and a count, as for millrace.chunks."""

    def __init__(self, *streams):
        self.streams = streams

    def __len__(self):
        return len(self.streams)

    def frames(self, i):
        return sum(count for kind, count in self.streams[i] if kind == "frames")

    def name(self, i):
        return str(i)

    def read(self, i, begin, n):
        return frames_of(i, self.frames(i))[begin:begin + n]

    def events(self, i):
        return [*self.streams[i], ("end", 0)]


class TargetsTest(DatasetTest):
    def given(self, data, name="tokens"):
        """The targets of an epoch: stream, begin of the row, and target."""
        found = []
        for batch in data:
            targets, lengths = batch.companions[name], batch.lengths[name]
            self.assertEqual((len(targets), len(lengths)), (batch.rows, batch.rows))
            self.assertEqual(targets.shape[1], max(0, *lengths))
            for i, row in enumerate(batch.framed):
                if lengths[i] >= 0:
                    found.append((row.stream, row.begin, targets[i, :lengths[i]].tolist()))
                self.assertFalse(targets[i, max(0, lengths[i]):].any())
            self.assertTrue((lengths[len(batch.framed):] == -1).all())
        return sorted(found)


class Streams(TargetsTest):
    def test_a_target_comes_with_the_last_row_of_its_stream(self):
        data = self.data(arrays(*LENGTHS), companions={"tokens": {"source": TOKENS, "per": "stream"}})
        expected = [(0, 8, TOKENS[0]), (1, 4, TOKENS[1]), (2, 20, TOKENS[2]), (3, 0, TOKENS[3])]
        self.assertEqual(self.given(data), expected)
        self.assertEqual(self.given(data), expected)  # and in the next epoch

    def test_a_list_of_targets_is_that_of_all_streams_also_with_a_split(self):
        targets = [[i, i] for i in range(40)]
        for part in "train", "valid":
            data = self.data(arrays(*[8] * 40), split={"valid": 0.3}, part=part, slots=1,
                             companions={"tokens": {"source": targets, "per": "stream"}})
            self.assertTrue(0 < data.streams < 40)
            self.assertEqual({(data.name(stream), *target) for stream, _, target in self.given(data)},
                             {(data.name(i), int(data.name(i)), int(data.name(i))) for i in range(data.streams)})

    def test_targets_of_parts_and_of_segments_with_other_lengths_are_refused(self):
        def shorter(stream, generator):
            return stream

        shorter.frames = lambda n, generator: n
        tokens = {"source": TOKENS, "per": "stream"}
        with self.assertRaisesRegex(ValueError, "cannot be set beside max_stream.*manifest whose lines are parts of the files"):
            next(iter(self.data(arrays(*LENGTHS), max_stream=8, companions={"tokens": tokens})))
        with self.assertRaisesRegex(ValueError, "changes lengths"):
            next(iter(self.data(arrays(*LENGTHS), augment=shorter, companions={"tokens": {**tokens, "per": "segment"}})))

    def test_numbers_of_any_whole_type_are_kept(self):
        targets = [np.array([7], np.int8), np.array([300], np.int16), np.array([1 << 40]), [True]]
        data = self.data(arrays(*LENGTHS), companions={"tokens": {"source": targets, "per": "stream"}})
        self.assertEqual([target for _, _, target in self.given(data)], [[7], [300], [1 << 40], [1]])

    def test_a_whole_stream_has_its_target_padded_to_the_longest_of_the_batch(self):
        data = self.data(arrays(*LENGTHS), chunk=None, mode="stateless", slots=None, rows=4, shuffle=False,
                         companions={"tokens": {"source": TOKENS, "per": "stream"}})
        (batch,) = list(data)
        self.assertEqual(batch.companions["tokens"].tolist(), [[7, 8, 9], [0, 0, 0], [5, 0, 0], [1, 2, 0]])
        self.assertEqual(batch.companions["tokens"].dtype, np.int64)
        self.assertEqual(batch.lengths["tokens"].tolist(), [3, 0, 1, 2])

    def test_a_text_of_the_manifest_is_encoded_by_a_function(self):
        texts = ["ab", "c", "", "bad"]
        for i, text in enumerate(texts):
            write_wav(self.folder / f"{i}.wav", frames_of(i, LENGTHS[i]))
        lines = [json.dumps({"path": f"{i}.wav", "text": text}) for i, text in enumerate(texts)]
        (self.folder / "m.jsonl").write_text("\n".join(lines))
        data = self.data(str(self.folder / "m.jsonl"), companions={"tokens": {"field": "text", "per": "stream", "encode": letters}})
        self.assertEqual([target for _, _, target in self.given(data)], [letters(text) for text in texts])

    def test_a_folder_has_an_array_for_each_stream(self):
        for i, tokens in enumerate(TOKENS):
            write_wav(self.folder / "speech" / f"{i}.wav", frames_of(i, LENGTHS[i]))
            np.save(self.folder / f"{i}.npy", np.array(tokens, np.int32).reshape(-1, 1) * [1, 2])
        data = self.data(str(self.folder / "speech"), companions={"tokens": {"path": self.folder, "per": "stream"}})
        self.assertEqual([target for _, _, target in self.given(data)], [[[n, 2 * n] for n in tokens] for tokens in TOKENS])

    def test_a_resumed_and_a_divided_run_have_the_targets_of_the_whole(self):
        targets = {"tokens": {"source": TOKENS, "per": "stream"}}
        whole = self.data(arrays(*LENGTHS), companions=targets)
        each = [(batch.companions["tokens"].tolist(), batch.lengths["tokens"].tolist()) for batch in whole]
        resumed = pickle.loads(pickle.dumps(self.data(arrays(*LENGTHS), companions=targets)))
        self.addCleanup(resumed.close)
        go(resumed, 0, 3)
        self.assertEqual([(batch.companions["tokens"].tolist(), batch.lengths["tokens"].tolist()) for batch in resumed], each[3:])
        ranks = [[batch.lengths["tokens"].tolist() for batch in whole.copy(rank=rank, world=2)] for rank in range(2)]
        self.assertEqual([a + b for a, b in zip(*ranks)], [lengths for _, lengths in each])

    def test_targets_and_cut_companions_are_beside_each_other_as_tensors(self):
        labels = [np.arange(n) for n in LENGTHS]
        data = self.data(arrays(*LENGTHS), companions={"vad": labels, "tokens": {"source": TOKENS, "per": "stream"}})
        lengths = []
        for batch in map(millrace.torch.tensors, data):
            self.assertEqual(batch["companions"]["vad"].shape, (2, 4, 1))
            self.assertEqual(batch["companions"]["tokens"].dtype, torch.int64)
            lengths += batch["lengths"]["tokens"].tolist()
        self.assertEqual(sorted(length for length in lengths if length >= 0), [0, 1, 2, 3])


    def test_the_processes_of_a_data_loader_give_the_targets(self):
        data = millrace.torch.IterableDataset(arrays(*LENGTHS), chunk=RULE, slots=2,
                                              companions={"tokens": {"source": TOKENS, "per": "stream"}})
        lengths = []
        for batch in torch.utils.data.DataLoader(data, batch_size=None, num_workers=2):
            lengths += batch["lengths"]["tokens"].tolist()
        self.assertEqual(sorted(length for length in lengths if length >= 0), [0, 1, 2, 3])

    def test_a_sequence_of_returnn_has_its_target_without_padding(self):
        data = millrace.returnn.Dataset(streams=arrays(*LENGTHS), chunk=None, mode="stateless", rows=2, shuffle=False,
                                        companions={"tokens": {"source": TOKENS, "per": "stream"}})
        data.initialize()
        data.init_seq_order(epoch=1)
        found = []
        while data.is_less_than_num_seqs(len(found)):
            data.load_seqs(len(found), len(found) + 1)
            found.append(data.get_data(len(found), "tokens").tolist())
        self.assertEqual(found, TOKENS)


class Segments(TargetsTest):
    def test_a_target_comes_with_the_last_row_of_its_segment(self):
        streams = Segmented(
            [("frames", 10), ("flush", 0), ("frames", 3), ("flush", 0), ("flush", 0), ("frames", 4), ("reset", 0), ("frames", 9)],
            [("flush", 0), ("frames", 8), ("gap", 5), ("frames", 6), ("flush", 0)])
        texts = [[[1], [2, 2], [3], [4, 4, 4]], [[5], [6]]]
        data = self.data(streams, companions={"tokens": {"source": texts, "per": "segment"}})
        expected = [(0, 8, [1]), (0, 10, [2, 2]), (0, 13, [3]), (0, 25, [4, 4, 4]), (1, 4, [5]), (1, 17, [6])]
        self.assertEqual(self.given(data), expected)
        go(data, 0, 4)
        resumed = self.given(data)
        self.assertLess(len(resumed), len(expected))
        self.assertLessEqual({str(one) for one in resumed}, {str(one) for one in expected})

    def test_a_stream_without_events_is_one_segment(self):
        data = self.data(arrays(*LENGTHS), companions={"tokens": {"source": [[tokens] for tokens in TOKENS], "per": "segment"}})
        self.assertEqual([target for _, _, target in self.given(data)], TOKENS)

    def test_segments_of_a_stream_that_moved_begin_at_their_positions(self):
        """The part before has the frames 10 to 14 and the flush at 12, which the next part has again."""
        events = [("flush", 0, 4), ("gap", 3, 6), ("flush", 0, 9), ("open", 10, 11), ("flush", 0, 13), ("reset", 0, 20)]
        self.assertEqual(_begins_of(events), [4, 9, 12, 19])


class Errors(TargetsTest):
    def refused(self, source, **keys):
        with self.assertRaises((ValueError, TypeError)) as raised:
            self.data(arrays(*LENGTHS), companions={"tokens": source}, **keys)
        return str(raised.exception)

    def test_wrong_keys_are_errors_at_the_opening(self):
        for source, expected in (
            ({"per": "row", "source": TOKENS}, "companions.tokens.per = 'row' must be stream or segment"),
            ({"per": ["stream"], "source": TOKENS}, "companions.tokens.per = ['stream'] must be stream or segment"),
            ({"per": "stream"}, "companions.tokens needs one of source, path and field"),
            ({"per": "stream", "source": TOKENS, "frames_per_entry": 2}, "companions.tokens: unknown key frames_per_entry"),
            ({"per": "stream", "source": 7}, "companions.tokens.source must be a list with a target for each stream, not 7"),
            ({"per": "stream", "source": TOKENS, "encode": "utf-8"}, "companions.tokens.encode must be a function, not 'utf-8'"),
            ({"per": "stream", "source": TOKENS[1:]}, "companions.tokens has 3 targets for 4 streams"),
            ({"per": "stream", "field": "text"}, "companions.tokens: stream '0': its meta has no field 'text', but nothing"),
            ({"per": "stream", "source": ["ab"] * 4}, "stream '0': 'ab' is no array of numbers; encode makes one of it"),
            ({"per": "stream", "path": "absent"}, "stream '0': "),
        ):
            with self.subTest(source):
                self.assertIn(expected, self.refused(source))

    def test_modes_in_which_no_row_ends_a_stream_are_errors(self):
        keys = {"mode": "stateless", "slots": None, "rows": 4}
        self.assertIn("needs the mode stateful, or whole streams", self.refused({"per": "stream", "source": TOKENS}, **keys))
        self.assertIn("needs the mode stateful", self.refused({"per": "segment", "source": TOKENS}, chunk=None, **keys))

    def test_a_target_that_fails_later_is_a_data_error_with_its_stream_and_step(self):
        data = self.data(arrays(*LENGTHS), slots=1, shuffle=False,
                         companions={"tokens": {"source": ["a", "b", "c", "d"], "per": "stream", "encode": {"a": [1], "b": [2]}.__getitem__}})
        with self.assertRaises(millrace.DataError) as raised:
            self.given(data)
        error = raised.exception
        self.assertEqual((error.reason, error.stream, error.name, error.step), ("function", 2, "2", 10))

    def test_with_skip_targets_that_all_fail_or_do_not_fit_are_errors(self):
        tokens = {"source": ["a", "b", "c", "d"], "per": "stream"}
        with self.assertRaisesRegex(ValueError, "companions.tokens: stream '3': 'd' is no array"):
            next(iter(self.data(arrays(*LENGTHS), on_error="skip", companions={"tokens": tokens})))
        mixed = {"source": [[1], [2], [[3, 4]], [5]], "per": "stream"}
        with self.assertRaisesRegex(millrace.DataError, "stream '2': .* does not fit to int64"):
            self.given(self.data(arrays(*LENGTHS), slots=1, shuffle=False, on_error="skip", companions={"tokens": mixed}))

    def test_with_skip_a_target_that_fails_is_left_out_and_its_rows_stay(self):
        tokens = {"source": ["x", "b", "c", "d"], "per": "stream", "encode": {"b": [1], "d": [2]}.__getitem__}
        keys = {"slots": 1, "shuffle": False}
        data = self.data(arrays(*LENGTHS), **keys, on_error="skip", companions={"tokens": tokens})
        with self.assertLogs("millrace", "WARNING") as logged:
            self.assertEqual([(stream, target) for stream, _, target in self.given(data)], [(1, [1]), (3, [2])])
        self.assertEqual([(failed.stream, failed.reason) for failed in data.failed], [(0, "function"), (2, "function")])
        self.assertEqual(len(logged.output), 2)
        self.assertIn("stream 2 (2) has no target in epoch 0, step 10: companions.tokens: stream '2': 'c'", logged.output[1])
        own = self.data(arrays(*LENGTHS), **keys)
        self.assertEqual([batch.data.tolist() for batch in data], [batch.data.tolist() for batch in own])


if __name__ == "__main__":
    unittest.main()
