# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/recipes.md for PyTorch and JAX, run as they are printed. tests/adapters runs those for other libraries, and
tests/system/training_guide_test.py that of several processes."""
import sys
import types
import unittest
import wave
from pathlib import Path

import numpy as np
import torch

import millrace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from recipes import Recipes  # noqa: E402


class Programs(Recipes):
    def test_features_of_rows_are_those_of_whole_streams(self):
        lines, variables = self.run_program("recipe_log_mel")
        self.assertEqual(set(lines), {"(4, 40, 10)"})
        data, features, rows = variables["data"], variables["features"], {}
        data.seek(0)
        for batch in data:
            mel = features(torch.from_dlpack(batch.data)[:, :, 0])
            for number, row in enumerate(batch.framed):
                rows.setdefault(row.stream, []).append(mel[number, :, : row.size // 160])
        self.assertEqual(len(rows), 8)
        for stream, parts in rows.items():
            with wave.open(f"speech/{data.name(stream)}.wav") as file:
                samples = np.frombuffer(file.readframes(10**6), np.int16).astype(np.float32) / 32768
            padded = torch.cat([torch.zeros(240), torch.from_numpy(samples)])
            whole = features(padded[None])[0]
            torch.testing.assert_close(torch.cat(parts, 1)[:, : whole.shape[1]], whole, atol=1e-3, rtol=1e-3)

    def test_masks_stay_with_their_streams_and_are_drawn_again_alike(self):
        lines, variables = self.run_program("recipe_spec_augment")
        again, _ = self.run_program("recipe_spec_augment")
        self.assertEqual(lines, again)
        data, streams = variables["data"], {}
        data.seek(0)
        for line, batch in zip(lines, data):
            for row, first in zip(batch.framed, eval(line.split(maxsplit=1)[1])):
                streams.setdefault(row.stream, set()).add(first)
        self.assertEqual({len(masks) for masks in streams.values()}, {1})
        self.assertGreater(len(set.union(*streams.values())), 2)

    def test_noise_is_mixed_at_the_drawn_ratio(self):
        lines, variables = self.run_program("recipe_noise")
        self.assertEqual(self.run_program("recipe_noise")[0], lines)
        clean = millrace.Dataset("speech", chunk={"size": "100ms"}, dtype="f32", slots=4, seed=1)
        self.assertGreater(float(lines[0]), sum(float(abs(batch.data).mean()) for batch in clean))
        speech = (6000 * np.sin(0.2 * np.arange(16000))).astype(np.int16)[:, None]
        for seed in range(5):
            stream = variables["mixed"](types.SimpleNamespace(frames=speech), np.random.default_rng(seed))
            self.assertEqual((stream.frames.shape, stream.frames.dtype), (speech.shape, np.int16))
            noise = stream.frames.astype(float) - speech
            decibels = 10 * np.log10((speech.astype(float)**2).mean() / (noise**2).mean())
            self.assertTrue(4.9 < decibels < 20.1, decibels)

    def test_parameters_change_after_each_k_steps_and_the_loss_falls(self):
        changes = []
        step = torch.optim.Adam.step
        self.addCleanup(setattr, torch.optim.Adam, "step", step)
        torch.optim.Adam.step = lambda optimizer: changes.append(1) or step(optimizer)
        torch.manual_seed(1)
        lines, variables = self.run_program("recipe_accumulation")
        self.assertEqual(len(changes), 3 * -(-variables["steps"] // 4))
        losses = [float(line.split()[1]) for line in lines]
        self.assertLess(losses[-1], losses[0])

    def test_streams_of_an_iterator_are_complete_and_have_little_padding(self):
        *blocks, total = self.run_program("recipe_iterator")[0]
        self.assertEqual([line.split()[:2] for line in blocks], [["0", "64"], ["1", "64"], ["2", "22"]])
        self.assertLess(max(float(line.split()[2]) for line in blocks[:2]), 6)
        random = np.random.default_rng(1)
        lengths = [len(random.normal(0, 1000, random.integers(8000, 32000))) for _ in range(150)]
        self.assertEqual(total, f"{sum(lengths) / 16000:.0f} s")

    def test_a_model_in_jax_learns(self):
        lines, _ = self.run_program("recipe_jax")
        self.assert_learned([float(line.split()[1]) for line in lines])


if __name__ == "__main__":
    unittest.main()
