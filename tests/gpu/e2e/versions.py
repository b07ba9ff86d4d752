#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the versions of what the end-to-end programs need, and how long it takes to load: the first time from the disk.

  versions.py [--simulated]
"""
import sys
import time

start = time.monotonic()
print(f"Python {sys.version.split()[0]}, {sys.executable}", flush=True)
try:
    import numpy
    print(f"NumPy {numpy.__version__}", flush=True)
    if "--simulated" not in sys.argv:
        import torch
        print(f"PyTorch {torch.__version__}, imported after {time.monotonic() - start:.1f} s", flush=True)
        torch.zeros(1, device="cuda")
        print(f"its device was ready after {time.monotonic() - start:.1f} s")
except (ImportError, RuntimeError, AssertionError) as error:
    print("skipped:", error)
    sys.exit(77)
