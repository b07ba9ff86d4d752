# SPDX-License-Identifier: Apache-2.0
"""The package as it is built, installed and typed."""
import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

import millrace
from millrace import _core

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "python" / "pyproject.toml"


class Package(unittest.TestCase):
    def test_the_version_is_that_of_the_program(self):
        printed = subprocess.run([os.environ["MILLRACE"], "--version"], capture_output=True, text=True, check=True)
        self.assertIn(importlib.metadata.version("millrace"), printed.stdout)
        self.assertEqual(millrace.__version__, importlib.metadata.version("millrace"))

    def test_the_source_distribution_has_each_folder_that_is_built(self):
        built, = re.findall(r"foreach\(folder (.*)\)\n.*\nendforeach\(\)\nif\(MILLRACE_PYTHON\)", (ROOT / "CMakeLists.txt").read_text())
        included = tomllib.loads(PROJECT.read_text())["tool"]["scikit-build"]["sdist"]["force-include"]
        self.assertEqual({path for path in included if path.startswith("../")},
                         {f"../{path}" for path in ["CMakeLists.txt", "cmake", *built.split()]})


class Types(unittest.TestCase):
    def mypy(self, *arguments):
        checked = subprocess.run([sys.executable, "-m", "mypy", "--config-file", PROJECT, "--cache-dir", os.devnull, *arguments],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_the_package_is_strictly_typed(self):
        self.mypy("-p", "millrace")

    def test_the_workers_of_the_document_are_strictly_typed(self):
        document = (ROOT / "docs" / "workers.md").read_text()
        programs = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
        for program in programs:
            if not re.search("torch|onnxruntime", program):
                self.mypy("-c", program)

    def test_the_stub_names_what_the_extension_has(self):
        stub = ast.parse((Path(millrace.__file__).parent / "_core.pyi").read_text())
        self.assertEqual(named(stub), public(_core))
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                self.assertEqual(named(node), public(getattr(_core, node.name)), node.name)


def named(node):
    """The names that a module or a class of a stub defines."""
    targets = {entry.target.id for entry in node.body if isinstance(entry, ast.AnnAssign)}
    return targets | {entry.name for entry in node.body if isinstance(entry, (ast.FunctionDef, ast.ClassDef))} - {"__init__"}


def public(thing):
    return {name for name in vars(thing) if not name.startswith("__")}


if __name__ == "__main__":
    unittest.main()
