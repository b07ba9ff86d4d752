# SPDX-License-Identifier: Apache-2.0
"""A program may end while daemon threads of it wait in the package. What a thread kept for itself may need the GIL at its end."""
import subprocess
import sys
import unittest

from harness import PATIENCE
from streams import WorkerTest

# The interpreter takes 0.5 s to free its modules. Meanwhile, the waiting thread asks for the GIL.
PROGRAM = """
import sys, threading, time
import millrace

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

def waits(call):
    def run():
        inside.set()
        call()

    inside = threading.Event()
    threading.Thread(target=run, daemon=True).start()
    inside.wait()

sys.modules["slow"] = Slow()
{setup}
waits({call})
"""

# The end of a call of Python on a thread of C++ is the end of what the call has kept for this thread.
KEEPS = """
import ctypes, threading
import numpy as np
import millrace

takes_the_gil = ctypes.CFUNCTYPE(None)(lambda: None)
kept = threading.local()
ends = []

class Held:
    def __del__(self):
        takes_the_gil()
        ends.append(1)

class Streams(millrace.catalogs.Arrays):
    _place = None

    def read(self, i, begin, n):
        kept.held = Held()
        return super().read(i, begin, n)

with millrace.Dataset(Streams([np.ones(40, np.int16)] * 8), chunk={"size": 8}, slots=2, threads=2) as data:
    for batch in data:
        pass
assert len(ends) >= 8, ends
"""


class ThreadLocals(unittest.TestCase):
    def test_an_object_of_a_thread_whose_end_needs_the_gil(self):
        ended = subprocess.run([sys.executable, "-c", KEEPS], timeout=PATIENCE, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


class Exit(WorkerTest):
    def ends_well(self, setup, call):
        ended = subprocess.run([sys.executable, "-c", PROGRAM.format(setup=setup, call=call)], timeout=PATIENCE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (0, ""))

    def test_a_program_ends_while_a_thread_waits_for_a_batch(self):
        self.ends_well(f"worker = millrace.Worker({self.url()!r})", "worker.next")

    def test_a_program_ends_while_a_thread_waits_for_a_result(self):
        for url in f"ws://127.0.0.1:{self.served.port}", f"tcp://127.0.0.1:{self.served.zeromq_port}":
            with self.subTest(url):
                self.ends_well(f"stream = millrace.Client({url!r}).open()", "stream.next")


if __name__ == "__main__":
    unittest.main()
