# SPDX-License-Identifier: Apache-2.0
"""The archive of scripts/gpu-check in containers without a GPU, without CUDA and without -dev packages."""
import json
import tarfile
import unittest
from pathlib import Path

from container import ROOT, buildah, debian_with_python

ARCHIVE = ROOT / "build" / "gpu-check.tar.xz"
DEBIAN_12 = "docker.io/library/debian:bookworm-slim"


class Archive(unittest.TestCase):
    def unpacked_in(self, image):
        """A container with the archive at /gpu-check. Returns a function that runs a shell command in it: (exit code, lines)."""
        container = buildah("from", "--pull-never", image)
        self.addCleanup(buildah, "rm", container)
        self.root = Path(buildah("mount", container))
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(self.root)

        def run(command):
            *lines, code = buildah("run", container, "--", "bash", "-c", f"{command} 2>&1; code=$?; echo; echo $code").splitlines()
            return int(code), [line for line in lines if line]

        return run

    def statuses(self):
        lines = (self.root / "out" / "steps.jsonl").read_text().splitlines()
        return {step["step"]: step["status"] for step in map(json.loads, lines)}

    def test_it_is_small_enough_to_be_carried(self):
        self.assertLess(ARCHIVE.stat().st_size, 30 << 20)

    def test_with_python_all_steps_pass_on_simulated_devices_and_a_missing_gpu_and_library_are_named(self):
        run = self.unpacked_in(debian_with_python("trixie"))
        code, lines = run("/gpu-check/run --out /out")
        self.assertEqual(code, 77)
        self.assertRegex(lines[0], "^no GPU: gpu_bench: .*no driver for CUDA [0-9.]+ or newer$")

        code, lines = run("/gpu-check/run --simulated --out /out")
        self.assertEqual(code, 0, "\n".join(lines))
        self.assertEqual(self.statuses() | {"e2e 8": "passed"}, dict.fromkeys(self.statuses(), "passed"), "\n".join(lines))
        self.assertEqual(self.statuses()["e2e 8"], "skipped")  # it needs PyTorch
        self.assertLessEqual({*(f"e2e {variant}" for variant in range(8)), "bench timeline"}, set(self.statuses()))
        self.assertRegex(lines[-1], "^[0-9]+ passed, 0 failed$")

        (self.root / "gpu-check" / "lib").rename(self.root / "gpu-check" / "elsewhere")
        code, lines = run("/gpu-check/run --simulated --out /out")
        self.assertEqual(code, 1)
        self.assertRegex(lines[0], "^run: bin/millrace does not start. Unpack the whole archive. .*shared libraries: lib")

    def test_without_python_only_the_steps_in_python_are_skipped(self):
        run = self.unpacked_in(DEBIAN_12)
        code, lines = run("/gpu-check/run --simulated --out /out 'e2e [01]' 'a batch becomes *'")
        self.assertEqual(code, 0, "\n".join(lines))
        self.assertEqual(self.statuses(), {"e2e 0": "passed", "e2e 1": "skipped",
                                           "a batch becomes the same tensor on every device": "passed"})


if __name__ == "__main__":
    unittest.main()
