# SPDX-License-Identifier: Apache-2.0
"""A line to a service that is cut again and again."""
import asyncio
import contextlib
import random
import threading


class CutLine:
    """Forwards connections to a port of this machine, and resets both ends of each after a random number of bytes, at most `most`. Bytes
    on their way are lost. `cuts` counts."""

    def __init__(self, port, most, seed=1):
        self.to, self.most, self.random, self.cuts = port, most, random.Random(seed), 0
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self):
        self._loop.run_forever()
        self._server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._server.wait_closed())
        self._loop.close()

    async def _serve(self, reader, writer):
        back, there = await asyncio.open_connection("127.0.0.1", self.to)
        left = [self.random.randint(1, self.most)]
        ways = [asyncio.ensure_future(self._forward(*way, left)) for way in ((reader, there), (back, writer))]
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        self.cuts += left[0] == 0
        for way in ways:
            way.cancel()
        for end in (writer, there):
            end.transport.abort() if left[0] == 0 else end.close()

    async def _forward(self, source, sink, left):
        with contextlib.suppress(OSError):
            while left[0] > 0 and (data := await source.read(left[0])):
                data = data[:left[0]]
                left[0] -= len(data)
                sink.write(data)
                await sink.drain()
