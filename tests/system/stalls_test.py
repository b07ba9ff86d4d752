# SPDX-License-Identifier: Apache-2.0
"""The service is stopped for a while, as when its machine is suspended or has no CPU for it. Events that were due are late,
and there is no other effect. Ids like C18 are those of docs/internals/guarantees.md."""
import json
import subprocess
import time
import unittest

from faults import PACKET, text
from harness import MILLRACE, Process, samples, wait_for
from many_clients import ManyClientsTest
from raw_client import BINARY, frame, upgrade
from raw_worker import Honest, RawWorker

STALL = 8  # seconds: longer than the time limits of a silent worker and of a message, shorter than those of the clients
CLIENTS = 700  # more than an io thread gets events of at once
ROWS = 16  # rows of a batch
PIPELINES = (f"[[pipeline]]\nslots = 1000\nchunk = {{ size = 1600 }}\nbatch = {{ rows = {ROWS}, max_wait = \"1s\" }}\n"
             f'[[pipeline]]\nname = "late"\nchunk = {{ size = 1600 }}\nworker_wait = "{STALL - 1}s"\n')


class Stalls(ManyClientsTest):
    def lags(self, service, more_than):
        """The number of times that a timer of an io thread was later than this."""
        return (service.metric("millrace_event_loop_lag_seconds_count")
                - service.metric("millrace_event_loop_lag_seconds_bucket", le=more_than))

    def over_zeromq(self, service):
        """A stream of our client library that waits for a worker."""
        client = Process(MILLRACE, "stream", "--json", "-", "--url", f"tcp://127.0.0.1:{service.zeromq_port}",
                         "--pipeline", "late", "--format", "s16le", "--rate", "16000", stdin=subprocess.PIPE)
        self.addCleanup(client.kill)
        client.process.stdin.buffer.write(samples(0, PACKET))
        client.process.stdin.flush()
        wait_for(lambda: client.lines, "the stream to be open")
        return client

    def honest(self, worker):
        worker = Honest(worker)
        self.addCleanup(worker.close)

    def test_after_a_stall_all_streams_continue_and_every_row_comes_once(self):  # C18, G6
        service = self.service(PIPELINES)
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
            # All that comes before the stall takes less than the time limits, also on a slow machine.
            zeromq = self.over_zeromq(service)
            waiting = self.join(service, upgrade("/v1/stream?pipeline=late")).opened()
            with self.stopped(service):
                for client in begun:
                    client.send(packet[:100])
            service.streams()  # the threads answer after they have read; then they wait 5 s for the rest
            with self.stopped(service):
                time.sleep(STALL)
                # The service sees all of this after the timers that are due.
                for client in ready:
                    client.send(text(type="end"))
                for client in begun:
                    client.send(packet[100:] + text(type="end"))
                waiting.send(packet + text(type="end"))
                worker.answer(unanswered)
                second = RawWorker(service.workers, pipeline="late")
            self.honest(worker)
            self.honest(second.attached().beat())
            for client in (*clients, waiting):
                *results, closed = client.rest()[1:]
                self.assertEqual([(result["seq"], result["flags"]) for result in results],
                                 [(0, ["START", "RESET", "SEGMENT"]), (1, ["LAST", "END"])], closed)
                self.assertEqual(closed, {"type": "closed", "frames": PACKET, "chunks": 1})
            zeromq.process.stdin.close()
            self.assertEqual(zeromq.wait(), 0, zeromq.errors)
            _, *results, closed = map(json.loads, zeromq.lines)
            self.assertEqual([result.get("error") for result in results], [None, None])
            self.assertEqual((closed["frames"], closed["chunks"]), (PACKET, 1))
            service.recount()
            self.assertGreater(self.lags(service, "1"), late)
            self.assertEqual(service.metric("millrace_batch_rows_total", pipeline="default"), CLIENTS)
            # Missed deadlines close full batches, not one batch each.
            self.assertLess(service.metric("millrace_batches_total", pipeline="default"), 3 * CLIENTS / ROWS)
            self.assertEqual(service.metric("millrace_workers"), 2)


if __name__ == "__main__":
    unittest.main()
