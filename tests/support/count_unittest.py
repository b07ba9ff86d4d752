#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a module, and ends with the line `N passed, N failed` on standard output. Everything else goes to standard
error.

  tests/support/count_unittest.py MODULE
"""
import os
import sys
import unittest


def main():
    sys.path.insert(0, os.getcwd())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print there, too
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromName(sys.argv[1]))
    failed = {getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}
    passed = max(0, result.testsRun - len(result.skipped) - len(failed))
    print(f"{passed} passed, {len(failed)} failed", file=out, flush=True)
    sys.exit(bool(failed) or not passed)


if __name__ == "__main__":  # processes that a test spawns import this file
    main()
