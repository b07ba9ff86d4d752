# SPDX-License-Identifier: Apache-2.0
"""Results that are larger than any buffer on their way, over both transports."""
import asyncio
import select
import socket
import threading
import unittest

import client_wire
import worker_wire as wire
from faults import text
from harness import SystemTest, read_all, run, samples
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import RawWorker
from zeromq_client import Peer

PACKET, ROWS = 1600, 20


class Bursts:
    """A worker that takes batches until no more come, and answers them all at once, each row with a long text."""

    def __init__(self, url, length):
        self.link = RawWorker(url, credits=ROWS + 4).attached().beat()
        self.answer = (wire.TEXT, b"x" * length)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        held = []
        while not self.stopped.is_set():
            if self.link.buffer or select.select([self.link.socket], [], [], 0.1)[0]:
                got = self.link.receive()
                if got is None:
                    return
                if got[0] == wire.BATCH:
                    held.append(got[1])
            else:
                for batch in held:
                    self.link.send(wire.done(batch.id, [self.answer] * len(batch.framed), [self.answer] * len(batch.marks)))
                held = []

    def close(self):
        self.stopped.set()
        self.thread.join()
        self.link.close()


class Results(SystemTest):
    def served(self, length):
        service = self.service()
        worker = Bursts(service.workers, length)
        self.addCleanup(worker.close)
        return service

    async def stream(self, service):
        async with service.connect() as connection:
            for row in range(ROWS):
                await connection.send(samples(row * PACKET, PACKET))
            await connection.send('{"type":"end"}')
            return await read_all(connection)

    def check(self, messages, rows=ROWS):
        results = [message["seq"] for message in messages if message["type"] == "result"]
        self.assertEqual(results, list(range(rows + 1)))  # and the marker row of the end
        self.assertEqual(messages[-1]["type"], "closed")
        self.assertEqual(messages[-1]["chunks"], rows)

    def test_no_result_is_lost_however_large_results_are(self):
        for length in 20_000, 1_000_000:
            service = self.served(length)
            with self.subTest("WebSocket", length=length):
                messages, code = run(self.stream(service))
                self.check(messages)
                self.assertEqual(code, 1000)
            with self.subTest("ZeroMQ", length=length), Peer(service.zeromq_port, rcvbuf=65536) as peer:
                stream = peer.open().send(samples(0, ROWS * PACKET)).command(client_wire.end)
                self.check(stream.rest())
            service.recount()
            for reason in "slow_reader", "stream_closed":
                self.assertEqual(service.metric("millrace_results_dropped_total", reason=reason), 0)

    def test_a_client_that_shuts_its_sending_side_after_its_end_gets_every_result(self):
        service = self.served(100_000)
        client = RawClient(service.port, upgrade()).opened()
        client.send(b"".join(frame(BINARY, samples(row * PACKET, PACKET)) for row in range(ROWS)) + text(type="end"))
        client.socket.shutdown(socket.SHUT_WR)
        self.check(client.rest())
        self.assertEqual(client.close_code, 1000)

    def test_sigterm_waits_for_results_that_are_larger_than_any_buffer(self):
        service = self.served(300_000)

        async def stream():
            async with service.connect() as connection:
                self.assertIn("ready", await connection.recv())
                for row in range(ROWS):
                    await connection.send(samples(row * PACKET, PACKET))
                self.assertIn("result", await connection.recv())  # some were handed over
                stopped = asyncio.create_task(asyncio.to_thread(service.stop))
                messages, code = await read_all(connection)
                return messages, code, await stopped

        messages, code, exit_code = run(stream())
        results = [message["seq"] for message in messages if message["type"] == "result"]
        self.assertEqual(messages[-1]["type"], "closed")
        self.assertEqual(results, list(range(1, messages[-1]["chunks"] + 1)))
        self.assertEqual((code, exit_code), (1012, 0))


if __name__ == "__main__":
    unittest.main()
