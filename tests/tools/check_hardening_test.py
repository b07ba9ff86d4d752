# SPDX-License-Identifier: Apache-2.0
"""Programs that each lack one protection, given to tools/check_hardening.py.

The first argument is the folder of the programs that CMakeLists.txt beside this file builds.
"""

import subprocess
import sys
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_hardening.py"
PROGRAMS = Path(sys.argv.pop(1))


class CheckHardening(unittest.TestCase):
    def assert_lacks(self, name, *what):
        program = PROGRAMS / f"{name}_sample"
        done = subprocess.run([sys.executable, TOOL, program], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines(), [f"{program}: no {each}" for each in what])
        self.assertEqual(done.returncode, 1 if what else 0)

    def test_a_program_of_this_build_lacks_nothing(self):
        self.assert_lacks("hardened")

    def test_a_program_at_a_fixed_address_is_found(self):
        self.assert_lacks("fixed", "position-independent code")

    def test_a_program_that_binds_late_is_found(self):
        self.assert_lacks("lazy", "symbols bound at start (-z now)")

    def test_a_program_with_writable_relocations_is_found(self):
        self.assert_lacks("writable", "read-only relocation table (-z relro)")

    def test_a_program_with_an_executable_stack_is_found(self):
        self.assert_lacks("executable", "stack that is not executable")

    def test_a_program_without_canaries_is_found(self):
        self.assert_lacks("unguarded", "stack canaries")

    def test_a_program_with_unchecked_calls_is_found(self):
        self.assert_lacks("unfortified", "fortified calls")


if __name__ == "__main__":
    unittest.main()
