# SPDX-License-Identifier: Apache-2.0
"""The base class of tests of faulty ZeroMQ clients. The good stream beside them is over ZeroMQ, too."""
import client_wire as wire
from faults import PACKET, FaultTest
from harness import samples
from zeromq_client import Peer


class GoodPeer:
    """A stream over ZeroMQ that does everything right, row by row."""

    def __init__(self, service, **parameters):
        self.peer = Peer(service.zeromq_port)
        self.stream = self.peer.open(**parameters)
        self.rows = 0

    def row(self):
        self.stream.send(samples(self.rows * PACKET, PACKET))
        result = self.stream.next()
        assert (result["type"], result["seq"], result["begin"]) == ("result", self.rows, self.rows * PACKET), result
        self.rows += 1

    def end(self):
        self.stream.command(wire.end)
        last, closed = self.stream.rest()[-2:]
        assert last["type"] == "result" and "END" in last["flags"], last
        assert (closed["type"], closed["frames"], closed["chunks"]) == ("closed", self.rows * PACKET, self.rows), closed
        self.peer.close()


class PeerFaultTest(FaultTest):
    good_stream = GoodPeer

    def peer(self, service, **options):
        peer = Peer(service.zeromq_port, **options)
        self.addCleanup(peer.close)
        return peer

    def settled(self, peer):
        """Waits until the service has read everything that the peer has sent."""
        number = next(peer.numbers)
        peer.send(wire.end(number))
        self.assertEqual(peer.next(number)["code"], "unknown_stream")
