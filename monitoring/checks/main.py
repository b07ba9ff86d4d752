# SPDX-License-Identifier: Apache-2.0
"""See monitoring/check."""
import importlib
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "grafana"))


def count(results):
    """Prints the faults. Returns (passed, failed)."""
    passed = failed = 0
    for subject, faults in results:
        for fault in faults:
            print(f"{subject}: {fault}", flush=True)
        passed, failed = (passed, failed + 1) if faults else (passed + 1, failed)
    return passed, failed


def main():
    what, *rest = sys.argv[1:] or ["all"]
    if what == "write":
        return importlib.import_module("build").main()
    if what == "test":
        tests = unittest.defaultTestLoader.discover(str(HERE.parents[1] / "tests" / "monitoring"), "*_test.py")
        sys.exit(not unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful())
    checks = {"form": "form", "names": "names", "data": "under_load"}
    if what != "all" and what not in checks:
        sys.exit(f"monitoring/check: no check {what}; must be write, form, names, data or test")
    counts = [count(importlib.import_module(checks[name]).check(*rest if name == "data" else []))
              for name in (checks if what == "all" else [what])]
    passed, failed = map(sum, zip(*counts))
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
