# SPDX-License-Identifier: Apache-2.0
"""Floods of pings, connections, frames and refused clients. Ids like A25 are those of docs/internals/guarantees.md."""
import collections
import concurrent.futures
import itertools
import os
import threading
import unittest

from faults import PACKET, FaultTest, text
from harness import COUNTED, samples, wait_for
from raw_client import BINARY, PING, PONG, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker

MB = 1 << 20
PING_OF_125 = frame(PING, b"p" * 125)


class FloodTest(FaultTest):
    def client(self, service, target="/v1/stream"):
        client = RawClient(service.port, upgrade(target)).opened()
        self.addCleanup(client.socket.close)
        return client


class Control(FloodTest):
    def pongs(self, client, count):
        """Reads `count` pongs."""
        for _ in range(count):
            self.assertEqual(client.frame(), (PONG, b"p" * 125))

    def test_each_ping_of_a_flood_is_answered_and_a_flood_of_pongs_is_dropped(self):  # A25
        service = self.served()
        pings = 20_000 if service.sanitized() else 100_000
        with self.moved(service, {}), self.unharmed(service) as good:
            before = service.peak_memory()
            client = self.client(service)
            keepalive = frame(BINARY, b"")  # without a message for 30 s, the connection is closed
            flood = threading.Thread(target=client.send, args=((PING_OF_125 * (pings // 10) + keepalive) * 10,))
            flood.start()
            for _ in range(10):
                self.pongs(client, pings // 10)
                good.row()
            flood.join()
            client.send((frame(PONG, b"p" * 125) * (pings // 10) + keepalive) * 10 + text(type="end"))
            self.assertEqual(client.ended(), (None, 1000))
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, MB)

    def test_a_client_that_reads_no_pongs_is_not_read_either(self):  # A25
        service = self.served()
        with self.moved(service, {}), self.unharmed(service) as good:
            before = service.peak_memory()
            client = RawClient(service.port, upgrade(), receive_buffer=4096).opened()
            self.addCleanup(client.socket.close)
            sent = client.block(PING_OF_125 * 1000, most=1 << 30)  # TCP pushes back
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 4 * MB)
            good.row()
            rest = -sent % len(PING_OF_125)
            ending = PING_OF_125[len(PING_OF_125) - rest:] + text(type="end")
            flood = threading.Thread(target=client.send, args=(ending,))
            flood.start()
            self.pongs(client, (sent + rest) // len(PING_OF_125))
            self.assertEqual(client.ended(), (None, 1000))
            flood.join()


class Churn(FaultTest):
    def come_and_go(self, service, number):
        """A client that ends its stream, or disconnects: without a message, within a message, or with a reset."""
        with RawClient(service.port, upgrade()) as client:
            client.opened().send(frame(BINARY, samples(0, PACKET)))
            self.assertEqual(client.message()["seq"], 0)
            how = number % 4
            if how == 0:
                client.send(text(type="end"))
                self.assertEqual(client.ended(), (None, 1000))
            if how == 1:
                client.send(frame(BINARY, samples(PACKET, PACKET))[:-100])
            if how == 2:
                client.abort()

    def come_and_go_often(self, service, good, times):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for number, _ in enumerate(pool.map(lambda number: self.come_and_go(service, number), range(times))):
                if number % 100 == 0:
                    good.row()  # a silent stream would be closed after 30 s
        wait_for(lambda: service.metric("millrace_streams") == 1, "the others to be gone", COUNTED)

    def test_connections_that_come_and_go_leave_nothing_behind(self):  # A30
        service = self.served()
        descriptors = f"/proc/{service.process.pid}/fd"
        with self.moved(service, {}), self.unharmed(service) as good:
            self.come_and_go_often(service, good, 1500)  # until the memory that later connections reuse is allocated
            memory, before = service.memory(), len(os.listdir(descriptors))
            self.come_and_go_often(service, good, 3000)
            self.assertLessEqual(len(os.listdir(descriptors)), before + 4)  # connections that request metrics
            if not service.sanitized():
                self.assertLess(service.memory(), 1.05 * memory + MB)


class Frames(FloodTest):
    def test_clients_that_send_faster_than_the_worker_are_paused_and_delay_no_other_stream(self):  # B17
        streams, packets = 4, 300
        service = self.service(f"[[pipeline]]\nslots = 8\nchunk = {{ size = {PACKET} }}\nbatch = {{ rows = 8 }}\n")
        worker = RawWorker(service.workers).attached().beat()
        self.addCleanup(worker.close)
        with self.moved(service, {}), concurrent.futures.ThreadPoolExecutor(streams) as pool:
            fast = [self.client(service) for _ in range(streams)]
            sending = [pool.submit(client.send, frame(BINARY, samples(0, PACKET)) * packets + text(type="end"))
                       for client in fast]
            self.await_metric(service, streams, "millrace_ingest_paused_connections")
            live = self.client(service, "/v1/stream?id=live")
            names = {}
            for number in range(20):
                live.send(frame(BINARY, samples(number * PACKET, PACKET)))
                wait_for(lambda: self.position(service, "live") == (number + 1) * PACKET, "the packet to be read")
                for batches in itertools.count(1):
                    batch = worker.batch()
                    worker.answer(batch)
                    names.update({stream: name for stream, _, name, _ in batch.opened})
                    rows = [names[row.stream] for row in batch.framed]
                    self.assertEqual(len(rows), len(set(rows)))
                    if "live" in rows:
                        break
                self.assertLessEqual(batches, 3)  # two batches were at the worker, and the next one has the row
                self.assertEqual(live.message()["seq"], number)
            self.addCleanup(Honest(worker).close)
            live.send(text(type="end"))
            self.assertEqual(live.rest()[-1], {"type": "closed", "frames": 20 * PACKET, "chunks": 20})
            for client in fast:
                self.assertEqual(client.rest()[-1], {"type": "closed", "frames": packets * PACKET, "chunks": packets})
            for sent in sending:
                sent.result()

    def test_a_wide_stream_that_sends_without_pause_takes_turns_with_many_narrow_ones(self):  # C19
        service = self.service("[[pipeline]]\nrate = 8000\nslots = 100\nchunk = { size = 800 }\n"
                               '[[pipeline]]\nname = "wide"\nrate = 192000\nchannels = 8\nchunk = { size = 19200 }\n')
        self.tap(service)
        self.tap(service, "wide")
        second, over = bytes(192000 * 8 * 2), threading.Event()
        packets = b"".join(frame(BINARY, second[at:at + 61440]) for at in range(0, len(second), 61440))

        def send(client):
            for seconds in itertools.count(1):
                client.send(packets)
                if over.is_set():
                    client.send(text(type="end"))
                    return seconds

        with self.moved(service, {}), concurrent.futures.ThreadPoolExecutor(1) as pool:
            self.addCleanup(over.set)
            wide = self.client(service, "/v1/stream?pipeline=wide&id=wide")
            sending = pool.submit(send, wide)
            narrow = [self.client(service) for _ in range(100)]
            wait_for(lambda: self.position(service, "wide") > 0, "the wide one to be read")
            before = self.position(service, "wide")
            for number in range(200):
                if number >= 10 and self.position(service, "wide") > before:
                    break
                for client in narrow:
                    client.send(frame(BINARY, samples(number * 800, 800)))
                for client in narrow:
                    self.assertEqual(client.message()["seq"], number)
            else:
                self.fail("the wide one was not read")
            over.set()
            closed = wide.rest()[-1]
            seconds = sending.result()
            self.assertEqual(closed, {"type": "closed", "frames": seconds * 192000, "chunks": 10 * seconds})
            for client in narrow:
                client.send(text(type="end"))
                self.assertEqual(client.ended(), (None, 1000))


class Refusals(FaultTest):
    def test_with_twice_as_many_clients_as_slots_half_are_refused_and_the_others_lose_nothing(self):
        """Refused clients try again at once, all the time, and get a slot when one is free."""
        room, rows = 20, 15
        service = self.served(slots=room)
        refused = collections.Counter()

        def insist(number):
            while True:
                with RawClient(service.port, upgrade()) as client:
                    status, fields = client.head()
                    if status == 101:
                        client.send(text(type="end"))
                        self.assertEqual(client.ended(), (None, 1000))
                        return
                    self.assertEqual((status, fields["retry-after"] in map(str, range(1, 6))), (503, True))
                    refused[number] += 1

        expected = {}
        with self.moved(service, expected), concurrent.futures.ThreadPoolExecutor(room) as pool:
            admitted = [self.good_stream(service) for _ in range(room)]
            waiting = [pool.submit(insist, number) for number in range(room)]
            for _ in range(rows):
                for good in admitted:
                    good.row()
            wait_for(lambda: len(refused) == room, "every other client to be refused")
            for good in admitted:
                good.end()
            for client in waiting:
                client.result()
            expected["connections_rejected", "no_room"] = sum(refused.values())


if __name__ == "__main__":
    unittest.main()
