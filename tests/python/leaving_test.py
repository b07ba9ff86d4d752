# SPDX-License-Identifier: Apache-2.0
"""How worker.run leaves at SIGTERM and SIGINT."""
import os
import signal
import sys
import threading
import unittest

import numpy as np
from harness import PATIENCE, Process, wait_for
from streams import WorkerTest

import millrace

RUNS = """
import millrace
with millrace.Worker() as worker:
    print("runs", flush=True)
    worker.run(lambda batch: ["answer"] * len(batch.framed))
print("returned", flush=True)
"""


class Leaving(WorkerTest):
    def meanwhile(self, function):
        """Calls the function in a thread. run() needs the main one."""
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
        self.addCleanup(thread.join)

    def run_beside(self):
        """Another worker."""
        worker = self.worker()
        self.meanwhile(lambda: worker.run(lambda batch: ["other"] * len(batch.framed)))
        self.addCleanup(worker.close)  # before the thread is joined

    def leaves_at(self, number):
        """At the first signal, a worker with two streams leaves. It has had a row of one of them."""
        worker, busy, idle = self.worker(), self.stream(), self.stream()
        busy.frames(1, 2, 3, 4)

        def step(batch):
            if batch.rows:  # not with the marker row of the flush
                self.run_beside()
                signal.raise_signal(number)

        with self.assertLogs("millrace", "WARNING") as logs:
            def end_segment():
                wait_for(lambda: logs.output, "the log")
                busy.command("flush")

            self.meanwhile(end_segment)
            worker.run(step)
        self.assertEqual([line.removeprefix("WARNING:millrace:") for line in logs.output],
                         [f"leaving at {number.name}: streams moved: 1, waiting: 1", f"left at {number.name}"])
        for stream in busy, idle:
            stream.frames(5, 6, 7, 8)
            self.assertEqual(stream.received("result")[-1]["data"], "other")

    def test_at_sigterm_a_worker_gives_its_streams_away_and_logs_it(self):
        self.leaves_at(signal.SIGTERM)

    def test_at_ctrl_c_a_worker_gives_its_streams_away_and_logs_it(self):
        self.leaves_at(signal.SIGINT)

    def test_a_send_that_waits_for_room_goes_on_waiting(self):
        worker = self.worker()
        stream = self.enterContext(millrace.Client(f"ws://127.0.0.1:{self.served.port}").open(format="s16le"))
        stream.send(np.arange(4, dtype=np.int16))
        sent = []

        def step(batch):
            if not batch.rows or sent:
                return
            number = batch.framed[0].stream
            while worker.send(number, bytes(1000), wait=0.5):
                pass
            signal.raise_signal(signal.SIGTERM)
            reader = threading.Timer(0.5, lambda: [None for _ in stream])  # takes the messages, when send() has looked for signals
            reader.start()
            self.addCleanup(reader.join)
            sent.append(worker.send(number, bytes(1000), wait=PATIENCE))
            stream.end()

        worker.run(step)
        self.assertEqual(sent, [True])

    def test_without_another_worker_its_streams_stay_until_they_end(self):
        worker, stream = self.worker(), self.stream()
        stream.frames(1, 2, 3, 4)

        def step(batch):
            if len(batch.framed) and batch.framed[0].seq == 0:
                signal.raise_signal(signal.SIGTERM)
            return ["answer"] * len(batch.framed)

        with self.assertLogs("millrace", "WARNING") as logs:
            def go_on():
                wait_for(lambda: logs.output, "the log")
                stream.frames(5, 6, 7, 8)
                stream.received("result", 2)
                stream.command("end")

            self.meanwhile(go_on)
            worker.run(step)
        self.assertIn("streams moved: 0, waiting: 1; there is no other worker", logs.output[0])
        self.assertEqual([result["data"] for result in stream.received("result", 2)[:2]], ["answer"] * 2)

    def test_a_second_ctrl_c_is_a_keyboard_interrupt(self):
        worker = self.worker()
        self.stream().frames(1, 2, 3, 4)
        with self.assertRaises(KeyboardInterrupt):
            worker.run(lambda _: [signal.raise_signal(signal.SIGINT) for _ in range(2)])

    def ends_at_the_second_signal(self, program, status):
        worker = Process(sys.executable, "-c", program, environment={"MILLRACE_WORKERS": self.served.workers})
        self.addCleanup(worker.kill)
        stream = self.stream()
        stream.frames(1, 2, 3, 4)
        stream.received("result")
        worker.process.send_signal(signal.SIGTERM)
        wait_for(lambda: any("waiting: 1" in line for line in worker.errors), "the log of the worker")
        self.assertEqual(worker.stop(signal.SIGTERM), status)
        self.assertEqual(worker.lines, ["runs"])

    def test_a_second_signal_ends_the_process(self):
        self.ends_at_the_second_signal(RUNS, -signal.SIGTERM)

    def test_a_second_signal_also_ends_the_first_process_of_a_container(self):
        """The kernel ignores a signal with the default effect there."""
        self.ends_at_the_second_signal("import os; os.getpid = lambda: 1" + RUNS, 128 + signal.SIGTERM)

    def test_the_signals_have_their_former_handlers_afterwards(self):
        worker = self.worker()
        before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        seen = []

        def step(batch):
            seen.append([signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)])
            worker.interrupt()

        self.stream().frames(1, 2, 3, 4)
        worker.run(step)
        self.assertNotIn(before[0], seen[0])
        self.assertNotIn(before[1], seen[0])
        self.assertEqual([signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)], before)

    def handlers_in(self, run):
        """The handlers of the two signals while a worker runs, which `run` is called with."""
        worker, seen = self.worker(), []

        def step(batch):
            seen.extend(signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT))
            worker.interrupt()

        self.stream().frames(1, 2, 3, 4)
        run(lambda: worker.run(step))
        worker.close()
        return seen

    def test_handlers_of_the_program_stay(self):
        own = lambda *_: None  # noqa: E731
        for number, handler in (signal.SIGTERM, own), (signal.SIGINT, signal.SIG_IGN):
            self.addCleanup(signal.signal, number, signal.signal(number, handler))
        self.assertEqual(self.handlers_in(lambda runs: runs()), [own, signal.SIG_IGN])

    def test_in_another_thread_no_signal_is_handled(self):
        def in_a_thread(runs):
            thread = threading.Thread(target=runs)
            thread.start()
            thread.join()

        self.assertEqual(self.handlers_in(in_a_thread), [signal.SIG_DFL, signal.default_int_handler])

    def test_a_worker_without_streams_ends_at_once(self):
        worker = self.worker()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with self.assertLogs("millrace", "WARNING") as logs:
            worker.run(self.fail)
        self.assertIn("left at SIGTERM", logs.output[-1])


if __name__ == "__main__":
    unittest.main()
