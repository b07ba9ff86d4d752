# SPDX-License-Identifier: Apache-2.0
"""Batches of a Dataset: their rows are those of millrace.chunks."""
import collections
import contextlib
import io
import pickle
import subprocess
import sys
import unittest

import numpy as np
import torch
from datasets import RULE, DatasetTest, arrays, content, contents, frames_of, go, rows_of, write_wav

import millrace

PROGRAM = """
import millrace, torch
data = millrace.Dataset("speech", chunk={"size": "100ms"}, dtype="f32", slots=4, seed=1, companions={"vad": "labels"})
model, state = Model(), torch.zeros(data.slots + 1, 8)            # a line per slot, and one for padding rows
for epoch in range(2):
    for batch in millrace.progress(data):                         # epoch, step, h/s, waited for data, padding
        slot, reset = torch.from_dlpack(batch.slot).long(), torch.from_dlpack(batch.flags).bitwise_and(2).bool()
        state = state.detach()
        y, state[slot] = model(torch.from_dlpack(batch.data), state[slot].masked_fill(reset[:, None], 0))
        learn(y, torch.from_dlpack(batch.companions["vad"]), torch.from_dlpack(batch.size))
    torch.save({"model": model.state_dict(), "data": data.state_dict()}, "last.pt")
"""
BEFORE = """
import torch
losses = []
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = torch.nn.GRUCell(1600, 8), torch.nn.Linear(8, 10)
    def forward(self, x, state):
        state = self.cell(x[:, :, 0], state)
        return self.out(state), state
def learn(y, vad, size):
    assert vad.shape == (4, 10, 1), vad.shape
    loss = ((y[:, :, None] - vad) ** 2)[size > 0].mean()
    loss.backward()
    losses.append(loss.item())
"""


class Rows(DatasetTest):
    def test_the_rows_of_each_stream_are_those_of_the_chunker(self):
        lengths = 10, 7, 21, 4
        data = self.data(slots=3)
        seen = collections.defaultdict(list)
        for batch in data:
            for row in rows_of(batch):
                seen[row[0]].append(row)
        for stream, length in enumerate(lengths):
            rows = [row for row in millrace.chunks(RULE, [("frames", length), ("end", 0)]) if row[3]]
            frames = frames_of(stream, length)
            expected = [(stream, begin, size, flags, frames[begin:begin + size].tolist())
                        for _, begin, _, size, _, flags, _ in rows]
            self.assertEqual(seen[stream], expected)
            self.assertEqual(seen[stream][0][3] & 3, millrace.Flag.START | millrace.Flag.RESET)

    def test_len_is_the_number_of_steps(self):
        data = self.data()
        steps = len(data)
        self.assertEqual([batch.step for batch in data], list(range(steps)))
        self.assertEqual(len(list(data)), len(range(steps)))

    def test_an_iteration_continues_where_the_last_one_was_left(self):
        whole = contents(self.data(seed=5))
        data = self.data(seed=5)
        parts = []
        for batch in data:
            parts.append(content(batch))
            if batch.step == 2:
                break
        self.assertEqual(data.step, 3)
        self.assertEqual(parts + contents(data), whole)
        self.assertEqual((data.epoch, data.step), (1, 0))

    def test_seek_gives_the_batches_of_any_step(self):
        data = self.data(seed=6)
        epochs = [contents(data), contents(data)]
        for epoch, step in (0, 3), (1, 0), (1, len(epochs[1]) - 1), (0, 0):
            go(data, epoch, step)
            self.assertEqual((data.epoch, data.step), (epoch, step))
            self.assertEqual(content(data.next()), epochs[epoch][step])

    def test_a_rule_with_all_keys_can_be_passed_as_it_is(self):
        data = self.data()
        self.assertEqual(contents(self.data(chunk=data.chunk)), contents(data))

    def test_dtypes_may_be_those_of_numpy_and_torch(self):
        for dtype in "f32", "float32", np.float32, np.dtype("f4"), torch.float32:
            data = self.data(dtype=dtype)
            self.assertEqual(data.dtype, np.float32)
            batch = next(iter(data))
            self.assertEqual(batch.data.dtype, np.float32)
            self.assertEqual(batch.data.max() * 32768, max(row[4][-1] for row in rows_of(self.data().next())))

    def test_keys_may_be_numbers_of_numpy(self):
        data = self.data(slots=np.int64(2), seed=np.uint32(7), shuffle=np.bool_(False), rate=np.float64(8000))
        self.assertEqual((data.slots, data.rate), (2, 8000))
        self.assertEqual(contents(data), contents(self.data(slots=2, seed=7, shuffle=False, rate=8000)))

    def test_whole_streams_are_rows_without_a_rule(self):
        data = self.data(chunk=None, slots=None, mode="stateless", rows=2, shuffle=False)
        self.assertEqual(data.slots, 0)
        self.assertIsNone(data.chunk)
        batches = [[(row.stream, row.size) for row in batch.framed] for batch in data]
        self.assertEqual(batches, [[(0, 10), (1, 7)], [(2, 21), (3, 4)]])

    def test_opened_has_names_and_meta(self):
        streams = millrace.catalogs.Arrays(arrays(8, 4), names=["a", "b/ü"], meta=[{"text": "hallo"}, None])
        data = self.data(streams)
        opened = sorted(entry for batch in data for entry in batch.opened)
        self.assertEqual([(entry.stream, entry.name, entry.meta) for entry in opened],
                         [(0, "a", {"text": "hallo"}), (1, "b/ü", {})])
        self.assertEqual([data.name(i) for i in range(2)], ["a", "b/ü"])
        self.assertEqual([data.meta(i) for i in range(2)], [{"text": "hallo"}, {}])
        with self.assertRaisesRegex(IndexError, "stream 2: there are 2 streams"):
            data.name(2)


class Looks(DatasetTest):
    def test_a_peek_is_the_batch_with_which_the_next_iteration_begins(self):
        data = self.data()
        expected = [content(batch) for _ in range(2) for batch in data]
        steps = len(expected) // 2
        for taken in 0, 1, steps - 1, steps, steps + 2:
            data = self.data()
            batches = (batch for _ in range(2) for batch in data)
            self.assertEqual([content(next(batches)) for _ in range(taken)], expected[:taken])
            position, counted, ahead = (data.epoch, data.step), data.stats.batches, data.peek()
            self.assertEqual((content(ahead), content(data.peek())), (expected[taken], expected[taken]))
            ahead.data[:] = 0
            self.assertEqual(((data.epoch, data.step), data.stats.batches), (position, counted))
            self.assertEqual([content(batch) for batch in batches], expected[taken:])

    def test_a_peek_with_processes_is_the_next_batch(self):
        def louder(stream, generator):
            stream.frames = stream.frames * 2
            return stream

        data = self.data(augment=louder, processes=1)
        for _ in range(2):
            self.assertEqual(content(data.peek()), content(data.next()))

    def test_a_peek_has_the_resets_and_the_opened_streams_of_the_next_batch(self):
        data = self.data()
        data.seek(0, 2)
        ahead = data.peek()
        batch = next(iter(data))
        self.assertEqual((ahead.reset.tolist(), ahead.opened), (batch.reset.tolist(), batch.opened))
        self.assertEqual(ahead.reset.tolist(), [True, True])

    def test_a_text_of_a_data_set_has_what_is_known(self):
        data = self.data(arrays(16000, 4), slots=2, rate=16000, chunk={"size": 1600})
        self.assertEqual(repr(data), "<millrace.Dataset: 2 streams, 0.00 h, 2 slots, epoch 0, step 0>")
        self.assertIsNone(data._loader)
        data.next()
        self.assertEqual(repr(data), "<millrace.Dataset: 2 streams, 0.00 h, 2 slots, epoch 0, step 1 of 10, 49.9% padding>")
        self.assertEqual(repr(pickle.loads(pickle.dumps(data))), "<millrace.Dataset: not opened in this process, epoch 0, step 1>")
        rows = self.data([np.ones(1)] * 100, mode="stateless", slots=None, rows=8, rate=0.01, dim=1)
        self.assertEqual(repr(rows), "<millrace.Dataset: 100 streams, 2.78 h, at most 8 rows, epoch 0, step 0>")

    def test_a_text_of_a_batch_has_its_shape(self):
        batch = self.data(arrays(10, 4), slots=2, dtype="f32").next()
        self.assertRegex(repr(batch), r"<millrace.Batch \d+: \(2, 6, 1\) float32, 0 padding rows, 1 marks>")

    def test_the_device_cuda_is_the_first_one(self):
        self.assertEqual(self.data(device="cuda").device, "cuda:0")
        with self.assertRaisesRegex(ValueError, "device"):
            self.data(device="cuda:")


class Counts(DatasetTest):
    def test_the_program_of_the_document_trains(self):
        for i in range(6):
            frames = (1000 * np.sin(np.arange(1600 * (17 + i)) / (3 + i))).astype(np.int16)
            write_wav(self.folder / "speech" / f"{i}.wav", frames)
            (self.folder / "labels").mkdir(exist_ok=True)
            np.save(self.folder / "labels" / f"{i}.npy", (np.arange(10 * (17 + i)) % 2).astype(np.float32))
        done = subprocess.run([sys.executable, "-c", BEFORE + PROGRAM + "print(len(losses), data.stats)"],
                              cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("epoch 1", done.stderr)
        saved = torch.load(self.folder / "last.pt")
        self.assertEqual((saved["data"]["epoch"], saved["data"]["step"]), (2, 0))

    def test_stats_count_the_time_of_single_calls(self):
        data = self.data(arrays(40, 4), slots=2, rate=16000)
        while data.next() is not None:
            pass
        self.assertGreater(data.stats.hours_per_second, 0)

    def test_stats_count_hours_padding_and_batches(self):
        data = self.data(arrays(40, 4), slots=2, rate=16000)
        self.assertEqual(data.stats.batches, 0)
        batches = list(data)
        stats = data.stats
        self.assertEqual((stats.batches, stats.kept), (10, 10))
        self.assertAlmostEqual(stats.hours, 44 / 16000 / 3600)
        self.assertGreater(stats.hours_per_second, 0)
        self.assertTrue(0 < stats.padding < 1 and 0 <= stats.waited <= 1 and stats.first >= 0)
        del batches
        self.assertEqual(data.stats.kept, 0)

    def test_much_padding_is_reported_with_a_sufficient_number_of_slots(self):
        data = self.data(arrays(100, 100, 4), slots=3)
        with self.assertLogs("millrace", "WARNING") as logged:
            list(data)
        self.assertRegex(logged.output[0], r"32.0 % of the rows are padding with slots = 3: slots = 2")
        with self.assertNoLogs("millrace", "WARNING"):
            list(self.data(arrays(100, 100, 4), slots=2))

    def test_stats_of_the_epoch_are_those_of_its_own_batches(self):
        data = self.data(arrays(40, 4), slots=2, rate=16000)
        self.assertIsNone(data.stats.epoch)
        for epoch in range(3):
            for batch in data:
                self.assertEqual(data.stats.epoch.batches, batch.step + 1)
            of_epoch = data.stats.epoch
            self.assertEqual((of_epoch.batches, data.stats.batches), (10, 10 * (epoch + 1)))
            self.assertAlmostEqual(of_epoch.hours, 44 / 16000 / 3600)
            self.assertEqual((of_epoch.padding, of_epoch.first is None), (data.stats.padding, epoch > 0))
        for step in range(10):
            data.next()
            self.assertEqual(data.stats.epoch.batches, step + 1)
        data.seek(1)
        for batch in data:
            if batch.step == 3:
                break
        for batch in data:  # the same epoch
            pass
        self.assertEqual(data.stats.epoch.batches, 10)
        self.assertEqual(pickle.loads(pickle.dumps(data)).stats.batches, 0)

    def test_a_bar_is_no_text_for_a_log(self):
        with contextlib.redirect_stderr(io.StringIO()) as log:
            list(millrace.progress(self.data()))
        self.assertNotIn("\r", log.getvalue())
        self.assertEqual(len(log.getvalue().splitlines()), 1)
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        with contextlib.redirect_stderr(terminal):
            list(millrace.progress(self.data()))
        self.assertIn("\r", terminal.getvalue())
        self.assertIn("step/s", terminal.getvalue())  # tqdm's

    def test_progress_shows_epoch_and_steps_and_continues(self):
        data = self.data()
        steps = len(data)
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            for batch in millrace.progress(data):
                if batch.step == 1:
                    break
            rest = [batch.step for batch in millrace.progress(data)]
        self.assertEqual(rest, list(range(2, steps)))
        self.assertIn("epoch 0", errors.getvalue())
        self.assertIn(f"{steps}/{steps}", errors.getvalue())
        self.assertIn("h/s", errors.getvalue())


class Threads(DatasetTest):
    def test_an_object_is_read_by_one_thread_if_no_number_is_given(self):
        class Reader:
            def __len__(self):
                return 4

            def frames(self, i):
                return 8

            def name(self, i):
                return str(i)

            def read(self, i, begin, n):
                return np.full(n, i, np.int16)

        def threads(streams, **keys):
            return self.data(streams, **keys)._request.keys.get("threads")

        write_wav(self.folder / "a.wav", frames_of(0, 8))
        write_wav(self.folder / "b.wav", frames_of(1, 8))
        labels = {"labels": {"source": Reader(), "frames_per_entry": 1}}
        for keys in {}, {"threads": "auto"}:
            self.assertEqual(threads(Reader(), **keys), 1)
            self.assertEqual(threads(self.folder, companions=labels, slots=1, **keys), 1)
            self.assertEqual(threads(Reader(), processes=2, **keys), 2)
        self.assertEqual(threads(Reader(), threads=3), 3)
        self.assertIsNone(threads(self.folder, slots=1))


if __name__ == "__main__":
    unittest.main()
