# SPDX-License-Identifier: Apache-2.0
"""scripts/demo, before it builds: which recogniser it shows if the packages of PyPI cannot be installed."""
import os
import platform
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@unittest.skipUnless(platform.machine() == "x86_64", "elsewhere the demo does not ask PyPI")
class Demo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        for path, text in (("scripts/dependencies", ""), ("bin/cmake", "echo built with $* >&2; exit 1")):
            self.program(path, text)
        shutil.copy(ROOT / "scripts" / "demo", self.tree / "scripts" / "demo")
        self.requirement = self.tree / "examples" / "moonshine" / "requirements.txt"
        self.requirement.parent.mkdir(parents=True)
        self.requirement.write_text("weights==1 --hash=sha256:" + 64 * "0" + "\n")

    def program(self, path, text):
        file = self.tree / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def wheel(self):
        with zipfile.ZipFile(self.tree / "weights-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("weights-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: weights\nVersion: 1\n")

    def demo(self, *arguments):
        """Runs it without a network; packages are looked for in its folder. Returns what it prints."""
        environment = {**os.environ, "PATH": f"{self.tree}/bin:{os.environ['PATH']}", "PIP_FIND_LINKS": str(self.tree),
                       "PIP_INDEX_URL": "http://127.0.0.1:1"}
        done = subprocess.run([self.tree / "scripts" / "demo", *arguments], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        return done.stdout + done.stderr

    def test_without_the_packages_it_says_so_and_shows_pocketsphinx(self):
        printed = self.demo()
        self.assertIn("Moonshine cannot be installed from PyPI (build/release/pip.log).\nThis shows CMU PocketSphinx instead.\n", printed)
        self.assertIn("built with --preset release -DMILLRACE_PYTHON_TOO=OFF", printed)

    def test_without_the_packages_it_does_not_show_another_model_than_was_asked_for(self):
        printed = self.demo("--model", "moonshine")
        self.assertIn("Moonshine cannot be installed from PyPI", printed)
        self.assertNotIn("built with", printed)

    def test_a_wheel_with_another_hash_ends_it(self):
        self.wheel()
        printed = self.demo()
        self.assertIn("THESE PACKAGES DO NOT MATCH THE HASHES", printed)
        self.assertNotIn("built with", printed)


if __name__ == "__main__":
    unittest.main()
