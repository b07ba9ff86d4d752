# SPDX-License-Identifier: Apache-2.0
"""Workers that die, hang or leave, and the effect on their streams. Ids like F3 are those of docs/internals/guarantees.md."""
import json
import os
import re
import signal
import threading
import time
import unittest

import client_wire
import worker_wire as wire
from crew import SCRIPT
from faults import PACKET, text
from harness import COUNTED, PATIENCE, Process, samples, wait_for
from raw_client import BINARY, RawClient, closing, frame, upgrade
from raw_worker import Honest, RawWorker
from worker_faults import WorkerFaultTest, packet
from zeromq_client import Peer

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

    def test_a_row_over_which_two_workers_died_fails_and_its_stream_continues(self):
        service = self.service()
        client = self.client(service)
        client.send(packet(0) + packet(1) + text(type="end"))
        with self.moved(service, {("worker_failures", "disconnect"): 2, ("results", "error"): 1}):
            for _ in range(2):
                victim = self.worker(service, credits=1)
                self.assertEqual([row.seq for row in victim.batch().framed], [0])
                victim.close()
            honest = self.honest(service)
            self.assertEqual(self.results(client), [(0, ["START", "RESET", "SEGMENT"], "worker_failed"),
                                                    (1, ["RESET"], 1), (2, ["LAST", "END"], 1)])
        self.assertEqual([(row.seq, wire.REASONS[row.reason]) for row in honest.rows], [(1, "worker_lost"), (2, None)])

    def test_a_hung_worker_is_evicted_and_its_later_messages_are_ignored(self):  # F3
        service = self.service()
        log = os.path.join(service.folder.name, "stopped.log")
        with self.moved(service, {("worker_failures", "timeout"): 2}), self.beside(service) as (good, honest):
            silent = Process("/usr/bin/python3", SCRIPT, self.url(service), "default", "stopped", log, "2", "0")
            self.addCleanup(silent.kill)
            wait_for(lambda: silent.lines, "the worker to attach")
            of_silent = self.client(service)
            of_silent.send(packet(0))
            self.assertEqual(of_silent.message()["data"][0], "stopped")
            busy = self.worker(service)
            of_busy = self.client(service)
            of_busy.send(packet(0))
            busy.answer(busy.batch())  # only the first answer may take longer
            of_busy.message()
            silent.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            for client in of_silent, of_busy:
                client.send(packet(1) + text(type="end"))
            batch = busy.batch()
            for client in of_silent, of_busy:
                results = self.results(client)
                self.assertEqual([flags for _, flags, _ in results[1:]], [["RESET"], ["LAST", "END"]])
                self.assertEqual([data for _, _, data in results[1:]], [1, 1])
                good.row()
            self.assertGreater(time.monotonic() - began, 9)
            lost = r'"worker lost".*stopped.*no heartbeat for 6 s(.*\n)*.*"worker lost".*test.*not answered within 10 s'
            wait_for(lambda: re.search(lost, "\n".join(service.errors)), lost)
            busy.answer(batch, b'"late"')
            self.assertEqual(busy.ended(), "timeout")
            silent.process.send_signal(signal.SIGCONT)
            self.assertEqual(silent.process.wait(PATIENCE), 0)


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

    def test_after_bye_wait_a_stream_moves_at_any_row(self):
        service = self.service('[[pipeline]]\nbye_wait = "0s"\nchunk = { size = 1600 }\n')
        with self.moved(service, {}):
            first = self.worker(service)
            client = self.client(service)
            client.send(packet(0))
            batch = first.batch()
            second = self.honest(service, b'"second"')
            first.send(wire.bye)
            wait_for(lambda: "it sent Bye" in "\n".join(service.errors), "the Bye to be read")
            first.answer(batch, b'"first"')
            self.assertEqual(client.message()["data"], "first")  # otherwise the next row may be ready before the first is done
            client.send(packet(1) + text(type="end"))
            results = self.results(client)
            first.ended()
            self.assertTrue(first.received_bye)
        self.assertEqual(results, [(0, ["START", "RESET", "SEGMENT"], "first"), (1, ["RESET"], "second"),
                                   (2, ["LAST", "END"], "second")])
        self.assertEqual(wire.REASONS[second.rows[0].reason], "worker_lost")

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
        service = self.service('[[pipeline]]\nworker_wait = "3s"\nchunk = { size = 1600 }\n',
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

    def test_without_a_worker_the_places_of_clients_that_are_gone_are_free_at_once(self):  # R16
        service = self.service('[[pipeline]]\nworker_wait = "1h"\nchunk = { size = 1600 }\n', '[limits]\nconnections = 2\n')

        def accepted():
            client = RawClient(service.port, upgrade())
            self.addCleanup(client.socket.close)
            return client if client.head()[0] == 101 else None

        for ends, closes in ((False, True), (True, True), (True, False), (False, False)):
            clients = [wait_for(accepted, "a place to be free") for _ in range(2)]
            for client in clients:
                client.send(packet(0) + (text(type="end") if ends else b"") + (closing(1000) if closes else b""))
                client.socket.close()

    def test_a_worker_that_attaches_in_time_gets_all_waiting_rows(self):  # F1
        service = self.service('[[pipeline]]\nworker_wait = "1h"\nchunk = { size = 1600 }\n',
                               '[limits]\nstream_buffer = "250ms"\npause_buffer = "0s"\n')
        client = self.client(service)
        client.send(b"".join(map(packet, range(16))) + text(type="end"))
        self.await_metric(service, 1, "millrace_ingest_paused_connections")
        self.honest(service)
        self.assertEqual([seq for seq, _, _ in self.results(client)], list(range(17)))
        self.assertEqual(service.get("/readyz")[0], 200)

    def test_a_slow_worker_pauses_the_senders_of_its_lane_and_no_others(self):  # F4
        service = self.service("[[pipeline]]\nslots = 4\nchunk = { size = 1600 }\n",
                               '[limits]\nstream_buffer = "250ms"\npause_buffer = "0s"\n')
        packets = b"".join(map(packet, range(MANY)))
        with self.moved(service, {}), self.beside(service) as (good, beside):
            self.client(service)  # takes another slot of the first worker, so that the next streams go to the slow one
            slow = RawWorker(service.workers).attached().beat()
            before = service.memory()
            clients = [self.client(service) for _ in range(2)]
            senders = [threading.Thread(target=client.send, args=(packets + text(type="end"),), daemon=True)
                       for client in clients]
            for sender in senders:
                sender.start()

            def paused():
                good.row()  # a silent stream would be closed after 30 s
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
            for client in clients:
                self.assertEqual([seq for seq, _, _ in self.results(client)], list(range(MANY + 1)))


class Sharing(WorkerFaultTest):
    def test_pipelines_share_the_memory_for_slabs(self):
        service = self.service("".join(f'[[pipeline]]\nname = "{name}"\nchunk = {{ size = 1600 }}\n' for name in "ab"),
                               '[limits]\nslab_bytes = "1MiB"\n')
        first = self.worker(service, pipeline="a", credits=17)  # 18 slabs of 50 KiB
        with RawWorker(service.workers, pipeline="b") as second:
            self.assertEqual(second.ended(), "no_room")
        first.send(wire.bye)
        first.ended()
        client = self.client(service, "?pipeline=b")
        self.honest(service, pipeline="b")
        client.send(packet(0) + text(type="end"))
        self.assertEqual(len(self.results(client)), 2)

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

    def test_an_answer_to_a_stream_that_is_gone_is_not_given_to_the_next_of_its_number(self):  # C11
        service = self.service()
        worker = self.worker(service)
        peer = Peer(service.zeromq_port)
        self.addCleanup(peer.close)
        with self.moved(service, {("streams_closed", "error"): 1}):
            gone = peer.open(id="a").send(samples(0, PACKET))
            batch = worker.batch()
            self.assertEqual(gone.gap((1 << 53) - 1).next()["code"], "values")
            peer.numbers = iter([gone.number])
            stream = peer.open(id="b").send(samples(0, PACKET)).command(client_wire.end)
            worker.answer(batch, b'"of the one before"')
            honest = Honest(worker, b'"mine"')
            self.addCleanup(honest.close)
            results = [message for message in stream.rest() if message["type"] == "result"]
            self.assertEqual([result["data"] for result in results], ['"mine"', '"mine"'])
            # This answer, and that to the ABORT row. Neither is an orphan, because the stream waits for both.
            self.await_metric(service, 2, "millrace_results_dropped_total", reason="stream_closed")


if __name__ == "__main__":
    unittest.main()
