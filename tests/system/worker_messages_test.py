# SPDX-License-Identifier: Apache-2.0
"""Messages of workers to clients, from a worker and to a client that are not ours."""
import json
import tempfile
import unittest

import worker_wire as wire
from faults import text
from harness import MILLRACE, Process
from raw_worker import RawWorker
from worker_faults import WorkerFaultTest, packet

ROOM, USE = 64 << 10, 64  # bytes of a stream, and of a message besides its data


class Messages(WorkerFaultTest):
    def in_batch(self, service):
        """A worker that has the only row of a client."""
        worker, client = self.worker(service), self.client(service)
        client.send(packet(0))
        batch = worker.batch()
        return worker, client, batch, batch.framed[0].stream

    def test_the_room_of_a_stream_comes_back_when_its_messages_were_written(self):
        worker, client, batch, stream = self.in_batch(self.service())
        for _ in range(20):  # 1280 KiB, in a room of 64
            for _ in range(4):
                worker.send(wire.send(stream, b'"' + b"m" * ((ROOM >> 2) - USE - 2) + b'"'))
            for _ in range(4):
                self.assertEqual(client.message()["type"], "message")
            granted = 0
            while granted < ROOM:
                of, bytes_now = worker.next(wire.ROOM)
                self.assertEqual(of, stream)
                granted += bytes_now
            self.assertEqual(granted, ROOM)
        worker.answer(batch)
        self.assertEqual(client.message()["type"], "result")

    def test_a_message_beyond_the_room_costs_its_worker_and_no_other_stream(self):
        service = self.service()
        with self.moved(service, {("worker_failures", "protocol"): 1}), self.beside(service) as (good, _):
            worker, client, _, stream = self.in_batch(service)
            client.socket.shutdown(0)  # it reads no more
            full = wire.send(stream, bytes(40_000), wire.BYTES)
            for _ in range(300):  # more than sockets take
                worker.send(full)
            self.assertEqual(worker.ended(), "protocol")
            good.row()

    def test_a_message_to_a_stream_that_is_not_there_is_counted_and_ignored(self):
        service = self.service()
        worker, client, batch, stream = self.in_batch(service)
        worker.send(wire.send(stream + 1000, b"1"))
        self.await_metric(service, 1, "millrace_messages_total", status="late")
        worker.send(wire.send(stream, b"1"))
        worker.answer(batch)
        self.assertEqual([client.message()["type"] for _ in range(2)], ["message", "result"])

    def test_messages_are_recorded_and_printed_by_a_replay(self):
        with tempfile.TemporaryDirectory() as folder:
            service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nrecord = { answers = true }\n',
                                   f'[recording]\ndirectory = "{folder}"\n')
            worker, client, batch, stream = self.in_batch(service)
            for kind, data in (wire.JSON, b'{"token": 1}'), (wire.TEXT, b"two"), (wire.BYTES, b"\0\xff"):
                worker.send(wire.send(stream, data, kind))
            worker.answer(batch)
            client.send(text(type="end"))
            worker.answer(worker.batch())
            client.rest()
            service.stop()
            shown = Process(MILLRACE, "recordings", "show", folder, "--number", "1")
            self.assertEqual(shown.wait(), 0)
            messages = [line for line in map(json.loads, shown.lines) if "message" in line]
            self.assertEqual(messages, [{"message": "json", "seq": 0, "number": 0, "data": {"token": 1}},
                                        {"message": "text", "seq": 0, "number": 1, "data": "two"},
                                        {"message": "bytes", "seq": 0, "number": 2, "data": "AP8="}])
            self.replayed(folder, messages)

    def replayed(self, folder, messages):
        replay = Process(MILLRACE, "replay", folder, "--workers", f"unix:{folder}/replay.sock")
        replay.await_ready(lambda: "waiting for a worker" in "\n".join(replay.errors), "the replay to wait")
        with RawWorker(f"unix:{folder}/replay.sock").attached() as worker:
            batch = worker.batch()
            for message in messages[:2]:
                worker.send(wire.send(batch.framed[0].stream, json.dumps(message["data"]).encode()))
            while batch:
                worker.answer(batch)
                batch = worker.batch()
            self.assertEqual(replay.wait(), 0)
        printed = [line for line in map(json.loads, replay.lines) if line["type"] == "message"]
        self.assertEqual([(line["number"], line["seq"], line["data"]) for line in printed],
                         [(0, 0, {"token": 1}), (1, 0, "two")])


class RemoteMessages(Messages):
    remote = True


if __name__ == "__main__":
    unittest.main()
