# SPDX-License-Identifier: Apache-2.0
"""How the service stops: the phases of a drain, which are `linger`, `notice` and the rest."""
import collections
import json
import unittest

import client_wire as wire
from faults import PACKET, GoodStream, text
from harness import samples, wait_for
from many_clients import ManyClientsTest
from raw_client import BINARY, RawClient, frame, upgrade
from zeromq_client import Peer

LONG = '[limits]\ndrain = "1h"\n'  # a test that waits for the end of a drain fails
STREAMS = 12  # some on each io thread


class Drain(ManyClientsTest):
    def terminate(self, service):
        service.process.terminate()
        wait_for(lambda: self.logged(service, "event=stopping"), "the drain")

    @staticmethod
    def rest(client):
        """All further messages. Then the client closes its connection, for which the service waits."""
        before = len(client.messages)
        client.rest()
        client.socket.close()
        return client.messages[before:]

    @staticmethod
    def logged(service, words):
        return [line for line in list(service.errors) if words in line]

    def stream(self, service):
        stream = GoodStream(service)
        self.addCleanup(stream.client.socket.close)
        return stream

    def test_while_the_service_lingers_it_accepts_streams_and_a_second_signal_cuts_them_off(self):
        service = self.served(extra=LONG + 'linger = "30min"\n')
        before = self.stream(service)
        self.terminate(service)
        status, page = service.get("/readyz")
        self.assertEqual((status, json.loads(page)["reasons"]), (503, ["the service is stopping"]))
        self.assertEqual(service.metric("millrace_draining"), 1)
        late = self.stream(service)
        for stream in before, late:
            stream.row()
        service.process.terminate()
        for stream in before, late:
            stream.client.rest()
            self.assertIsNone(stream.client.close_code)
        self.assertEqual(service.wait(), 1)

    def test_when_the_service_has_lingered_its_streams_end(self):
        service = self.served(extra=LONG + 'linger = "1s"\n')
        stream = self.stream(service)
        stream.row()
        self.terminate(service)
        goaway, _, closed = self.rest(stream.client)
        self.assertEqual((goaway["type"], closed["type"], stream.client.close_code), ("goaway", "closed", 1012))
        self.assertEqual(service.wait(), 0)

    def noticed(self, service):
        """Streams that continue after SIGTERM."""
        streams = [self.stream(service) for _ in range(STREAMS)]
        self.terminate(service)
        wait_for(lambda: self.logged(service, "phase=notice"), "the notice")
        return streams

    @staticmethod
    def retry_after(service):
        """The seconds in the answer to a late client; None if it was accepted."""
        with RawClient(service.port, upgrade()) as late:
            status, fields = late.head()
            return int(fields["retry-after"]) if status == 503 else None

    def test_after_a_notice_the_service_stops_when_its_clients_have_ended_all_streams(self):
        service = self.served(extra=LONG + 'notice = "30min"\n')
        with Peer(service.zeromq_port) as peer:
            over_zeromq = peer.open(id="mic")
            streams = self.noticed(service)
            self.assertIn(wait_for(lambda: self.retry_after(service), "the service to accept no more"), range(1, 6))
            self.assertEqual(wait_for(lambda: peer.open().refusal, "the same over ZeroMQ")["code"], "stopping")
            over_zeromq.command(wire.end)
            self.assertEqual(over_zeromq.rest()[-1]["type"], "closed")
            kinds = collections.Counter()
            for stream in streams:
                stream.client.send(frame(BINARY, samples(0, PACKET)) + text(type="end"))
                kinds.update(message["type"] for message in self.rest(stream.client))
                self.assertEqual(stream.client.close_code, 1000)
        self.assertEqual((kinds["result"], kinds["closed"]), (2 * STREAMS, STREAMS))
        self.assertIn(kinds["goaway"], range(1, STREAMS))  # those whose time of the notice has come
        self.assertEqual(service.wait(), 0)

    def test_streams_that_outlast_the_notice_are_ended_without_a_second_goaway(self):
        service = self.served(extra=LONG + 'notice = "1s"\n')
        times = []
        for stream in self.noticed(service):
            goaway, *others = self.rest(stream.client)
            times.append(goaway["retry_after_ms"])
            kinds = [message["type"] for message in others]
            self.assertNotIn("goaway", kinds)
            self.assertEqual((goaway["type"], kinds[-1], stream.client.close_code), ("goaway", "closed", 1012))
        self.assertGreater(len(set(times)), STREAMS / 2)
        self.assertLessEqual(max(times), 5000)
        self.assertEqual(service.wait(), 0)

    def test_without_streams_the_service_stops_as_soon_as_it_has_lingered(self):
        service = self.served(extra=LONG + 'linger = "100ms"\nnotice = "30min"\n')
        with Peer(service.zeromq_port):  # without a stream
            self.assertEqual(service.stop(), 0)

    def test_a_thousand_live_streams_end_with_an_answer_to_each_accepted_frame(self):
        service = self.service(f"[[pipeline]]\nslots = 1000\nchunk = {{ size = {PACKET} }}\n", LONG)
        self.tap(service)
        clients = self.opened(service, 1000)
        packet = frame(BINARY, samples(0, PACKET))
        for client in clients:
            client.send(packet)
        for client in clients:
            self.assertEqual(client.message()["type"], "result")
            client.send(packet)
        service.process.terminate()
        for client in clients:
            *later, closed = [message for message in self.rest(client) if message["type"] != "goaway"]
            results = [client.messages[1], *later]
            self.assertEqual([result["begin"] for result in results], [0, *(result["end"] for result in results[:-1])])
            self.assertEqual((closed["type"], closed["frames"], client.close_code), ("closed", results[-1]["end"], 1012))
            self.assertNotIn("error", json.dumps(results))
        self.assertEqual(service.wait(), 0)


if __name__ == "__main__":
    unittest.main()
