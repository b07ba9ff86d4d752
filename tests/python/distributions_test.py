# SPDX-License-Identifier: Apache-2.0
"""The source distribution, and the wheel that was built from it."""
import importlib.metadata
import sys
import tarfile
import unittest
import zipfile
from pathlib import Path

DIST = Path(sys.prefix).parent / "dist"


class Distributions(unittest.TestCase):
    def test_the_wheel_of_the_source_distribution_holds_what_pip_installed(self):
        (wheel,) = DIST.glob("millrace-*.whl")
        built = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("millrace/")}
        installed = {str(file) for file in importlib.metadata.files("millrace") or ()
                     if file.parts[0] == "millrace" and "__pycache__" not in file.parts}
        self.assertEqual(built, installed)
        self.assertIn("millrace/py.typed", built)

    def test_the_source_distribution_holds_no_part_that_is_not_built(self):
        (sdist,) = DIST.glob("millrace-*.tar.gz")
        folders = {"/".join(name.split("/")[1:3]) for name in tarfile.open(sdist).getnames()}
        self.assertLess({"cpp/base", "cpp/workers", "cpp/python", "millrace/_core.pyi"}, folders)
        self.assertFalse(folders & {"cpp/service", "cpp/replay", "cpp/commands", "cpp/tests", "cpp/monitoring"})


if __name__ == "__main__":
    unittest.main()
