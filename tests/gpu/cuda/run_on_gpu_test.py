# SPDX-License-Identifier: Apache-2.0
"""`run` of scripts/gpu-check, with tests and benchmarks that pass, fail or are skipped."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

RUN = Path(__file__).with_name("run_on_gpu")

NO_DEVICE = 'echo "gpu_bench: no device 0: no driver" >&2; exit 77'
BENCH = '[ "$1" = --devices ] && echo "cuda:0: A GPU" || echo "figures $1"'
# As Catch: the status of a list is its length; a comma in a name is written with a backslash.
TESTS = """if [ "$1" = --list-test-names-only ]; then printf 'good\\nbad\\nelsewhere\\none, two\\n'; exit 4; fi
case "$1" in
  bad) echo "it is 3"; exit 1 ;;
  elsewhere) echo "skipped: elsewhere: no memory" ;;
  good | 'one\\, two' | "a device's kernels *") ;;
  *) echo "No tests ran"; exit 2 ;;
esac"""


class RunOnGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        shutil.copy(RUN, self.folder / "run")
        self.program("gpu_bench", BENCH)
        self.program("gpu_probe", 'echo "probed $1"')
        self.program("gpu_test", TESTS)

    def program(self, name, body):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run_it(self, *arguments):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        done = subprocess.run([self.folder / "run", *arguments], capture_output=True, text=True, cwd="/",
                              env=os.environ | {"PATH": path})
        return done.returncode, done.stdout.splitlines()

    def rows(self, lines):
        return {" ".join(line.split()[:-1]): line.split()[-1] for line in lines if line.startswith("  ")}

    def test_without_a_gpu_it_says_so_in_a_line_and_fails(self):
        self.program("gpu_bench", NO_DEVICE)
        self.assertEqual(self.run_it(), (77, ["no GPU: gpu_bench: no device 0: no driver"]))

    def test_each_test_is_a_row_and_the_last_line_counts_them(self):
        self.program("bin/compute-sanitizer", "exit 0")
        code, lines = self.run_it()
        rows = self.rows(lines)
        self.assertEqual([rows[name] for name in ("good", "bad", "elsewhere", "one, two")],
                         ["passed", "FAILED", "skipped", "passed"])
        self.assertIn("    it is 3", lines)
        self.assertIn("    no memory", lines)
        self.assertEqual(lines[-2:], ["1 skipped", "6 passed, 1 failed"])
        self.assertEqual(code, 1)

    def test_probes_come_first_and_their_failure_is_one(self):
        self.program("bin/compute-sanitizer", "exit 0")
        self.program("gpu_test", TESTS.replace("it is 3\"; exit 1", "it is 4\""))
        self.program("gpu_probe", 'echo "probed $1"; exit 1')
        code, lines = self.run_it("--quick")
        self.assertLess(lines.index("probed --quick"), lines.index("tests"))
        self.assertEqual((lines[-1], code), ("6 passed, 1 failed", 1))

    def test_probes_can_be_all_that_is_run(self):
        code, lines = self.run_it("--probe")
        self.assertEqual((lines[-3:], code), (["probed ", "", "1 passed, 0 failed"], 0))

    def test_a_finding_of_the_sanitizer_is_a_failure(self):
        self.program("bin/compute-sanitizer", '[ "$2" = memcheck ] && exit 9; shift 6; "$@"')
        rows = self.rows(self.run_it()[1])
        self.assertEqual((rows["memcheck"], rows["racecheck"]), ("FAILED", "passed"))

    def test_figures_are_printed_and_a_benchmark_that_fails_is_a_failure(self):
        self.program("bin/compute-sanitizer", "exit 0")
        self.program("gpu_test", TESTS.replace("it is 3\"; exit 1", "it is 4\""))
        code, lines = self.run_it("--quick")
        self.assertIn("figures --quick", lines)
        self.assertEqual((lines[-1], code), ("7 passed, 0 failed", 0))
        self.program("gpu_bench", f"{BENCH}; [ $# = 1 ]")
        self.assertEqual(self.run_it()[1][-1], "6 passed, 1 failed")

    def test_tests_that_cannot_be_listed_are_no_success(self):
        self.program("gpu_test", "exit 127")
        code, lines = self.run_it()
        self.assertEqual(self.rows(lines)["the tests can be listed"], "FAILED")
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
