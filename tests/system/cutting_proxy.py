# SPDX-License-Identifier: Apache-2.0
"""TCP proxies on the loopback that cut connections."""
import asyncio
import contextlib
import json
import random
import socket
import struct
import threading

NEVER = None, None
LOST = OSError, EOFError, asyncio.CancelledError


def at_random(seed, least, most):
    """Random limits for each connection, the same in both directions."""
    draw = random.Random(seed)
    while True:
        yield (draw.randint(least, most),) * 2


class CuttingProxy:
    """Relays connections to a port. Each of the next connections is cut after the next of `limits`, the bytes that it relays
    (to the service, to the client); NEVER: not. When there are no limits any more, only cut() cuts connections. Its own thread
    runs it. `count`: the number of connections so far; `passed`: the bytes of the newest one in both directions."""

    def __init__(self, to, limits=()):
        self.to, self.limits, self.hard = to, iter(limits), False  # hard: cuts with a reset
        self.count, self.passed, self.relays = 0, [0, 0], set()
        started = threading.Event()
        self.thread = threading.Thread(target=asyncio.run, args=(self._run(started),), daemon=True)
        self.thread.start()
        started.wait()
        self.url = f"ws://127.0.0.1:{self.port}/v1/stream"

    def cut(self):
        """Cuts all connections. Returns when it has."""
        asyncio.run_coroutine_threadsafe(self._cut(), self.loop).result()

    def close(self):
        """Cuts all connections, and accepts no others. May be called again."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join()

    async def _run(self, started):
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            await self.over.wait()
        await self._cut()

    async def _cut(self):
        relays = list(self.relays)
        for relay in relays:
            relay.cancel()
        await asyncio.gather(*relays, return_exceptions=True)

    async def _accept(self, *client):
        self.count += 1
        self.relays.add(asyncio.current_task())
        ends = [client]
        with contextlib.suppress(*LOST):
            ends.append(await asyncio.open_connection("127.0.0.1", self.to))
            up, down = await self.begin(*ends)
            for _, writer in ends:
                writer.transport.set_write_buffer_limits(0)  # drain() returns when the kernel has everything
            (from_client, to_client), (from_service, to_service) = ends
            passed = self.passed = [0, 0]
            ways = self._pass(from_client, to_service, up, passed, 0), self._pass(from_service, to_client, down, passed, 1)
            await asyncio.wait([asyncio.create_task(way) for way in ways], return_when=asyncio.FIRST_COMPLETED)
        for _, writer in ends:
            if self.hard:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        with contextlib.suppress(*LOST):
            await asyncio.gather(*(writer.wait_closed() for _, writer in ends))
        self.relays.discard(asyncio.current_task())

    async def begin(self, client, service):
        """Returns the limits of a connection from a client, (reader, writer), to the service."""
        return next(self.limits, NEVER)

    @staticmethod
    async def _pass(source, sink, limit, passed, direction):
        with contextlib.suppress(*LOST):
            while limit != 0 and (data := await source.read(limit or 1 << 16)):
                passed[direction] += len(data)
                sink.write(data)
                await sink.drain()
                limit = limit and limit - len(data)


class WebSocketProxy(CuttingProxy):
    """Its limits are for connections of WebSocket, and count the bytes after the heads of HTTP. `heads`: their requests;
    `targets`: the first line of each. `refused`: a parameter that this service does not know."""

    def __init__(self, to, limits=(), refused=None):
        self.refused, self.heads, self.targets = refused, [], []
        super().__init__(to, limits)

    async def begin(self, client, service):
        head = await client[0].readuntil(b"\r\n\r\n")
        target, is_stream = head.split(b"\r\n")[0].decode(), b"upgrade: websocket" in head.lower()
        if is_stream:
            self.heads.append(head)
            self.targets.append(target)
        if self.refused and self.refused + "=" in target:
            body = json.dumps({"error": {"code": "schema", "parameter": self.refused, "message": "no such parameter"}})
            client[1].write(f"HTTP/1.1 400 Bad Request\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: {len(body)}\r\n"
                            f"Connection: close\r\n\r\n{body}".encode())
            return 0, 0
        service[1].write(head)
        client[1].write(await service[0].readuntil(b"\r\n\r\n"))
        return next(self.limits, NEVER) if is_stream else NEVER
