# SPDX-License-Identifier: Apache-2.0
"""The benchmark of scripts/gpu-check on simulated devices: what it prints, and what it does if there is no device or memory.
Its figures mean nothing there."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

GPU_BENCH = sys.argv.pop()
SECTIONS = ["copies", "expand", "slots", "bus", "submit", "parts", "slabs", "timeline"]


class GpuBench(unittest.TestCase):
    def bench(self, *arguments, simulated="devices=1;pauses=20"):
        """Its exit code, its output, the lines of its standard error, and those of its file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "figures")
            done = subprocess.run([GPU_BENCH, "--quick", "--small", "--json-to", path, *arguments], capture_output=True, text=True,
                                  env=os.environ | {"MILLRACE_SIMULATED_CUDA": simulated})
            figures = []
            if os.path.exists(path):
                with open(path) as file:
                    figures = [json.loads(line) for line in file]
        return done.returncode, done.stdout, done.stderr.splitlines(), figures

    def test_the_sections_are_listed_without_a_device(self):
        code, output, _, _ = self.bench("--sections", simulated="devices=0")
        self.assertEqual((code, output.split()), (0, SECTIONS))

    def test_each_section_runs_alone_and_writes_its_figures_to_the_file_too(self):
        for section in SECTIONS:
            with self.subTest(section):
                code, output, errors, figures = self.bench("--section", section)
                self.assertEqual((code, errors), (0, []))
                self.assertTrue(figures)
                for figure in figures:
                    self.assertIn(f"  {figure['figure']} ", output)
                    self.assertEqual((figure["section"], figure["product"]), (section, "Simulated GPU"))
                    self.assertEqual(figure["goal"] is None, figure["ok"] is None)

    def test_a_section_that_fails_does_not_stop_the_others(self):
        code, _, errors, figures = self.bench(simulated="devices=1;pauses=20;fail=cudaMallocHost:2")
        self.assertEqual(code, 1)
        self.assertEqual(errors, [f"gpu_bench: {section}: locking pages: out of memory" for section in ("copies", "bus", "slabs")])
        self.assertEqual({figure["section"] for figure in figures}, set(SECTIONS) - {"copies", "bus", "slabs"})

    def test_a_device_whose_memory_is_in_use_is_a_line(self):
        code, _, errors, figures = self.bench("--section", "expand", simulated="devices=1;memory=1048576")
        self.assertEqual((code, errors, figures), (1, ["gpu_bench: expand: allocating device memory: out of memory"], []))

    def test_without_a_device_nothing_is_measured(self):
        code, output, errors, figures = self.bench(simulated="devices=0")
        self.assertEqual((code, output, figures), (77, "", []))
        self.assertIn("gpu_bench: no device 0: no CUDA device", errors[0])

    def test_a_section_or_file_that_does_not_exist_is_named(self):
        code, _, errors, _ = self.bench("--section", "none")
        self.assertEqual((code > 0, errors[0]), (True, "--section: must be one of --sections"))
        done = subprocess.run([GPU_BENCH, "--json-to", "/missing/file"], capture_output=True, text=True,
                              env=os.environ | {"MILLRACE_SIMULATED_CUDA": "devices=1"})
        self.assertEqual((done.returncode, done.stderr), (1, "gpu_bench: /missing/file: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
