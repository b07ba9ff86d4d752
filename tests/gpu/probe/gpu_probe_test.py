# SPDX-License-Identifier: Apache-2.0
"""The probes of scripts/gpu-check on simulated devices: they pass, and detect simulated faults."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GPU_PROBE = sys.argv.pop()
NAMES = ("A", "B", "G", "C", "C2", "D", "E", "X", "N", "F")  # in the order in which they run


class Probes(unittest.TestCase):
    def run_probes(self, *arguments, simulated="devices=1;pauses=20"):
        done = subprocess.run([GPU_PROBE, "--quick", *arguments], capture_output=True, text=True,
                              env=os.environ | {"MILLRACE_SIMULATED_CUDA": simulated})
        return done.returncode, done.stdout, done.stderr

    def verdicts(self, output):
        return dict(re.findall(r"^probe (\w+):.*?^  (PASS|FAIL)", output, re.MULTILINE | re.DOTALL))

    def test_all_pass_on_devices_that_keep_what_we_rely_on(self):
        code, output, errors = self.run_probes()
        self.assertEqual(list(self.verdicts(output).items()), [(name, "PASS") for name in NAMES], output + errors)
        self.assertEqual(code, 0)
        self.assertIn("200 times 1 record: 0 STALE", output)
        self.assertIn("50 times 3 records at once: 0 STALE", output)
        self.assertIn("300 copies of 64 KiB: 0 WRONG", output)
        self.assertIn("2 times 8 MiB: 0 WRONG", output)
        self.assertIn("same namespaces: memory handle works, event handle works", output)

    def test_each_says_at_its_end_what_it_means(self):
        output = self.run_probes("C", "C2", "E", "X", "N")[1]
        self.assertEqual(len(re.findall(r"^  means: .*\n  PASS$", output, re.MULTILINE)), 5, output)

    def test_calls_of_a_worker_that_captures_graphs_break_no_capture(self):
        output = self.run_probes("F")[1]
        self.assertRegex(output, r"meanwhile [1-9]\d* graphs were captured and 0 broken, [1-9]")
        self.assertNotIn("queries of the process that records", output)

    def test_an_event_that_is_seen_as_it_was_before_is_found(self):
        for probe, what in (("A", r"[1-9]\d* STALE"), ("B", r"[1-9]\d* WRONG"), ("F", r"[1-9]\d* STALE")):
            with self.subTest(probe):
                code, output, _ = self.run_probes(probe, simulated="devices=1;pauses=200;stale-queries=3")
                self.assertEqual((code, self.verdicts(output)), (1, {probe: "FAIL"}), output)
                self.assertRegex(output, what)
                self.assertIn("means: decision 12 does NOT hold", output)

    def test_an_event_of_a_worker_that_has_ended_and_does_not_pass_is_found(self):
        code, output, _ = self.run_probes("C2", simulated="devices=1;fail=cudaEventQuery:600:1")
        self.assertEqual((code, self.verdicts(output)), (1, {"C2": "FAIL"}), output)
        self.assertIn("1 without success (cudaErrorNotReady)", output)

    def test_a_device_that_dies_with_the_service_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            dead = Path(folder, "dead")
            probe = subprocess.Popen([GPU_PROBE, "--quick", "D"], stdout=subprocess.PIPE, text=True,
                                     env=os.environ | {"MILLRACE_SIMULATED_CUDA": f"dead-when={dead}:700"})
            with probe:
                for line in probe.stdout:
                    if "the service is killed" in line:
                        dead.touch()
                        break
                output = probe.stdout.read()
        self.assertEqual(probe.returncode, 1, output)
        self.assertIn("(a) a kernel that read the memory across the kill: reading: an illegal memory access", output)
        self.assertIn("means: docs/workers.md does NOT hold: a worker must end", output)

    def test_a_probe_that_hangs_is_ended(self):
        code, output, _ = self.run_probes("--limit", "1", "B", simulated="devices=1;hold-copies")
        self.assertEqual((code, self.verdicts(output)), (1, {"B": "FAIL"}), output)
        self.assertIn("FAIL: it has not ended after 1 s", output)

    def test_a_process_that_ends_fails_its_probe(self):
        code, output, _ = self.run_probes("A", simulated="devices=1;fail=cudaIpcOpenEventHandle:201")
        self.assertEqual((code, self.verdicts(output)), (1, {"A": "FAIL"}), output)
        self.assertIn("the other process failed: opening an event", output)

    def test_on_a_device_without_memory_each_probe_says_so_and_fails(self):
        names = [name for name in NAMES if name != "X"]  # it allocates nothing
        _, output, _ = self.run_probes(*names, simulated="devices=1;memory=1")
        probes = re.split(r"^probe ", output, flags=re.MULTILINE)[1:]
        self.assertEqual(len(probes), len(names))
        for probe in probes:
            self.assertIn("allocating device memory: out of memory", probe)
            self.assertIn("  means: nothing", probe)
            self.assertIn("  PASS" if probe.startswith("N") else "  FAIL", probe)

    def test_without_a_device_nothing_is_probed(self):
        code, output, errors = self.run_probes(simulated="devices=0")
        self.assertEqual((code, output), (77, ""))
        self.assertIn("gpu_probe: no device", errors)

    def test_an_unknown_name_is_refused(self):
        self.assertEqual(self.run_probes("H"), (2, "", "gpu_probe: no probe H\n"))


if __name__ == "__main__":
    unittest.main()
