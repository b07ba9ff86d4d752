# SPDX-License-Identifier: Apache-2.0
"""Reports as CTest 3.25 writes them, given to tools/count_tests.py."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "count_tests.py"

RUN = '<testcase name="a" time="0.1" status="run"><system-out>&lt;testcase status=</system-out></testcase>'
FAIL = '<testcase name="status=&quot;run&quot;" status="fail"><failure message=""/></testcase>'
NOT_FOUND = '<testcase name="c" status="notrun"><skipped message="Unable to find executable"/></testcase>'
NO_FIXTURE = '<testcase name="d" status="notrun"><skipped message="Fixture dependency failed"/></testcase>'
SKIPPED = '<testcase name="e" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
DISABLED = '<testcase name="f" status="disabled"><system-out>Disabled</system-out></testcase>'


class CountTests(unittest.TestCase):
    def count(self, *cases):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as report:
            report.write(f"<testsuite>{''.join(cases)}</testsuite>")
            report.flush()
            return subprocess.run([sys.executable, TOOL, report.name], capture_output=True, text=True)

    def assert_counts(self, counts, *cases):
        self.assertEqual(self.count(*cases).stdout.splitlines()[0], counts)

    def test_passed_and_failed_tests_are_counted(self):
        self.assert_counts("2 1 0", RUN, FAIL, RUN)

    def test_a_failed_test_is_named_with_the_end_of_its_output(self):
        output = "\n".join(f"line {n}" for n in range(100))
        case = f'<testcase name="b" status="fail"><system-out>{output}</system-out></testcase>'
        lines = self.count(RUN, case).stdout.splitlines()
        self.assertEqual(lines[:2], ["1 1 0", "FAILED: b"])
        self.assertEqual(lines[2:], [f"  line {n}" for n in range(75, 100)])

    def test_tests_that_could_not_be_started_count_as_failed(self):
        self.assert_counts("0 2 0", NOT_FOUND, NO_FIXTURE)

    def test_skipped_and_disabled_tests_are_counted_separately(self):
        self.assert_counts("1 0 2", SKIPPED, RUN, DISABLED)

    def test_a_torn_report_is_an_error(self):
        self.assertNotEqual(self.count("<testcase").returncode, 0)


if __name__ == "__main__":
    unittest.main()
