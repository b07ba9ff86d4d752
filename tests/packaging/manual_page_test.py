# SPDX-License-Identifier: Apache-2.0
"""The manual page lists exactly the commands of the program. The first argument is the program."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
PAGE = Path(__file__).resolve().parents[2] / "packaging" / "millrace.1"


class ManualPage(unittest.TestCase):
    def test_the_commands_are_those_of_the_program(self):
        shown = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z-]+)  ", shown.split("Subcommands:")[1], re.MULTILINE)
        section = re.search(r"^\.SH COMMANDS\n(.*?)^\.SH", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
        self.assertEqual(re.findall(r"^\.B ([a-z-]+)$", section, re.MULTILINE), commands)

    def test_man_formats_the_page_without_a_warning(self):
        shown = subprocess.run(["man", "--warnings", "--encoding=utf8", "--local-file", PAGE], capture_output=True, text=True)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
