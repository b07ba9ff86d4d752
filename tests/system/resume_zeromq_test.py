# SPDX-License-Identifier: Apache-2.0
"""Streams over ZeroMQ that survive their connection (docs/resume.md), with a client written from the documents alone."""
import json
import os
import random
import signal
import tempfile
import unittest

import client_wire as wire
from faults import PACKET, FaultTest, text
from harness import samples
from raw_client import BINARY, RawClient, frame, upgrade
from resume_client import resuming
from zeromq_client import Peer


class Client:
    """A stream that is continued over any number of connections. Checks that each message comes once."""

    def __init__(self, service, **parameters):
        self.service, self.parameters = service, dict(parameters, resume=True)
        self.n, self.place, self.results, self.peer = 0, None, [], None
        self.connect()
        self.parameters["id"] = self.stream.name

    def connect(self, **shown):
        self.close()
        self.peer = Peer(self.service.zeromq_port)
        self.stream = self.peer.open(**self.parameters, **shown)
        self.ready = self.stream.received[-1]
        return self

    def close(self):
        if self.peer:
            self.peer.close()

    def again(self):
        """Loses the connection, and continues the stream over another one."""
        return self.connect(resume_token=self.ready["resume"], n=self.n, place=self.place, have=len(self.results),
                            flushed=0)

    def send(self, rows):
        position = self.stream.position
        self.stream.send(samples(position, rows * PACKET - position % PACKET))
        return self

    def next(self):
        message = self.stream.next()
        if "n" in message:
            assert message["n"] == self.n, (message, self.n)
            self.n += 1
        if message["type"] == "result":
            assert message["seq"] == len(self.results), (message, len(self.results))
            self.results.append((message["begin"], message["end"]))
        self.place = message.get("place", self.place)
        return message

    def acknowledge(self):
        self.peer.send(wire.received(self.stream.number, self.n))

    def end(self):
        """The message Closed, after the end of the stream."""
        self.stream.command(wire.end)
        while not self.stream.over:
            self.next()
        self.acknowledge()
        return self.stream.received[-1]


class ResumeOverZeroMQ(FaultTest):
    def client(self, service, **parameters):
        client = Client(service, **parameters)
        self.addCleanup(client.close)
        return client

    def check_results(self, client, rows):
        """Each row has one result, the frames of which follow those of the row before."""
        self.assertEqual(client.results[:rows], [(at * PACKET, (at + 1) * PACKET) for at in range(rows)])

    def test_a_client_that_loses_its_connection_receives_each_result_once(self):
        service = self.served()
        client, chance = self.client(service).send(1), random.Random(7)
        while not client.results:  # a stream that has received nothing ends with its connection
            client.next()
        rows = 0
        for _ in range(20):
            client.send(chance.randrange(1, 5))
            for _ in range(chance.randrange(4)):
                client.next()
            if chance.random() < 0.5:
                client.acknowledge()
            client.again()
            self.assertTrue(client.ready["resumed"])
            rows = client.stream.position // PACKET
        closed = client.send(1).end()
        self.assertEqual((closed["type"], closed["frames"], closed["chunks"]), ("closed", (rows + 1) * PACKET, rows + 1))
        self.check_results(client, rows + 1)
        service.recount()
        self.assertEqual(service.metric("millrace_streams_resumed_total", pipeline="default", state="kept"), 20)

    def test_a_stream_is_opened_anew_by_a_service_that_was_restarted(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-")
        self.addCleanup(folder.cleanup)
        key = os.path.join(folder.name, "key")
        with open(key, "w") as file:
            file.write("ab" * 32 + "\n")
        os.chmod(key, 0o600)
        service = self.served(extra=f'[access]\nresume_key = "{key}"\n')
        client = self.client(service, id="mic").send(3)
        while len(client.results) < 3:
            client.next()
        service.stop(signal.SIGKILL)
        service.again()
        self.tap(service)
        client.again()
        self.assertIs(client.ready["resumed"], False)
        seq, frames = client.place[:2]
        self.assertEqual((client.ready["frames"], client.stream.position), (frames, frames))
        self.assertLessEqual(seq, 3)
        closed = client.send(5 - frames // PACKET).end()
        self.assertEqual(closed["type"], "closed")
        self.check_results(client, 5)

    def test_a_client_may_continue_a_stream_of_zeromq_over_websocket(self):
        service = self.served()
        client = self.client(service).send(2)
        while len(client.results) < 2:
            client.next()
        target = f"/v1/stream?resume=1&id={client.stream.name}&n={client.n}&have=2"
        other = RawClient(service.port, resuming(target, client.ready["resume"]))
        self.addCleanup(other.socket.close)
        ready = other.opened().messages[-1]
        self.assertEqual((ready["resumed"], ready["frames"]), (True, 2 * PACKET))
        self.assertEqual(client.next()["code"], "conflict")
        other.send(frame(BINARY, samples(2 * PACKET, PACKET)))
        result = other.message()
        self.assertEqual((result["type"], result["seq"], result["n"]), ("result", 2, client.n))
        other.send(text(type="end"))
        self.assertEqual(other.rest()[-1]["frames"], 3 * PACKET)

    def test_a_stream_of_websocket_is_continued_over_zeromq_only_if_its_thread_is_the_same(self):
        service = self.served()
        answers = []
        for at in range(12):
            other = RawClient(service.port, upgrade(f"/v1/stream?resume=1&id=w{at}"))
            self.addCleanup(other.socket.close)
            token = other.opened().messages[-1]["resume"]
            with Peer(service.zeromq_port) as peer:
                stream = peer.open(id=f"w{at}", resume=True, resume_token=token)
                refused = stream.refusal
                answers.append((refused["code"], refused["parameter"]) if refused else stream.received[0]["resumed"])
        self.assertIn(("conflict", "resume"), answers)
        self.assertLessEqual(set(answers), {("conflict", "resume"), True})

    def test_an_acknowledgement_of_messages_that_do_not_exist_ends_that_stream_only(self):
        service = self.served()
        client = self.client(service).send(1)
        other = client.peer.open(resume=True)
        client.peer.send(wire.received(other.number, 5))
        self.assertEqual((other.next()["code"], other.over), ("schema", True))
        self.assertEqual(client.next()["type"], "result")
        self.assertEqual(client.end()["type"], "closed")


if __name__ == "__main__":
    unittest.main()
