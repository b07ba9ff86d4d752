#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A service, workers with PyTorch on a GPU, and clients; every value of every batch and every answer is checked.

  e2e.py [--simulated | --device host] [--seconds S] VARIANT

MILLRACE is the path of the program; PYTHONPATH has the package. Prints a line for each condition, and the figures as JSON in
the last line. Exits 0 if all conditions hold, 1 if not, 77 if this machine cannot run it.
"""
import argparse
import json
import os
import signal
import sys
import tempfile

try:
    import millrace  # noqa: F401
    import numpy  # noqa: F401
except ImportError as error:
    why = error if sys.version_info >= (3, 12) else f"Python 3.12 or newer is needed; this is {sys.version.split()[0]}"
    print(f"skipped: the package cannot be loaded: {why}")
    sys.exit(77)

from processes import SKIPPED, Failed, Skipped  # noqa: E402
from run import Run  # noqa: E402
from variants import VARIANTS  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("variant", choices=VARIANTS, help="; ".join(f"{name}: {run.__doc__}" for name, run in VARIANTS.items()))
    parser.add_argument("--seconds", type=float, help="length of the load; default: 8, or 0.5 with --simulated")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--simulated", action="store_true", help="devices are simulated; needs no PyTorch")
    where.add_argument("--device", default="cuda:0", help="of the workers: cuda:N, or host")
    given = parser.parse_args()
    if "MILLRACE" not in os.environ:
        parser.error("the environment variable MILLRACE must be the path of the program")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))

    def show(holds, condition):
        print(f"{'ok' if holds else 'FAILED'}: {condition}", flush=True)

    with tempfile.TemporaryDirectory(prefix="millrace-e2e-") as folder:
        run = Run(folder, given.device, given.simulated, given.seconds or (0.5 if given.simulated else 8), show)
        try:
            VARIANTS[given.variant](run)
        except Skipped as why:
            print(f"skipped: {why}")
            return SKIPPED
        except (Failed, SystemExit) as why:
            run.check(False, str(why))
        finally:
            run.close()
        for process in () if run.passed else run.processes:
            print(" ".join(process.process.args[1:]), "ended with", process.process.returncode)
            print(*process.errors[-12:], sep="\n")
    print(json.dumps({"variant": given.variant, "passed": run.passed, **run.figures}))
    return 0 if run.passed else 1


if __name__ == "__main__":
    sys.exit(main())
