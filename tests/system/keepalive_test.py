# SPDX-License-Identifier: Apache-2.0
"""Clients of a worker that is slow for a while. They use the `websockets` library, which closes a connection when a ping
is not answered in time. The times of the library and of the service are a fifth of their defaults, and the rate is five
times that of speech: so the bytes, and their effect on buffers and kernels, are those of the defaults. With the
environment variable KEEPALIVE_TIMES=1, the times are the defaults, and the test takes a minute and a half:
    KEEPALIVE_TIMES=1 ctest --preset release -R system:keepalive
Ids like A36 are those of docs/internals/guarantees.md."""
import asyncio
import os
import threading
import unittest

import websockets

from harness import PATIENCE, SystemTest, read_all, run, samples
from raw_worker import RawWorker

TIMES = float(os.environ.get("KEEPALIVE_TIMES", "0.2"))  # as a part of the defaults
RATE, PACKET = int(16_000 / TIMES), 8_000  # a packet is half a second of speech
PING = 20 * TIMES  # seconds between pings, and until an answer is late
LIMITS = f'[limits]\nstream_buffer = "{5000 * TIMES:.0f}ms"\npause_buffer = "{120 * TIMES:.0f}s"\n'
PIPELINES = "".join(f'[[pipeline]]\nname = "{name}"\nrate = {RATE}\nchunk = {{ size = {PACKET} }}\n'
                    for name in ("slow", "compiling"))


class Paced:
    """A worker that takes `first` seconds for its first batch, and `each` seconds for each later one."""

    def __init__(self, url, pipeline, first, each):
        self.link = RawWorker(url, pipeline=pipeline).attached().beat()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._work, args=(first, each), daemon=True)
        self.thread.start()

    def _work(self, first, each):
        self.link.wait_forever()
        takes = first
        while (batch := self.link.batch()) is not None:
            self.stopped.wait(takes)
            self.link.answer(batch)
            takes = each

    def close(self):
        self.stopped.set()
        self.link.hang_up()
        self.thread.join()
        self.link.close()


class Keepalive(SystemTest):
    async def stream(self, service, pipeline, packets, pause):
        """The number of results and the close code of a client that waits `pause` seconds between packets."""
        async with websockets.connect(service.url(pipeline=pipeline), ping_interval=PING, ping_timeout=PING,
                                      open_timeout=PATIENCE, compression=None) as connection:
            async def send():
                for packet in range(packets):
                    await connection.send(samples(packet * PACKET, PACKET))
                    await asyncio.sleep(pause)
                await connection.send('{"type":"end"}')

            sending = asyncio.create_task(send())
            messages, code = await read_all(connection)
            await asyncio.gather(sending, return_exceptions=True)
            return sum(message["type"] == "result" for message in messages), code

    def test_no_client_closes_its_connection_for_a_late_pong_behind_a_slow_worker(self):  # A36
        service = self.service(PIPELINES, LIMITS)
        for pipeline, first, each in ("slow", 0, 0.25 * TIMES), ("compiling", 60 * TIMES, 0):
            self.addCleanup(Paced(service.workers, pipeline, first, each).close)

        async def clients():
            at_once = self.stream(service, "slow", 240, 0)  # to a worker of twice real time
            live = [self.stream(service, "compiling", 150, 0.5 * TIMES) for _ in range(3)]
            return await asyncio.gather(at_once, *live)

        self.assertEqual(run(clients()), [(241, 1000)] + 3 * [(151, 1000)])


if __name__ == "__main__":
    unittest.main()
