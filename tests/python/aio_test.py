# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio with a running service, over both transports."""
import asyncio
import itertools
import signal
import unittest

from clients import PIPELINE, TRANSPORTS, ClientTest, comparable
from harness import run, samples
from raw_worker import Honest, RawWorker

import millrace
from millrace import Closed


class Asynchronous(ClientTest):
    async def talk(self, stream):
        async def send():
            for packet in range(5):
                await stream.send(samples(packet * 1600, 1600))
            await stream.flush(7)
            await stream.gap(500)
            await stream.reset()
            await stream.send(samples(8500, 800))
            await stream.end()

        sending = asyncio.create_task(send())
        results = comparable([result async for result in stream])
        await sending
        return results, stream.totals

    def test_results_are_iterated_over_while_frames_are_sent(self):
        async def over(url):
            async with millrace.connect(url).open(rate=16000) as stream:
                return await self.talk(stream)

        first = run(over(self.url("websocket")))
        self.assertEqual(first[1], Closed(8800, 6))
        self.assertEqual(run(over(self.url("zeromq"))), first)

    def test_a_stream_is_opened_by_await_too(self):
        async def over(url):
            client = millrace.connect(url)
            stream = await client.open(rate=16000)
            first = await self.talk(stream)
            async with await client.open(rate=16000) as stream:
                self.assertEqual(await self.talk(stream), first)
            with self.assertRaises(millrace.StreamRefused):
                await client.open("elsewhere")
            with self.assertRaisesRegex(RuntimeError, "await"):
                await client.open().send(b"")

        for url in self.urls():
            run(over(url))

    def test_many_streams_share_a_loop(self):
        served = self.service(PIPELINE.replace("slots = 2", "slots = 64"))
        self.tap(served, "default", "--data", "crc32c")

        async def one(client):
            async with client.open() as stream:
                return await self.talk(stream)

        async def many(url):
            client = millrace.connect(url)
            return await asyncio.gather(*(one(client) for _ in range(32)))

        for url in (f"ws://127.0.0.1:{served.port}", f"tcp://127.0.0.1:{served.zeromq_port}"):
            talks = run(many(url))
            self.assertEqual(talks, [talks[0]] * 32)

    def test_send_lets_other_tasks_run(self):
        async def over(url):
            async def count():
                while True:
                    turns.append(len(turns))
                    await asyncio.sleep(0)

            turns = []
            async with millrace.connect(url).open() as stream:
                counting = asyncio.create_task(count())
                for _ in range(10):
                    await stream.send(b"")
                counting.cancel()
            self.assertGreater(len(turns), 8)

        for url in self.urls():
            run(over(url))

    def test_a_cancelled_send_sends_nothing(self):
        async def over(url):
            async with millrace.connect(url).open() as stream:
                sending = asyncio.create_task(stream.send(samples(0, 1600)))
                await asyncio.sleep(0)
                sending.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await sending
                await stream.end()
                async for _ in stream:
                    pass
                self.assertEqual(stream.totals.frames, 0)

        for url in self.urls():
            run(over(url))

    def test_send_waits_for_room_and_can_be_cancelled(self):
        async def flood(stream):
            """The number of packets that were sent before a send had to wait."""
            for packets in itertools.count():
                try:
                    await asyncio.wait_for(stream.send(samples(0, 1600)), 1)
                except asyncio.TimeoutError:
                    return packets

        async def over(url):
            silent = RawWorker(self.served.workers).attached().beat()
            async with millrace.connect(url).open() as stream:
                packets = await flood(stream)
                worker = Honest(silent)
                sending = asyncio.create_task(stream.send(samples(0, 1600)))
                results = [await anext(aiter(stream)) for _ in range(packets)]
                await sending
                await stream.end()
                results += [result async for result in stream]
                self.assertEqual(stream.totals, Closed(1600 * (packets + 1), packets + 1))
            worker.close()
            return packets

        self.attached.stop()
        # 5 s in the buffer of the service, and 64 KiB in the client. With WebSocket also the buffers of sockets.
        self.assertLessEqual(run(over(self.url("zeromq"))), 50 + 21)
        self.assertLess(run(over(self.url("websocket"))), (16 << 20) // 3200)

    def test_a_refusal_and_a_lost_service_are_exceptions(self):
        async def over(url):
            with self.assertRaises(millrace.StreamRefused):
                async with millrace.connect(url).open("elsewhere"):
                    pass
            async with millrace.connect(url, millrace.ClientSettings(resume_window=0.5)).open() as stream:
                waiting = asyncio.create_task(stream.next())
                await asyncio.sleep(0)
                self.served.stop(signal.SIGKILL)
                with self.assertRaises(millrace.ConnectionLost):
                    await waiting

        for transport in TRANSPORTS:
            with self.subTest(transport):
                run(over(self.url(transport)))
                self.served = self.service(PIPELINE)

    def test_close_wakes_waiting_tasks(self):
        async def over(url):
            async with millrace.connect(url) as client, client.open() as first, client.open() as second:
                waits = [asyncio.create_task(stream.next()) for stream in (first, second)]
                await asyncio.sleep(0)
                first.close()
                with self.assertRaisesRegex(millrace.StreamFailed, "closed"):
                    await waits[0]
                client.close()
                with self.assertRaises(millrace.ConnectionLost):
                    await waits[1]

        for url in self.urls():
            run(over(url))
            self.await_none_open()


if __name__ == "__main__":
    unittest.main()
