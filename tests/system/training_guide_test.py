# SPDX-License-Identifier: Apache-2.0
"""The programs and commands of docs/training.md, run as they are printed, on speech. They are those of a user in one folder.
The programs of the adapters are run by tests/adapters."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

from harness import PATIENCE, Process, SystemTest, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON = os.environ["PYTHON"]  # has the package millrace and PyTorch
SPEECH = Path("/usr/share/pocketsphinx/test/data/librivox")
PROGRAMS = printed.programs()
SLOTS = 4
# The reader's own part of the first program. Fewer slots and epochs, because there are only five utterances.
OWN = """
import torch
losses = []

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.output = torch.nn.GRUCell(1600, 128), torch.nn.Linear(128, 10)

    def forward(self, data, state):
        state = self.cell(data[:, :, 0], state)
        return self.output(state), state

def learn(y, labels, size):
    optimizer.zero_grad()
    real = torch.arange(10) * 160 < size[:, None]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(y[real], labels[:, :, 0][real].float())
    loss.backward()
    optimizer.step()
    losses.append(float(loss))

torch.manual_seed(1)
torch.set_num_threads(1)
made = Model()
Model = lambda: made
optimizer = torch.optim.Adam(made.parameters(), lr=1e-3)
"""
# A catalog in Python of the same files.
READER = """
import pathlib, wave
import numpy as np

class Reader:
    paths, rate = sorted(pathlib.Path("speech").glob("*.wav")), 16000

    def __len__(self):
        return len(self.paths)

    def frames(self, i):
        with wave.open(str(self.paths[i])) as file:
            return file.getnframes()

    def name(self, i):
        return self.paths[i].stem

    def read(self, i, begin, n):
        with wave.open(str(self.paths[i])) as file:
            file.setpos(begin)
            return np.frombuffer(file.readframes(n), np.int16)
"""


class Page(SystemTest):
    """Runs what the page prints, in a folder with speech and its labels."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prepared = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (cls.prepared / "speech").mkdir()
        for path in SPEECH.glob("*.wav"):
            shutil.copy(path, cls.prepared / "speech")
        subprocess.run([PYTHON, "-c", PROGRAMS["training_labels"].text], cwd=cls.prepared, check=True, timeout=4 * PATIENCE)

    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())) / "page"
        shutil.copytree(self.prepared, self.folder)

    def environment(self):
        path = os.path.dirname(os.environ["MILLRACE"]) + os.pathsep + os.environ["PATH"]
        return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}

    def done(self, *command):
        return subprocess.run([*map(str, command)], cwd=self.folder, env=self.environment(), capture_output=True, text=True,
                              timeout=4 * PATIENCE)

    def printed(self, name, before="", after=""):
        """The lines that a printed program prints."""
        program = PROGRAMS[name]
        command = [PYTHON, "-c", before + program.text + after] if program.language == "python" else ["/bin/sh", "-euc", program.text]
        done = self.done(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def trained(self, before, *changes):
        """What the first program prints on standard error after these changes, its losses, and its checkpoint."""
        text = PROGRAMS["training_loop"].text
        for printed_part, part in (("slots=32", f"slots={SLOTS}"), *changes):
            self.assertEqual(text.count(printed_part), 1)
            text = text.replace(printed_part, part)
        after = "\nimport json\nprint(json.dumps([losses, torch.load('last.pt')['data'], sorted(torch.load('last.pt'))]))"
        done = self.done(PYTHON, "-c", OWN + before + text + after)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr, *json.loads(done.stdout)

    def test_ten_lines_train_alike_with_a_reader_of_ones_own_in_two_processes(self):
        self.assertEqual(len(PROGRAMS["training_loop"].text.splitlines()), 10)
        _, losses, _, _ = self.trained("")
        _, same, _, _ = self.trained(READER, ('"speech"', "Reader(), processes=2"))
        self.assertEqual(losses, same)

    def test_the_first_program_trains_and_saves_a_checkpoint(self):
        errors, losses, data, keys = self.trained("")
        self.assertEqual(((data["epoch"], data["step"]), keys), ((10, 0), ["data", "model"]))
        steps = len(losses) // 10
        self.assertLess(sum(losses[-steps:]), 0.8 * sum(losses[:steps]))
        self.assertIn("epoch 9", errors)

    def test_the_first_program_as_printed_names_the_limit_of_slots(self):
        done = self.done(PYTHON, "-c", OWN + PROGRAMS["training_loop"].text)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], "slots.*32.*5")

    def test_gradients_flow_through_several_chunks(self):
        lines = [line.split() for line in self.printed("training_chunks")]
        self.assertGreater(len(lines), 10)
        self.assertLess(float(lines[-1][2]), 1000)

    def test_a_resumed_run_continues_after_the_last_batch(self):
        self.assertEqual(self.printed("training_resume"), ["0 10", "0 10"])

    def test_processes_have_equal_steps(self):
        (self.folder / "train.py").write_text(PROGRAMS["training_ddp"].text)
        # In a network of their own, no other process takes the port.
        both = f"ip link set lo up; RANK=1 {PYTHON} train.py > second & RANK=0 {PYTHON} train.py; wait $!"
        ranks = self.started("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc", both,
                             WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
        self.assertEqual(ranks.wait(4 * PATIENCE), 0, ranks.errors)
        alone = self.done(PYTHON, "-c", "import millrace; print(len(millrace.Dataset('speech', chunk={'size': '100ms'}, slots=4, seed=1)))")
        self.assertEqual((ranks.lines, (self.folder / "second").read_text()), ([f"steps: {alone.stdout.strip()}"], ""))

    def test_states_of_two_processes_continue_in_one(self):
        (self.folder / "train.py").write_text(PROGRAMS["recipe_states"].text)
        shutil.copytree(self.folder, self.folder.parent / "whole")
        both = f"ip link set lo up; RANK=1 {PYTHON} train.py & RANK=0 {PYTHON} train.py; wait $!"
        alone = f"cd ../whole; ip link set lo up; RANK=0 {PYTHON} train.py"
        for command, environment in ((both, {"WORLD_SIZE": "2", "STOP_AFTER": "9"}),
                                     (alone.replace("whole", "page"), {"WORLD_SIZE": "1"}), (alone, {"WORLD_SIZE": "1"})):
            ranks = self.started("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc", command,
                                 MASTER_ADDR="127.0.0.1", MASTER_PORT="29500", **environment)
            self.assertEqual(ranks.wait(4 * PATIENCE), 0, ranks.errors)
            if "STOP_AFTER" in environment:
                self.assertEqual(self.saved("page")[:2], [0, 10])
        first, second = self.saved("page"), self.saved("whole")
        self.assertEqual((first[:2], second[:2]), ([1, 0], [1, 0]))
        self.assertGreater(max(map(abs, first[2])), 0.1)
        for mine, other in zip(first[2], second[2], strict=True):
            self.assertAlmostEqual(mine, other, places=4)

    def saved(self, folder):
        """Epoch, step and states of a checkpoint."""
        program = "import json, torch; saved = torch.load('last.pt'); print(json.dumps(" \
                  "[saved['data']['epoch'], saved['data']['step'], saved['states'].flatten().tolist()]))"
        done = subprocess.run([PYTHON, "-c", program], cwd=self.folder.parent / folder, capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(done.stdout)

    def started(self, *command, **environment):
        """A process in the folder."""
        text = f"cd '{self.folder}' && exec {shlex.join(command)}"
        process = Process("/bin/sh", "-c", text, environment={**self.environment(), **environment})
        self.addCleanup(process.kill)
        return process

    def test_a_trainer_gets_its_batches_from_the_server(self):
        program = PROGRAMS["training_server"].text
        server = self.started("/bin/sh", "-euc", program.replace("[plan]", 'admin = "127.0.0.1:0"\n[plan]')
                              .replace("millrace train-serve", "exec millrace train-serve"))
        wait_for(lambda: (self.folder / "train.sock").exists() or server.process.poll() is not None, "the server to listen")
        rows = self.printed("training_served")
        local = self.done(PYTHON, "-c", "import millrace; data = millrace.Dataset('speech', chunk={'size': '100ms'}, slots=4, seed=1);"
                          " n = len(data); print(sum(batch.rows for batch in data), 'rows in', n, 'steps')")
        self.assertEqual(rows, local.stdout.splitlines())

    def test_the_printed_configuration_has_the_keys_of_the_program(self):
        text = PROGRAMS["training_server"].text.split("<<'EOF'\n")[1].split("EOF")[0]
        self.assertEqual(tomllib.loads(text)["plan"], {"streams": ["speech"], "chunk": {"size": "100ms"}, "slots": SLOTS, "seed": 1})

    def test_an_object_is_a_catalog(self):
        names = {line.split(maxsplit=2)[2] for line in self.printed("training_object")}
        self.assertEqual(names, {f"{100 + 50 * i} Hz" for i in range(8)})

    def test_augmentation_is_the_same_in_each_run(self):
        first, second = self.printed("training_augment"), self.printed("training_augment")
        self.assertEqual(first, second)
        self.assertGreater(int(first[0]), 0)

    def test_augmentation_in_processes_has_the_same_result(self):
        self.assertEqual(self.printed("training_processes"), self.printed("training_augment"))

    def test_a_split_has_streams_in_both_parts(self):
        (line,) = self.printed("training_split")
        self.assertRegex(line, r"^[2-9]\d* streams for training, [1-9]\d* for validation$")

    def test_files_of_another_rate_are_converted(self):
        self.assertEqual(self.printed("training_convert"), ["8000.0 800"])

    def test_texts_become_targets(self):
        self.assertEqual(self.printed("training_targets"), ["torch.Size([5, 5]) [3, 3, 4, 4, 5]"])

    def test_failed_streams_are_listed(self):
        self.assertEqual(self.printed("training_skip"), ["0 streams were skipped"])

    def test_the_plan_is_printed_without_reading_frames(self):
        batches = [json.loads(line) for line in self.printed("training_plan")]
        local = self.done(PYTHON, "-c", "import millrace, json; data = millrace.Dataset('speech', chunk={'size': 1600}, slots=4, seed=1)\n"
                          "for batch in data: print(json.dumps([[r.stream, r.begin, r.begin + r.size] for r in batch.framed]))")
        self.assertEqual(batches, [json.loads(line) for line in local.stdout.splitlines()])

    def test_statistics_are_printed(self):
        (line,) = self.printed("training_stats")
        self.assertRegex(line, r"batches=\d+, .*waited=.*padding=")


class Programs(unittest.TestCase):
    def test_each_program_of_the_page_has_a_test(self):
        tests = [Path(__file__), *(printed.ROOT / "tests/adapters").glob("*_test.py")]
        text = "".join(path.read_text() for path in tests)
        for name in PROGRAMS:
            if name.startswith("training_"):
                self.assertRegex(text, f'"{name}"')


if __name__ == "__main__":
    unittest.main()
