# SPDX-License-Identifier: Apache-2.0
"""`millrace bench --worker-device` on simulated devices: it checks what the device has."""
import concurrent.futures
import json
import os
import subprocess
import unittest

from gpu_faults import MILLRACE_SIMULATED, OUT_OF_MEMORY, GpuFaultTest
from harness import COUNTED, PATIENCE, wait_for


class BenchOnDevice(GpuFaultTest):
    def bench(self, service, *arguments, simulation="devices=1;check-leaks", device="cuda:0"):
        """Runs it beside a service: (exit code, its output, its standard error)."""
        done = subprocess.run(
            [MILLRACE_SIMULATED, "bench", "--warm-up", "0ms", "--duration", "300ms", "--streams", "10",
             "--url", f"ws://127.0.0.1:{service.port}", "--workers", service.workers, "--worker", "answer",
             "--worker-device", device, *arguments], capture_output=True, text=True, timeout=4 * PATIENCE,
            env=os.environ | {"MILLRACE_SIMULATED_CUDA": simulation})
        return done.returncode, done.stdout, done.stderr

    def test_a_run_is_whole_whether_the_service_or_the_worker_copies(self):
        for gpu in ("", 'devices = "host"'):
            for dtype in ("s16", "f32"):
                with self.subTest(gpu=gpu, dtype=dtype):
                    service = self.simulated(gpu=gpu, pipeline=f'dtype = "{dtype}"\n')
                    code, output, errors = self.bench(service, "--json")
                    seen = json.loads(output)
                    self.assertEqual((code, errors, seen["whole"]), (0, "", True), seen)
                    self.assertEqual(seen["worker"]["device"], "cuda:0")
                    self.assertGreater(seen["worker"]["rows"], 20)
                    if not gpu:
                        self.await_metric(service, seen["worker"]["batches"], "millrace_h2d_copies_total")

    def test_rows_that_are_taken_before_they_are_on_the_device_are_damaged(self):
        for dtype in ("s16", "f16"):  # of f16 the control values show it
            with self.subTest(dtype):
                service = self.simulated("devices=1;hold-copies-while={folder}/held", pipeline=f'dtype = "{dtype}"\n')
                service.touch("held")
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    running = pool.submit(self.bench, service, simulation="devices=1;stale-queries=1")
                    try:
                        wait_for(lambda: service.metric("millrace_results_total") > 0, "a result of the worker", COUNTED)
                    finally:
                        service.remove("held")
                    code, output, _ = running.result()
                self.assertEqual(code, 1)
                self.assertRegex(output, r"\d+ rows in \d+ batches on cuda:0; .* damaged [1-9]")

    def test_the_reason_is_printed_if_the_device_fails_or_does_not_exist(self):
        service = self.simulated()
        self.addCleanup(service.kill)  # a drain would wait for a worker that answers the rows of the failed run
        for device, simulation, words in (
                ("cuda:0", f"devices=1;fail=cudaStreamSynchronize:{OUT_OF_MEMORY}:1", "copying from the device: "),
                ("cuda:1", "devices=1", 'no device "cuda:1" on this machine; available: host, cuda:0\n'),
                ("cuda", "devices=0", 'no device "cuda" on this machine; available: host (no CUDA device: ')):
            with self.subTest(words):
                code, output, errors = self.bench(service, simulation=simulation, device=device)
                self.assertEqual((code, output), (1, ""))
                self.assertRegex(errors, r"^millrace bench: .*\n$")
                self.assertIn(words, errors)


if __name__ == "__main__":
    unittest.main()
