# SPDX-License-Identifier: Apache-2.0
"""The service is stopped for a while, as when its machine is suspended or has no CPU for it. Events that were due are late,
and there is no other effect. Ids like C18 are those of docs/internals/guarantees.md."""
import contextlib
import json
import signal
import subprocess
import time
import unittest

from faults import PACKET, text
from harness import MILLRACE, Process, samples, wait_for
from many_clients import ManyClientsTest
from raw_client import BINARY, frame, upgrade
from raw_worker import Honest, RawWorker

STALL = 9  # seconds: longer than the time limits of a silent worker and of a message, shorter than those of the clients
CLIENTS = 700  # more than an io thread gets events of at once
ROWS = 16  # rows of a batch
PIPELINE = f"[[pipeline]]\nslots = 1000\nchunk = {{ size = 1600 }}\nbatch = {{ rows = {ROWS}, max_wait = \"1s\" }}\n"


class Stalls(ManyClientsTest):
    @contextlib.contextmanager
    def stalled(self, service):
        with self.stopped(service):
            time.sleep(STALL)
            yield  # the service sees the events of the block after the timers that are due

    def lags(self, service, more_than):
        """The number of times that a timer of an io thread was later than this."""
        return (service.metric("millrace_event_loop_lag_seconds_count")
                - service.metric("millrace_event_loop_lag_seconds_bucket", le=more_than))

    def test_after_a_stall_all_streams_continue_and_every_row_comes_once(self):  # C18, G6
        service = self.service(PIPELINE)
        worker = RawWorker(service.workers).attached().beat()
        packet = frame(BINARY, samples(0, PACKET))
        with self.moved(service, {}):
            clients = [self.join(service, upgrade()).opened() for _ in range(CLIENTS)]
            ready, begun = clients[::2], clients[1::2]
            for client in ready:
                client.send(packet)
            unanswered = worker.batch()
            self.await_metric(service, len(ready), "millrace_ingest_messages_total", type="data")
            late = self.lags(service, "1")
            with self.stopped(service):
                for client in begun:
                    client.send(packet[:100])
            service.streams()  # the threads answer after they have read; then they wait 5 s for the rest
            with self.stalled(service):
                for client in ready:
                    client.send(text(type="end"))
                for client in begun:
                    client.send(packet[100:] + text(type="end"))
                worker.answer(unanswered)
            worker = Honest(worker)
            self.addCleanup(worker.close)
            for client in clients:
                *results, closed = client.rest()[1:]
                self.assertEqual([(result["seq"], result["flags"]) for result in results],
                                 [(0, ["START", "RESET", "SEGMENT"]), (1, ["LAST", "END"])])
                self.assertEqual(closed, {"type": "closed", "frames": PACKET, "chunks": 1})
            service.recount()
            self.assertGreater(self.lags(service, "1"), late)
            self.assertEqual(service.metric("millrace_batch_rows_total"), CLIENTS)
            # Missed deadlines close full batches, not one batch each.
            self.assertLess(service.metric("millrace_batches_total"), 3 * CLIENTS / ROWS)
            self.assertEqual(service.metric("millrace_workers"), 1)

    def test_a_hung_worker_is_evicted_however_often_the_service_is_stopped(self):  # F22
        service = self.service(PIPELINE)
        with RawWorker(service.workers).attached() as hung:  # it sends no heartbeat
            begin = time.monotonic()
            while service.metric("millrace_workers") == 1:
                self.assertLess(time.monotonic() - begin, 60)
                service.process.send_signal(signal.SIGSTOP)
                time.sleep(1.5)
                service.process.send_signal(signal.SIGCONT)
                service.recount()
            self.assertEqual(hung.ended(), "timeout")

    def over_zeromq(self, service):
        """A stream of our client library, which has sent a packet."""
        client = Process(MILLRACE, "stream", "--json", "-", "--url", f"tcp://127.0.0.1:{service.zeromq_port}",
                         "--format", "s16le", "--rate", "16000", stdin=subprocess.PIPE)
        self.addCleanup(client.kill)
        client.process.stdin.buffer.write(samples(0, PACKET))
        client.process.stdin.flush()
        # A metric is up to a second old, and the stream does not wait long for a worker.
        wait_for(lambda: PACKET in [stream["frames"] for stream in service.streams()], "the packet to be read")
        return client

    def test_streams_that_wait_for_a_worker_continue_to_wait_after_a_stall(self):  # C18, G6
        service = self.service(PIPELINE + f'worker_wait = "{STALL - 1}s"\n')
        client = self.join(service, upgrade()).opened()
        zeromq = self.over_zeromq(service)
        client.send(frame(BINARY, samples(0, PACKET)) + text(type="end"))
        with self.stalled(service):
            worker = RawWorker(service.workers)
        worker = Honest(worker.attached().beat())
        self.addCleanup(worker.close)
        *results, closed = client.rest()[1:]
        self.assertEqual([result.get("error") for result in results], [None, None])
        self.assertEqual(closed, {"type": "closed", "frames": PACKET, "chunks": 1})
        zeromq.process.stdin.close()
        self.assertEqual(zeromq.wait(), 0, zeromq.errors)
        _, *results, closed = map(json.loads, zeromq.lines)
        self.assertEqual([result.get("error") for result in results], [None, None])
        self.assertEqual((closed["frames"], closed["chunks"]), (PACKET, 1))

    def test_connections_that_a_worker_closed_during_a_stall_fail_no_row(self):  # C18, G6
        service = self.service(PIPELINE)
        first = RawWorker(service.workers).attached().beat()
        with self.moved(service, {("worker_failures", "disconnect"): 1}):
            client = self.join(service, upgrade()).opened()
            client.send(frame(BINARY, samples(0, PACKET)))
            first.batch()
            with self.stopped(service):
                # The worker receives nothing, connects again, gets no Welcome, and connects again.
                for connection in (first, RawWorker(service.workers), RawWorker(service.workers)):
                    connection.close()
                again = RawWorker(service.workers)
            worker = Honest(again.attached().beat())
            self.addCleanup(worker.close)
            client.send(text(type="end"))
            *results, closed = client.rest()[1:]
            self.assertEqual([result.get("error") for result in results], [None, None])
            self.assertEqual(closed, {"type": "closed", "frames": PACKET, "chunks": 1})


if __name__ == "__main__":
    unittest.main()
