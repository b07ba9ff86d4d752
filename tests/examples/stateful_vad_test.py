# SPDX-License-Identifier: Apache-2.0
"""The example that trains a model with state: its loss falls, its outputs with carried state are those of a full pass, and the
trained model gives the same outputs to live streams."""
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np
import torch
from harness import PATIENCE, Process, SystemTest, read_all, run, wait_for

import millrace

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "stateful_vad"
SPEECH = Path("/usr/share/pocketsphinx/test/data/librivox")
sys.path.insert(0, str(EXAMPLE))
from model import FRAME, STATES, VoiceActivity  # noqa: E402


def utterances():
    """The samples of each utterance, by name."""
    found = {}
    for path in sorted(SPEECH.glob("*.wav")):
        with wave.open(str(path)) as file:
            found[path.stem] = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    return found


class StatefulVad(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.streams = utterances()
        (cls.folder / "speech").mkdir()
        for name in cls.streams:  # a folder of its own, because the index is beside the data
            (cls.folder / "speech" / f"{name}.wav").symlink_to(SPEECH / f"{name}.wav")
        cls.run_program("targets.py", "speech", "targets")
        cls.lines = cls.run_program("train.py", "speech", "targets").splitlines()
        cls.model = VoiceActivity()
        cls.model.load_state_dict(torch.load(cls.folder / "vad.pt")["model"])
        with torch.no_grad():
            cls.full = {name: cls.full_pass(samples) for name, samples in cls.streams.items()}

    @classmethod
    def run_program(cls, name, *arguments):
        done = subprocess.run([sys.executable, EXAMPLE / name, *arguments], cwd=cls.folder, capture_output=True, text=True,
                              timeout=4 * PATIENCE, env={**os.environ, "OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    @classmethod
    def full_pass(cls, samples):
        """The outputs of the model to a whole utterance at once."""
        count = -(-len(samples) // FRAME)
        padded = torch.zeros(1, count * FRAME)
        padded[0, :len(samples)] = torch.from_numpy(samples / np.float32(32768))
        return cls.model(padded, torch.zeros(1, STATES))[0][0].numpy()

    def test_the_loss_falls(self):
        losses = [float(line.split()[-1]) for line in self.lines if line.startswith("epoch")]
        self.assertEqual(len(losses), 20)
        self.assertLess(min(losses[-5:]), losses[0] / 2, losses)

    def test_the_model_finds_the_speech_that_its_teacher_finds(self):
        agreed = []
        for name, outputs in self.full.items():
            agreed.extend((outputs > 0) == (np.load(self.folder / f"targets/{name}.npy") > 0.5))
        self.assertGreater(np.mean(agreed), 0.9)

    def test_outputs_with_carried_state_are_those_of_a_full_pass_with_any_number_of_slots(self):
        for slots in range(1, len(self.streams) + 1):
            data = millrace.Dataset(str(self.folder / "speech"), chunk={"size": "96ms"}, dtype="f32", slots=slots, seed=slots)
            state, outputs = torch.zeros(data.slots + 1, STATES), {name: [] for name in self.streams}
            for batch in data:
                slot = torch.from_dlpack(batch.slot).long()
                reset = torch.from_dlpack(batch.flags).bitwise_and(int(millrace.Flag.RESET)).bool()
                with torch.no_grad():
                    logits, state[slot] = self.model(torch.from_dlpack(batch.data)[:, :, 0],
                                                     state[slot].masked_fill(reset[:, None], 0))
                for row, values in zip(batch.framed, logits.numpy()):
                    outputs[data.name(row.stream)].append(values[:-(-row.size // FRAME)])
            for name, full in self.full.items():
                with self.subTest(slots=slots, stream=name):
                    np.testing.assert_allclose(np.concatenate(outputs[name]), full, rtol=0, atol=1e-5)

    def test_the_trained_model_gives_the_same_outputs_to_live_streams(self):
        service = self.service((EXAMPLE / "millrace.toml").read_text())
        worker = Process(sys.executable, EXAMPLE / "worker.py", self.folder / "vad.pt", "--url", service.workers)
        self.addCleanup(worker.kill)
        wait_for(lambda: service.get("/readyz")[0] == 200 or worker.process.poll() is not None, "the worker to attach")

        async def live(samples):
            async with service.connect(pipeline="vad") as connection:
                for at in range(0, len(samples), 1000):
                    await connection.send(samples[at:at + 1000].tobytes())
                await connection.send(json.dumps({"type": "end"}))
                return (await read_all(connection))[0]

        async def all_live():
            return await asyncio.gather(*map(live, self.streams.values()))

        for (name, full), messages in zip(self.full.items(), run(all_live())):
            with self.subTest(stream=name):
                answers = [message["data"] for message in messages if message["type"] == "result"]
                np.testing.assert_allclose(np.concatenate(answers), 1 / (1 + np.exp(-full.astype(np.float64))), rtol=0, atol=1e-5)
        self.assertEqual(worker.stop(), 0, worker.errors)


if __name__ == "__main__":
    unittest.main()
