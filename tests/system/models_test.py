# SPDX-License-Identifier: Apache-2.0
"""The worker of docs/models.md, and its test, as they are printed; and the worker that docs/workers.md warms up."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import PATIENCE, Process, SystemTest, read_all, run, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON = os.environ["PYTHON"]
PAGE = (printed.ROOT / "docs" / "models.md").read_text()
PIPELINE = PAGE[PAGE.index("# gru.toml"):].partition("```")[0]


class WarmedUp(SystemTest):
    def test_the_worker_of_the_warm_up_serves_silero(self):
        service = self.service((printed.ROOT / "examples" / "silero_vad" / "millrace.toml").read_text())
        model = "import importlib.metadata as m; print(m.distribution('silero-vad').locate_file('silero_vad/data/silero_vad.onnx'))"
        file = subprocess.run([PYTHON, "-c", model], capture_output=True, text=True, check=True).stdout.strip()
        worker = Process(PYTHON, "-c", printed.programs()["worker_onnx"].text, file, environment={"MILLRACE_WORKERS": service.workers})
        self.addCleanup(worker.kill)
        wait_for(lambda: service.attached() or worker.process.poll() is not None, "the worker to attach")
        self.assertIsNone(worker.process.poll(), worker.errors)

        async def stream():
            async with service.connect(pipeline="vad") as connection:
                await connection.send(bytes(2 * 1024))
                await connection.send('{"type":"end"}')
                return (await read_all(connection))[0]

        answers = [message["data"] for message in run(stream()) if message["type"] == "result"]
        self.assertEqual([0 <= answer < 0.5 for answer in answers], [True, True])


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
