# SPDX-License-Identifier: Apache-2.0
"""/metrics of a running service."""
import unittest

import worker_wire as wire
from harness import COUNTED, SystemTest, samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import RawWorker
from zeromq_client import Peer

STAGES = ("chunk", "batch", "copy", "handover", "compute", "result")
THREE = "".join(f'[[pipeline]]\nname = "{name}"\nslots = 4\nchunk = {{ size = 1600 }}\n' for name in ("default", "b", "c"))


class Metrics(SystemTest):
    def worker(self, service):
        worker = RawWorker(service.workers).attached().beat()
        self.addCleanup(worker.close)
        return worker

    def test_ready_is_right_at_every_scrape_without_a_request_to_readyz(self):
        service = self.service()
        ready = lambda: service.metric("millrace_ready")
        self.assertEqual(ready(), 0)
        worker = self.worker(service)
        wait_for(lambda: ready() == 1, "the worker to count")
        worker.close()
        wait_for(lambda: not service.listed("workers"), "the worker to be gone")
        self.assertEqual(ready(), 0)  # even if the previous scrape was a moment ago

    def test_rows_that_the_worker_does_not_answer_count_in_all_stages_but_result(self):
        service = self.service()
        worker = self.worker(service)
        client = RawClient(service.port, upgrade())
        client.opened()
        for row in range(5):
            client.send(frame(BINARY, samples(row * 1600, 1600)))
            batch = worker.batch()
            if row == 3:
                worker.answer(batch)
                client.message()
            elif row == 4:
                client.socket.close()  # while the worker has its last row
                wait_for(lambda: not any(stream["connected"] for stream in service.streams()), "its client to be gone")
                worker.answer(batch)
            else:
                worker.send(wire.done(batch.id, [], []))
        worker.answer(worker.batch())  # ABORT
        def counts():
            return [service.metric("millrace_queue_wait_seconds_count", stage=stage) for stage in STAGES]

        wait_for(lambda: counts() == [6, 6, 6, 6, 6, 1], "the rows to be counted", COUNTED)

    def test_input_of_clients_creates_no_series(self):
        service = self.service(THREE)
        self.worker(service)
        before = self.series(service)
        self.assertLess(len(before), 2000)
        for number, target in enumerate(("/v1/stream?id=first", "/v1/stream?id=second&pipeline=b", "/v1/stream?pipeline=none",
                                         "/v2/nothing", "/v1/stream?explain=1", "/v1/stream?x=%00", "/v1/stream?format=x")):
            with RawClient(service.port, upgrade(target, Origin=f"https://{number}.example" if number % 2 else None,
                                                 X=f"header {number}", User_Agent=f"agent {number}")) as client:
                client.send(frame(BINARY, b"x" * (100 * number)) + frame(7, b"no such opcode"))
                client.socket.recv(1)
        peer = Peer(service.zeromq_port)
        self.addCleanup(peer.close)
        self.assertTrue(peer.open(id="a-name", pipeline="no-such-pipeline").refusal)
        peer.send(b"no message")
        service.recount()
        self.assertEqual(self.series(service), before)

    def series(self, service):
        """The names and labels of all series."""
        return {line.rpartition(" ")[0] for line in service.get("/metrics")[1].splitlines() if not line.startswith("#")}


if __name__ == "__main__":
    unittest.main()
