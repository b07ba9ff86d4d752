# SPDX-License-Identifier: Apache-2.0
"""The probes of scripts/gpu-check on simulated devices: they pass, and detect simulated faults."""
import os
import re
import subprocess
import sys
import unittest

GPU_PROBE = sys.argv.pop()


class Probes(unittest.TestCase):
    def run_probes(self, *arguments, simulated="devices=1;pauses=20"):
        done = subprocess.run([GPU_PROBE, "--quick", *arguments], capture_output=True, text=True,
                              env=os.environ | {"MILLRACE_SIMULATED_CUDA": simulated})
        return done.returncode, done.stdout, done.stderr

    def verdicts(self, output):
        return dict(re.findall(r"^probe (\w):.*?^  (PASS|FAIL)", output, re.MULTILINE | re.DOTALL))

    def test_all_pass_on_devices_that_keep_what_we_rely_on(self):
        code, output, errors = self.run_probes()
        self.assertEqual(self.verdicts(output), dict.fromkeys("ABCDEF", "PASS"), output + errors)
        self.assertEqual(code, 0)
        self.assertIn("200 times 1 record: 0 STALE", output)
        self.assertIn("50 times 3 records at once: 0 STALE", output)
        self.assertIn("300 copies of 64 KiB: 0 WRONG", output)

    def test_an_event_that_is_seen_as_it_was_before_is_found(self):
        for probe, what in (("A", r"[1-9]\d* STALE"), ("B", r"[1-9]\d* WRONG"), ("F", r"[1-9]\d* STALE")):
            with self.subTest(probe):
                code, output, _ = self.run_probes(probe, simulated="devices=1;pauses=200;stale-queries=3")
                self.assertEqual((code, self.verdicts(output)), (1, {probe: "FAIL"}), output)
                self.assertRegex(output, what)

    def test_a_probe_that_hangs_is_ended(self):
        code, output, _ = self.run_probes("--limit", "1", "B", simulated="devices=1;hold-copies")
        self.assertEqual((code, self.verdicts(output)), (1, {"B": "FAIL"}), output)
        self.assertIn("FAIL: it has not ended after 1 s", output)

    def test_a_process_that_ends_fails_its_probe(self):
        code, output, _ = self.run_probes("A", simulated="devices=1;fail=cudaIpcOpenEventHandle:201")
        self.assertEqual((code, self.verdicts(output)), (1, {"A": "FAIL"}), output)
        self.assertIn("the other process failed: opening an event", output)

    def test_without_a_device_nothing_is_probed(self):
        code, output, errors = self.run_probes(simulated="devices=0")
        self.assertEqual((code, output), (77, ""))
        self.assertIn("gpu_probe: no device", errors)


if __name__ == "__main__":
    unittest.main()
