# SPDX-License-Identifier: Apache-2.0
"""`millrace check-worker` passes for every worker of the examples and of the documents."""
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import torch
from harness import PATIENCE
from silero_alone import MODEL

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
sys.path[:0] = [str(ROOT / "tests" / "support"), str(EXAMPLES / "stateful_vad"), str(EXAMPLES / "demo")]
import printed_programs as printed  # noqa: E402
from model import VoiceActivity  # noqa: E402
from recognisers import PocketSphinx, librivox  # noqa: E402

PROGRAMS = printed.programs()
NUMBERS = "1e-5"  # floats depend a little on the number of rows
PRINTED = {"readme_worker": (), "worker_messages": (), "worker_pending": (), "worker_python": (), "worker_hot_words": (), "worker_torch": ("host",),
           "worker_graph": ("host",)}
COUNTS = "transcripts_segments"  # on purpose, it counts the segments of a stream also across RESET


class CheckWorker(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def passes(self, *worker, config=None, text=None, streams=None, tolerance="0"):
        if text:
            config = self.folder / "millrace.toml"
            config.write_text(text)
        options = [*(("--config", config) if config else ()), *(("--streams", streams) if streams else ())]
        command = [os.environ["MILLRACE"], "check-worker", *options, "--tolerance", tolerance, "--", *worker]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE,
                                 env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def example(self, name, *arguments, **other):
        self.passes(sys.executable, "-B", EXAMPLES / name / "worker.py", *arguments, config=EXAMPLES / name / "millrace.toml", **other)

    def speech(self, seconds):
        """A folder with the beginnings of two utterances."""
        speech = self.folder / "speech"
        speech.mkdir()
        for name, (path, _) in itertools.islice(librivox().items(), 2):
            with wave.open(path) as whole, wave.open(str(speech / f"{name}.wav"), "wb") as part:
                part.setparams(whole.getparams())
                part.writeframes(whole.readframes(int(seconds * whole.getframerate())))
        return speech

    def test_silero_vad(self):
        silero = EXAMPLES / "silero_vad"
        self.passes(sys.executable, "-m", "millrace.onnx_worker", MODEL, "--config", silero / "model.toml", "--pipeline", "vad",
                    config=silero / "millrace.toml", tolerance=NUMBERS)

    def test_the_printed_worker_of_onnx(self):
        self.passes(sys.executable, "-c", PROGRAMS["worker_onnx"].text, MODEL, config=EXAMPLES / "silero_vad" / "millrace.toml",
                    tolerance=NUMBERS)

    def test_energy_endpoint(self):
        self.example("energy_endpoint")

    def test_stateful_vad(self):
        torch.manual_seed(1)
        torch.save({"model": VoiceActivity().state_dict()}, self.folder / "vad.pt")
        self.example("stateful_vad", self.folder / "vad.pt", tolerance=NUMBERS)

    @unittest.skipUnless(platform.machine() == "x86_64", "the wheel with the weights is for x86-64")
    def test_moonshine_with_the_options_of_its_readme(self):
        readme = (EXAMPLES / "moonshine" / "README.md").read_text()
        tolerance, every = "0.5", "1000"
        self.assertIn(f"--streams speech --tolerance {tolerance} -- \\\n    venv/bin/python examples/moonshine/worker.py --every {every}\n", readme)
        self.example("moonshine", "--every", every, streams=self.speech(4), tolerance=tolerance)

    @unittest.skipUnless("POCKETSPHINX_WORKER" in os.environ, "PocketSphinx is not installed")
    def test_pocketsphinx(self):
        text = PocketSphinx.pipeline.replace("slots = 8", "slots = 24").replace("rows = 8", "rows = 3")
        self.passes(os.environ["POCKETSPHINX_WORKER"], "--warm", "1", text=text, streams=self.speech(1.5))

    def test_the_printed_workers_in_python(self):
        for name, arguments in PRINTED.items():
            with self.subTest(name):
                self.passes(sys.executable, "-c", PROGRAMS[name].text, *arguments)

    def test_the_printed_worker_in_cpp(self):
        self.passes(Path(os.environ["PRINTED_PROGRAMS"]) / "worker_cpp")

    def test_the_printed_commands_give_the_printed_reports(self):
        worker, line = PROGRAMS["worker_python"].text, "        state[slot[batch.reset]] = 0\n"
        self.assertIn(line, worker)
        page = (ROOT / "docs" / "workers.md").read_text().partition("## Checking a worker\n")[2]
        passed, broken = (block.strip("\n") for block in page.split("```\n")[2:5:2])
        path = os.pathsep.join((os.path.dirname(os.environ["MILLRACE"]), os.path.dirname(sys.executable), os.environ["PATH"]))
        for text, code, printed_report in (worker, 0, passed), (worker.replace(line, ""), 1, broken):
            (self.folder / "worker.py").write_text(text)
            checked = subprocess.run(["/bin/sh", "-euc", PROGRAMS["worker_check"].text], cwd=self.folder, env={**os.environ, "PATH": path},
                                     capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((checked.returncode, set(checked.stderr.splitlines())), (code, {"left at SIGTERM"}), checked.stdout)
            self.assertIn(printed_report + "\n", checked.stdout)

    def test_the_printed_worker_of_a_gru(self):
        page = (ROOT / "docs" / "models.md").read_text()
        self.passes(sys.executable, "-c", PROGRAMS["models_worker"].text, text=page[page.index("# gru.toml"):].partition("```")[0],
                    tolerance=NUMBERS)

    def test_a_worker_that_counts_across_resets_does_not_pass(self):
        with self.assertRaisesRegex(AssertionError, "the state must be fresh before each row with RESET"):
            self.passes(sys.executable, "-c", PROGRAMS[COUNTS].text)

    def test_every_printed_worker_is_checked(self):
        workers = {name for name, program in PROGRAMS.items() if "Worker(" in program.text or "Worker worker" in program.text}
        self.assertEqual(workers, {*PRINTED, COUNTS, "worker_cpp", "models_worker", "worker_onnx"})


if __name__ == "__main__":
    unittest.main()
