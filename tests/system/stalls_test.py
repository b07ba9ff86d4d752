# SPDX-License-Identifier: Apache-2.0
"""The service stands still for a while, as when its machine is suspended or has no time for it: what
was due meanwhile is late, and nothing else. Numbers like C18 name the case in docs/guarantees.md."""
import contextlib
import signal
import time
import unittest

from crowd import CrowdTest
from faults import PACKET, text
from harness import COUNTED, samples, wait_for
from raw_client import BINARY, frame, upgrade
from raw_worker import Honest, RawWorker

STALL = 7  # seconds: more than the silence of a worker, or a message, may last
CLIENTS = 700  # more than each io thread hears of at once
PIPELINE = "[[pipeline]]\nslots = 1000\nchunk = { size = 1600 }\nbatch = { rows = 16, max_wait = \"50ms\" }\n"


class Stalls(CrowdTest):
    @contextlib.contextmanager
    def stopped(self, service):
        service.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: service.state() == "T", "the service to stand still")
        time.sleep(STALL)
        yield  # what happens now it hears after the timers that are due
        service.process.send_signal(signal.SIGCONT)

    def lags(self, service, more_than):
        """How often a timer of an io thread was later than that."""
        return (service.metric("millrace_event_loop_lag_seconds_count")
                - service.metric("millrace_event_loop_lag_seconds_bucket", le=more_than))

    def test_after_a_stall_nobody_is_given_up_and_every_row_comes_once(self):  # C18, G6
        service = self.service(PIPELINE)
        worker = Honest(RawWorker(service.workers).attached().beat())  # which waits as long as it takes
        self.addCleanup(worker.close)
        packet = frame(BINARY, samples(0, PACKET))
        with self.moved(service, {}), self.unharmed(service):
            clients = [self.join(service, upgrade()).opened() for _ in range(CLIENTS)]
            for client in clients:
                client.send(packet[:100])
            wait_for(lambda: service.metric("millrace_streams") == CLIENTS + 1, "all streams", COUNTED)
            late = self.lags(service, "1")
            with self.stopped(service):
                for client in clients:
                    client.send(packet[100:] + text(type="end"))
            for client in clients:
                *results, closed = client.rest()[1:]
                self.assertEqual([(result["seq"], result["flags"]) for result in results],
                                 [(0, ["START", "RESET", "SEGMENT"]), (1, ["LAST", "END"])])
                self.assertEqual(closed, {"type": "closed", "frames": PACKET, "chunks": 1})
            service.recount()
            self.assertGreater(self.lags(service, "1"), late)
            self.assertEqual(service.metric("millrace_batch_rows_total"), CLIENTS + 1)
            self.assertEqual(service.metric("millrace_workers"), 1)


if __name__ == "__main__":
    unittest.main()
