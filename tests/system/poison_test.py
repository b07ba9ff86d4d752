# SPDX-License-Identifier: Apache-2.0
"""A stream on which every worker dies, beside streams without a fault. After each death, a supervisor starts the next
worker. Ids like F32 are those of docs/internals/guarantees.md."""
import json
import threading
import unittest
import urllib.parse

import worker_wire as wire
from faults import text
from raw_worker import RawWorker
from worker_faults import WorkerFaultTest, packet

OPTIONS = json.dumps({"lang": "xx"})
PACKETS = 40  # packets of 100 ms
SENT = 8  # packets on the bad stream
START = 0.25  # seconds that a worker takes to start


class Supervised:
    """Workers, one after the other. Each dies when it begins a batch with a row of a stream that has
    the options above, and answers all other rows."""

    def __init__(self, url):
        self.url, self.deaths, self.stopped = url, 0, threading.Event()
        self.resets = {}  # rows with RESET(worker_lost), by name of the stream
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.is_set():
            with RawWorker(self.url).attached().beat() as worker:
                self._work(worker)
            self.stopped.wait(START)

    def _work(self, worker):
        poisonous, names = set(), {}
        worker.socket.settimeout(None)
        self.worker = worker
        while (batch := worker.batch()) is not None:
            rows = batch.framed + batch.marks
            poisonous |= {opened.stream for opened in batch.opened if opened.options == OPTIONS}
            names |= {opened.stream: opened.name for opened in batch.opened}
            if any(row.stream in poisonous for row in rows):
                self.deaths += 1
                return
            for row in batch.framed:
                if wire.REASONS[row.reason] == "worker_lost":
                    name = names[row.stream]
                    self.resets[name] = self.resets.get(name, 0) + 1
            worker.answer(batch)

    def close(self):
        self.stopped.set()
        self.worker.hang_up()
        self.thread.join()


class Poison(WorkerFaultTest):
    def play(self, send_poison):
        """Runs five innocent streams, packet by packet. `send_poison(service)` returns a function of the number of a packet."""
        service = self.service()
        supervised = Supervised(service.workers)
        self.addCleanup(supervised.close)
        clients = [self.client(service, f"?id=innocent{i}") for i in range(5)]
        send = send_poison(service)
        for number in range(PACKETS):
            send(number)
            for client in clients:
                client.send(packet(number))
            for client in clients:
                self.assertEqual(client.message()["seq"], number)
        for client in clients:
            client.send(text(type="end"))
        for i, client in enumerate(clients):
            results = self.results(client)
            self.assertEqual([(seq, data) for seq, _, data in results], [(seq, 1) for seq in range(PACKETS + 1)])
            self.assertLessEqual(supervised.resets.get(f"innocent{i}", 0), supervised.deaths)
        self.assertEqual(supervised.deaths, 4)  # two for each of the two rows that fail
        self.assertIn("two workers were lost while they held this row", "\n".join(service.errors))

    def test_a_stream_that_kills_workers_ends_and_other_streams_only_get_resets(self):  # F32
        def poison(service):
            self.poisonous = self.client(service, "?options=" + urllib.parse.quote(OPTIONS))

            def send(number):
                if number < SENT:
                    self.poisonous.send(packet(number))
            return send

        self.play(poison)
        self.assertEqual(self.poisonous.ended(), ("worker_failed", 1011))
        failed = [m["error"] for m in self.poisonous.messages if isinstance(m, dict) and m["type"] == "result"]
        self.assertEqual(failed, ["worker_failed"] * 2)


if __name__ == "__main__":
    unittest.main()
