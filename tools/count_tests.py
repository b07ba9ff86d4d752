#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of a report that `ctest --output-junit` wrote.

  tools/count_tests.py REPORT

Prints `PASSED FAILED SKIPPED`, then the name and the last lines of output of each failed test.
A test counts as skipped if it reports so, or is disabled. A test that could not be started, or
whose fixture failed, counts as failed.
"""

import sys
import xml.etree.ElementTree as ElementTree

OUTPUT_LINES = 25


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
    cases = list(ElementTree.parse(sys.argv[1]).iter("testcase"))
    outcomes = [outcome(case) for case in cases]
    print(*(outcomes.count(what) for what in ("passed", "failed", "skipped")))
    for case, what in zip(cases, outcomes):
        if what == "failed":
            print(f"FAILED: {case.get('name')}")
            for line in (case.findtext("system-out") or "").splitlines()[-OUTPUT_LINES:]:
                print(f"  {line}")


if __name__ == "__main__":
    main()
