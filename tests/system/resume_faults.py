# SPDX-License-Identifier: Apache-2.0
"""The base class of tests of clients that continue a stream in a wrong way."""
import asyncio
import contextlib

from faults import PACKET, FaultTest
from harness import samples, wait_for
from resume_client import ResumingClient, refusal


class LimitsTest(FaultTest):
    async def opened(self, service, rows=1, **parameters):
        client = ResumingClient(service.url(), **parameters)
        await client.connect()
        await client.send(samples(0, rows * PACKET))
        await client.receive_until("result", rows)
        return client

    async def cut(self, service, *clients):
        """Cuts the connections, and waits until the service has noticed."""
        for client in clients:
            client.cut()
        names = {client.readies[-1]["stream"] for client in clients}

        def connected():
            return names & {stream["stream"] for stream in service.streams() if stream["connected"]}

        await asyncio.to_thread(wait_for, lambda: not connected(), "the streams to wait")

    async def finished(self, client):
        """The client continues, and its stream is whole."""
        rows = client.have
        await client.send(samples(rows * PACKET, PACKET), {"type": "end"})
        await client.receive_until("closed")
        await client.socket.wait_closed()
        results = [m for m in client.messages if m["type"] == "result"]
        self.assertEqual([m["seq"] for m in results], list(range(rows + 2)))
        self.assertEqual([m["begin"] for m in results], [seq * PACKET for seq in range(rows + 2)])

    @contextlib.asynccontextmanager
    async def refusing(self, service, expected, **parameters):
        """A waiting stream whose client shows bad input in the block, and continues afterwards; beside it, a good stream."""
        with self.moved(service, expected), self.unharmed(service) as good:
            client = await self.opened(service, **parameters)
            await self.cut(service, client)
            client.good = good
            yield client
            self.assertEqual((await client.connect())["resumed"], True)
            await self.finished(client)

    def refused(self, expected, client, answer, token=None, reason="resume", **changed):
        """The client receives this answer, which is counted once."""
        with self.subTest(token=token, **{name.replace("id", "name"): value for name, value in changed.items()}):
            self.assertEqual(refusal(client, token, **changed), answer)
        expected["connections_rejected", reason] += 1
        client.good.row()
