# SPDX-License-Identifier: Apache-2.0
"""What the faults of ZeroMQ clients have in common: the good stream beside them is one too."""
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
        self.stream.say(wire.end)
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
        """Everything that the peer has sent is taken in."""
        number = next(peer.numbers)
        peer.send(wire.end(number))
        self.assertEqual(peer.next(number)["code"], "unknown_stream")
