# SPDX-License-Identifier: Apache-2.0
"""The worker of docs/models.md, and its test, as they are printed."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import PATIENCE, Process, SystemTest, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON = os.environ["PYTHON"]
PAGE = (printed.ROOT / "docs" / "models.md").read_text()
PIPELINE = PAGE[PAGE.index("# gru.toml"):].partition("```")[0]


class Models(SystemTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.worker = self.folder / "gru_worker.py"
        self.worker.write_text(printed.programs()["models_worker"].text)

    def attach(self, service):
        worker = Process(PYTHON, str(self.worker), environment={"MILLRACE_WORKERS": service.workers})
        self.addCleanup(worker.kill)
        wait_for(lambda: service.get("/readyz")[0] == 200 or worker.process.poll() is not None, "the worker to attach")
        self.assertIsNone(worker.process.poll(), worker.errors)
        return worker

    def check(self, service):
        """Runs the printed test of the worker."""
        return subprocess.run([PYTHON, "-c", printed.programs()["models_test"].text, f"ws://127.0.0.1:{service.port}"],
                              cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def test_each_stream_gets_the_answers_of_the_model_alone(self):
        service = self.service(PIPELINE)
        worker = self.attach(service)
        tested = self.check(service)
        self.assertEqual((tested.stderr, tested.stdout), ("", "96 sequences: every answer is the one of the model alone\n"))
        self.assertEqual(worker.errors, [])

    def test_the_printed_test_finds_a_worker_that_forgets_to_clear_the_state(self):
        text = self.worker.read_text()
        line = "        state[:, slot[torch.from_numpy(batch.reset)]] = 0\n"
        self.assertIn(line, text)
        self.worker.write_text(text.replace(line, ""))
        service = self.service(PIPELINE)
        self.attach(service)
        self.assertIn("AssertionError", self.check(service).stderr)

    def test_pipelines_that_do_not_fit_are_refused_with_the_line_to_write(self):
        for right, wrong in (("size = 8", "size = 16"), ("size = 8", "size = 8, step = 4"), ("size = 8", "size = 8, first = 3"),
                             ("dim   = 4", "dim   = 5")):
            with self.subTest(wrong):
                service = self.service(PIPELINE.replace(right, wrong))
                worker = Process(PYTHON, str(self.worker), environment={"MILLRACE_WORKERS": service.workers})
                self.addCleanup(worker.kill)
                self.assertEqual((worker.wait(), worker.errors), (1, ['this model needs: dtype = "f32", dim = 4, chunk = { size = 8 }']))


if __name__ == "__main__":
    unittest.main()
