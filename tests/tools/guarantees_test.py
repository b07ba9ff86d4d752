# SPDX-License-Identifier: Apache-2.0
"""docs/guarantees.md names the tests that show what it promises: each of them exists."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guarantees.md"


def promises():
    """(line, names of tests) of each row of the page's tables."""
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if line.startswith("| ") and not re.match(r"\| (What|#) ", line):
            yield number, re.findall(r"`([^`]+)`", line.rstrip("| ").rsplit("|", 1)[1])


def exists(name):
    """`folder/file: name of a case`, `system/file.test_name`, or `fuzz/target`."""
    if name.startswith("fuzz/"):
        return (ROOT / "tests" / f"{name}.cpp").exists()
    file, _, case = name.partition(": ")
    if case:
        path = ROOT / "tests" / f"{file}.cpp"
        # A long name is split over lines in C++.
        return path.exists() and f'"{case}"' in re.sub(r'"\s*\n\s*"', "", path.read_text())
    file, _, case = name.rpartition(".")
    path = ROOT / "tests" / f"{file}.py"
    return path.exists() and f"def {case}(" in path.read_text()


class Guarantees(unittest.TestCase):
    def test_each_promise_names_tests_that_exist(self):
        rows = list(promises())
        self.assertGreater(len(rows), 20)
        for number, names in rows:
            with self.subTest(line=number):
                self.assertTrue(names, "no test is named")
                self.assertEqual([name for name in names if not exists(name)], [])


if __name__ == "__main__":
    unittest.main()
