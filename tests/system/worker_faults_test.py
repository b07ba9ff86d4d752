# SPDX-License-Identifier: Apache-2.0
"""Workers that die, hang or leave, and the effect on their streams. Ids like F3 are those of docs/internals/guarantees.md."""
import concurrent.futures
import json
import threading
import unittest

import worker_wire as wire
from faults import PACKET, text
from harness import COUNTED, samples, wait_for
from raw_client import BINARY, closing, frame
from raw_worker import Honest, RawWorker
from worker_faults import WorkerFaultTest, packet

MANY = 3000  # packets, more than buffers of sockets hold


class Losses(WorkerFaultTest):
    def test_if_a_worker_dies_over_its_batches_its_streams_get_a_reset_and_others_lose_nothing(self):  # F2
        service = self.service()
        with self.moved(service, {("worker_failures", "disconnect"): 1}), self.beside(service):
            victim, client = self.worker(service), self.client(service)
            client.send(packet(0))
            victim.answer(victim.batch(), b"0")
            client.send(packet(1) + packet(2) + text(type="end"))
            for _ in range(2):
                victim.batch()
            victim.close()
            self.assertEqual(self.results(client), [(0, ["START", "RESET", "SEGMENT"], 0), (1, ["RESET"], 1),
                                                    (2, [], 1), (3, ["LAST", "END"], 1)])

    def test_the_time_for_an_answer_is_a_key_of_the_pipeline(self):
        service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nanswer_wait = "300ms"\nfirst_answer_wait = "200ms"\n')
        with self.moved(service, {("worker_failures", "timeout"): 2}):
            worker, client = self.worker(service), self.client(service)
            client.send(packet(0) + packet(1) + text(type="end"))
            worker.batch()
            self.assertEqual(worker.ended(), "timeout")
            slow = self.worker(service)
            slow.answer(slow.batch())
            slow.batch()
            self.assertEqual(slow.ended(), "timeout")
            for limit in 200, 300:
                wait_for(lambda: f"was not answered within {limit} ms" in "\n".join(service.errors), "the line of the log")


class Leaving(WorkerFaultTest):
    def test_a_worker_that_sends_bye_keeps_a_stream_to_the_end_of_its_segment(self):
        service = self.service()
        with self.moved(service, {}):
            first = self.worker(service)
            client = self.client(service)
            client.send(packet(0))
            first.answer(first.batch(), b'"first"')
            second = self.honest(service, b'"second"')
            first.send(wire.bye)
            wait_for(lambda: "it sent Bye" in "\n".join(service.errors), "the Bye to be read")
            client.send(packet(1) + text(type="flush", mark=5))
            last = False
            while not last:
                batch = first.batch()
                last = any(row.flags & wire.LAST for row in batch.framed + batch.marks)
                first.answer(batch, b'"first"')
            while client.message()["type"] != "flushed":
                pass
            client.send(packet(2) + text(type="end"))
            results = self.results(client)
            first.ended()
            self.assertTrue(first.received_bye)
        self.assertEqual(results, [(0, ["START", "RESET", "SEGMENT"], "first"), (1, [], "first"),
                                   (2, ["LAST"], "first"), (3, ["RESET", "SEGMENT"], "second"),
                                   (4, ["LAST", "END"], "second")])
        self.assertEqual([wire.REASONS[row.reason] for row in second.rows], ["worker_lost", None])

    def test_a_drain_hands_over_the_rows_of_clients_that_have_left(self):
        service = self.service()
        worker = self.worker(service)
        client = self.client(service)
        client.send(packet(0) + packet(1) + frame(BINARY, samples(2 * PACKET, 7)) +
                    closing(1000))
        client.rest()
        client.socket.close()
        service.process.terminate()
        wait_for(lambda: "stopping" in "\n".join(service.errors), "the drain")
        rows = []
        while (batch := worker.batch()) is not None:
            rows += batch.framed + batch.marks
            self.assertEqual(service.get("/readyz")[0], 503)  # it waits for its worker
            worker.answer(batch)
        self.assertEqual([(row.seq, row.size, row.flags & wire.END) for row in rows],
                         [(0, PACKET, 0), (1, PACKET, 0), (2, 7, wire.END)])
        self.assertEqual(service.wait(), 0)


class Waiting(WorkerFaultTest):
    def test_without_a_worker_streams_are_paused_and_end_after_worker_wait(self):  # F1
        service = self.service('[[pipeline]]\nworker_wait = "1s"\nchunk = { size = 1600 }\n',
                               '[limits]\nstream_buffer = "250ms"\npause_buffer = "0s"\n')
        status, why = service.get("/readyz")
        self.assertEqual(status, 503)
        self.assertIn("pipeline default has no worker", why)
        with self.moved(service, {("streams_closed", "no_worker"): 1, ("connections_closed", "policy"): 1}):
            client = self.client(service)
            client.send(b"".join(map(packet, range(16))))
            self.assertEqual(client.ended(), ("no_worker", 1013))
            wait_for(lambda: service.metric("millrace_ingest_paused_seconds_total") > 0, "the pause to be counted", COUNTED)

    def test_a_pipeline_that_is_not_required_leaves_the_service_ready(self):  # F1a
        service = self.service('[[pipeline]]\nname = "rare"\nrequired = false\n')
        self.assertEqual(service.get("/readyz")[0], 200)
        self.assertEqual(service.get("/readyz?pipeline=rare")[0], 503)
        self.assertEqual(json.loads(service.get("/status")[1])["degraded"], ["pipeline rare has no worker"])

    def test_a_slow_worker_pauses_the_senders_of_its_lane_and_no_others(self):  # F4
        service = self.service("[[pipeline]]\nslots = 4\nchunk = { size = 1600 }\n",
                               '[limits]\nstream_buffer = "250ms"\npause_buffer = "0s"\n')
        packets = b"".join(map(packet, range(MANY)))
        with self.moved(service, {}), self.beside(service) as (good, beside):
            other = self.client(service)  # takes another slot of the first worker, so that the next streams go to the slow one
            slow = RawWorker(service.workers).attached().beat()
            before = service.memory()
            clients = [self.client(service) for _ in range(2)]
            senders = [threading.Thread(target=client.send, args=(packets + text(type="end"),), daemon=True)
                       for client in clients]
            for sender in senders:
                sender.start()

            def speak():  # a silent stream would be closed after 30 s
                good.row()
                other.send(frame(BINARY, b""))

            def paused():
                speak()
                return service.metric("millrace_ingest_paused_connections") == len(clients)

            wait_for(paused, "the clients to be paused", COUNTED)
            for _ in range(10):
                good.row()
            self.assertEqual({row.stream for row in beside.rows}, {beside.rows[0].stream})
            most = 8 if service.sanitized() else 4  # MB of the 19 that are to be sent; a sanitizer keeps freed memory
            self.assertLess(service.memory() - before, most << 20)
            self.assertTrue(all(sender.is_alive() for sender in senders))
            honest = Honest(slow)
            self.addCleanup(honest.close)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                reading = [pool.submit(self.results, client) for client in clients]
                while concurrent.futures.wait(reading, timeout=5).not_done:
                    speak()
            for results in reading:
                self.assertEqual([seq for seq, _, _ in results.result()], list(range(MANY + 1)))


class Sharing(WorkerFaultTest):
    def test_an_answer_to_a_stream_that_is_gone_is_not_given_to_the_next_of_its_name(self):  # C11
        service = self.service()
        worker = self.worker(service)
        with self.moved(service, {}):
            gone = self.client(service, "?id=a")
            gone.send(packet(0))
            batch = worker.batch()
            gone.socket.close()
            wait_for(lambda: not any(stream["connected"] for stream in service.streams()), "the client to be gone")
            client = self.client(service, "?id=a")
            client.send(packet(0) + text(type="end"))
            worker.answer(batch, b'"of the one before"')
            honest = Honest(worker, b'"mine"')
            self.addCleanup(honest.close)
            self.assertEqual([data for _, _, data in self.results(client)], ["mine", "mine"])


if __name__ == "__main__":
    unittest.main()
