#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A typical streaming server in Python: websockets on uvloop, one queue, one task that takes batches
from it. It implements the part of millrace.v1 (docs/protocol.md) that `millrace bench` uses: s16le of
one channel in, a result for every 100 ms out.

  server.py PORT [--rows 64] [--max-wait-ms 2]
"""

import argparse
import asyncio
import json
import signal
import urllib.parse

import uvloop
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

VALUE_BYTES = 2
encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Batcher:
    """Rows of all streams wait in one queue; a batch closes when it is full or its first row has waited
    long enough."""

    def __init__(self, rows, max_wait):
        self._rows = rows
        self._max_wait = max_wait
        self._queue = asyncio.Queue(maxsize=16 * rows)

    async def answer(self, chunk):
        future = asyncio.get_running_loop().create_future()
        await self._queue.put((chunk, future))
        return await future

    async def run(self):
        while True:
            batch = [await self._queue.get()]
            if self._queue.qsize() < self._rows - 1:
                await asyncio.sleep(self._max_wait)
            while len(batch) < self._rows and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            for (_, future), answer in zip(batch, model([chunk for chunk, _ in batch])):
                if not future.done():  # its client may have gone
                    future.set_result(answer)


def model(batch):
    """Takes no time: only the server is measured."""
    return [len(chunk) for chunk in batch]


class Stream:
    """One connection: cuts the received frames into rows, and sends the model's answer to each."""

    def __init__(self, websocket, batcher):
        self._websocket = websocket
        self._batcher = batcher
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(websocket.request.path).query)
        self._name = query.get("id", [str(id(websocket))])[0]
        self._rate = int(query.get("rate", ["16000"])[0])
        self._chunk = self._rate // 10 * VALUE_BYTES
        self._seq = 0
        self._begin = 0  # begin of the next row, in frames

    async def run(self):
        await self._tell({"type": "ready", "stream": self._name, "pipeline": "default", "frames": 0})
        buffer = bytearray()
        async for message in self._websocket:
            if isinstance(message, str):
                if json.loads(message)["type"] == "end":
                    return await self._end(buffer)
                continue
            if not buffer and len(message) == self._chunk:
                await self._row(message)
                continue
            buffer += message
            while len(buffer) >= self._chunk:
                chunk = bytes(buffer[:self._chunk])
                del buffer[:self._chunk]
                await self._row(chunk)

    async def _end(self, rest):
        chunks = self._seq + (len(rest) > 0)
        await self._row(bytes(rest), ["LAST", "END"])
        await self._tell({"type": "closed", "frames": self._begin, "chunks": chunks})

    async def _row(self, chunk, flags=()):
        answer = await self._batcher.answer(chunk)
        begin, end = self._begin, self._begin + len(chunk) // VALUE_BYTES
        first = ["START", "RESET", "SEGMENT"] if self._seq == 0 else []
        await self._tell({"type": "result", "seq": self._seq, "begin": begin, "end": end,
                          "begin_s": begin / self._rate, "end_s": end / self._rate,
                          "flags": first + list(flags), "data": answer})
        self._seq += 1
        self._begin = end

    async def _tell(self, message):
        await self._websocket.send(encode(message))


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("port", type=int)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--max-wait-ms", type=float, default=2)
    args = parser.parse_args()

    batcher = Batcher(args.rows, args.max_wait_ms / 1000)

    async def stream(websocket):
        try:
            await Stream(websocket, batcher).run()
        except ConnectionClosed:
            pass

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    batches = asyncio.create_task(batcher.run())
    async with serve(stream, "127.0.0.1", args.port, subprotocols=["millrace.v1"], compression=None,
                     backlog=4096) as server:
        print(f"listening on ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await stop.wait()
    batches.cancel()


if __name__ == "__main__":
    uvloop.run(main())
