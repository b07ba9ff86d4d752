# SPDX-License-Identifier: Apache-2.0
"""`run` of scripts/gpu-check, with programs that pass, fail, hang or are skipped."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

RUN = Path(__file__).with_name("run")

BENCH = r"""case "$1" in
  --devices) echo "cuda:0: A GPU, CUDA 13.0" ;;
  --sections) printf 'copies\nslots\n' ;;
  *) echo "figures of $3"
     echo '{"section":"'$3'","figure":"a copy","value":7,"unit":"GB/s","goal":"at least 9","ok":false}' >>"$5" ;;
esac"""
PROBE = 'echo "  probed ${@: -1}"; echo "  means: decision ${@: -1} holds"'
# As Catch: the status of a list is its length; a comma in a name is written with a backslash.
TESTS = r"""if [ "$2" = --list-test-names-only ]; then printf 'good\nbad\nelsewhere\none, "two"\n'; exit 4; fi
case "$1" in
  bad) echo "it is 3"; exit 1 ;;
  elsewhere) echo "skipped: elsewhere: no memory" ;;
  good | 'one\, "two"' | -# | "a device's kernels *") ;;
  *) echo "No tests ran"; exit 2 ;;
esac"""
E2E = """import sys
print("variant", sys.argv[-1])
print('{"batches":12,"mismatches":0}')
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"
        shutil.copy(RUN, self.folder / "run")
        for place in ("bin", "simulated/bin"):
            self.program(f"{place}/millrace", "exit 0")
            self.program(f"{place}/gpu_bench", BENCH)
            self.program(f"{place}/gpu_probe", PROBE)
            self.program(f"{place}/gpu_test", TESTS)
        self.program("e2e/native", "exit 0")
        for name in ("e2e.py", "versions.py"):
            (self.folder / "e2e" / name).write_text(E2E)

    def program(self, name, body):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def start(self, *arguments):
        path = f"{self.folder}/path:{os.environ['PATH']}"
        return subprocess.Popen([self.folder / "run", "--out", self.out, *arguments], text=True, cwd="/",
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"PATH": path})

    def run_it(self, *arguments):
        process = self.start(*arguments)
        output, _ = process.communicate()
        return process.returncode, output

    def lines_of(self, name):
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]

    def steps(self):
        return {line["step"]: line for line in self.lines_of("steps.jsonl")}

    def statuses(self):
        return {name: line["status"] for name, line in self.steps().items()}

    def test_an_error_of_the_driver_is_an_error_with_its_text(self):
        self.program("bin/gpu_bench", 'echo "unknown error" >&2; exit 1')
        self.assertEqual(self.run_it(), (1, "run: bin/gpu_bench fails: unknown error\n"))

    def test_each_step_has_a_row_and_a_line_and_what_may_hang_comes_last(self):
        self.program("path/compute-sanitizer", "exit 9")
        code, output = self.run_it()
        statuses = self.statuses()
        wanted = {"good": "passed", "bad": "failed", "elsewhere": "skipped", 'one, "two"': "passed", "e2e 0": "passed", "e2e 8": "passed",
                  "bench copies": "passed", "bench slots": "passed", "probe C2": "passed", "memcheck": "failed",
                  "tests that need no device": "passed"}
        self.assertEqual({name: statuses.get(name) for name in wanted}, wanted)
        self.assertEqual(list(statuses)[:4], ["e2e 0", "probe X", "python", "e2e 1"])
        self.assertEqual(list(statuses)[-2:], ["probe F", "memcheck"])
        self.assertEqual(self.steps()["elsewhere"]["why"], "no memory")
        self.assertRegex(output, r"bad +FAILED: exit code 1\n +it is 3\n")
        of = list(statuses.values()).count
        self.assertEqual(output.splitlines()[-1], f"{of('passed')} passed, 2 failed")
        self.assertEqual(code, 1)

    def test_steps_that_do_not_fit_into_the_time_are_not_run_and_do_not_fail(self):
        self.program("e2e/native", "sleep 100")
        self.program("path/compute-sanitizer", "exit 0")
        code, output = self.run_it("--deadline", "4")
        statuses = self.statuses()
        self.assertEqual(set(statuses.values()), {"not run"})
        self.assertRegex(self.steps()["e2e 0"]["why"], "^no time: cut after [34] s$")
        self.assertEqual(self.steps()["probe A"]["why"], "no time")
        self.assertEqual((code, output.splitlines()[-1]), (0, "0 passed, 0 failed"))

    def test_a_run_that_is_killed_leaves_what_it_has_found(self):
        self.program("bin/gpu_probe", 'echo "half of a finding"; kill -KILL $(cut -d" " -f4 /proc/$PPID/stat)')
        self.assertEqual(self.run_it("e2e 1", "probe A")[0], -signal.SIGKILL)
        self.assertEqual(self.statuses(), {"e2e 1": "passed"})
        self.assertIn("half of a finding", (self.out / "log.txt").read_text())
        self.assertEqual(self.lines_of("figures.jsonl"), [{"step": "e2e 1", "batches": 12, "mismatches": 0}])

    def test_a_run_that_is_interrupted_ends_its_step_and_writes_the_summary(self):
        pid = self.folder / "pid"
        self.program("bin/gpu_probe", f'echo $$ >{pid}; kill -INT $(cut -d" " -f4 /proc/$PPID/stat); sleep 100')
        self.assertEqual(self.run_it("e2e 0", "probe A")[0], 130)
        self.assert_ended(pid)
        self.assertIn("cuda:0: A GPU", (self.out / "summary.txt").read_text())

    def assert_ended(self, pid):
        stat = Path(f"/proc/{pid.read_text().strip()}/stat")
        self.assertTrue(not stat.exists() or stat.read_text().split()[2] == "Z")

    def test_processes_that_a_step_leaves_are_ended(self):
        pid = self.folder / "pid"
        self.program("e2e/native", f"sleep 100 & echo $! >{pid}; exit 0")
        self.assertEqual(self.run_it("e2e 0")[0], 0)
        self.assert_ended(pid)

    def test_the_end_is_a_short_summary_with_failures_meanings_and_missed_goals(self):
        self.program("bin/gpu_probe", PROBE + "; for i in {1..300}; do echo \"  means: $i and much more of the same, which is long\"; done; exit 1")
        code, output = self.run_it("bench *", "probe *")
        summary = output[output.rindex("\ncuda:0: A GPU"):]
        self.assertLess(len(summary), 8000)
        for wanted in (r"failed: probe A: exit code 1\n", r"figures that miss their goal:\n  copies: a copy: 7 GB/s, goal at least 9\n",
                       r"\nprobe X: decision X holds\n"):
            self.assertRegex(summary, wanted)
        self.assertEqual(code, 1)

    def test_only_the_steps_that_are_named_are_run(self):
        self.run_it("probe [AF]", "bad")
        self.assertEqual(list(self.statuses()), ["probe A", "bad", "probe F"])

    def test_simulated_devices_need_no_gpu(self):
        self.program("bin/gpu_bench", "exit 77")
        self.program("simulated/bin/gpu_test", TESTS + '; echo "$MILLRACE_SIMULATED_CUDA"')
        self.assertEqual(self.run_it("--simulated", "probe A", "good")[0], 0)
        self.assertEqual(list(self.statuses()), ["good"])
        self.assertIn("devices=1;", (self.out / "log.txt").read_text())

    def test_a_full_dev_shm_is_named_at_the_begin(self):
        self.program("path/df", 'echo Avail; echo 0')
        self.assertIn("WARNING: /dev/shm is full", self.run_it("none")[1])

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        self.out = "/proc/none"
        code, output = self.run_it()
        self.assertEqual((code, output.splitlines()[-1]), (1, "run: cannot make the folder /proc/none"))

    def test_wrong_options_print_the_usage(self):
        for words in (["--deadline", "soon"], ["--deadline"], ["--fast"]):
            code, output = self.run_it(*words)
            self.assertEqual(code, 2)
            self.assertTrue(re.search(r"^ +--deadline SECONDS|^--deadline SECONDS", output, re.MULTILINE), output)


if __name__ == "__main__":
    unittest.main()
