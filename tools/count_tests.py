#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of a report that `ctest --output-junit` wrote.

  tools/count_tests.py REPORT

Prints `PASSED FAILED SKIPPED`. Skipped is what a test said of itself, or what is disabled; a test
that could not be started, or whose fixture failed, has failed.
"""

import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    skipped = case.find("skipped")
    if case.get("status") == "run":
        return "passed"
    if case.get("status") == "disabled":
        return "skipped"
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    outcomes = [outcome(case) for case in ElementTree.parse(sys.argv[1]).iter("testcase")]
    print(*(outcomes.count(what) for what in ("passed", "failed", "skipped")))


if __name__ == "__main__":
    main()
