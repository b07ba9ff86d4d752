#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a program has the protections that cmake/hardening.cmake requests.

  tools/check_hardening.py PROGRAM...

Prints one line `PROGRAM: no PROTECTION` for each missing protection. Exits 1 if one is missing.
"""

import re
import subprocess
import sys

# Name, the option of readelf that shows it, the pattern in its output.
CHECKS = [
    ("position-independent code", "--dynamic", r"\(FLAGS_1\).*\bPIE\b"),
    ("symbols bound at start (-z now)", "--dynamic", r"\(FLAGS_1\).*\bNOW\b"),
    ("a read-only relocation table (-z relro)", "--segments", r"^\s*GNU_RELRO\b"),
    ("a stack that is not executable", "--segments", r"^\s*GNU_STACK\b.*\bRW\s"),
    ("stack canaries", "--dyn-syms", r"\b__stack_chk_fail\b"),
    ("fortified calls", "--dyn-syms", r"\b__(?!stack_chk)\w+_chk\b"),
]


def lacks(program):
    """The names of the missing protections, in the order of CHECKS."""
    for what, section, pattern in CHECKS:
        shown = subprocess.run(["readelf", "--wide", section, program], check=True,
                               capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin"})
        if not re.search(pattern, shown.stdout, re.MULTILINE):
            yield what


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = [(program, what) for program in sys.argv[1:] for what in lacks(program)]
    for program, what in found:
        print(f"{program}: no {what.removeprefix('a ')}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
