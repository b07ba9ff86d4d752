# SPDX-License-Identifier: Apache-2.0
"""A program may end while daemon threads of it wait in the package."""
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
