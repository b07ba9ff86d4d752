# SPDX-License-Identifier: Apache-2.0
"""Clients that send ramps, and compare each answer with the one that the ramp predicts.

  clients.py URL FIRST_KEY PIPELINE STREAMS SECONDS LENGTH PACE

The arguments are those of Clients and of its load(). Prints its outcome() as JSON.
"""
import asyncio
import collections
import itertools
import json
import sys
import time

import millrace
import ramp

PACKET = ramp.RATE // 10  # frames
_PAUSE = 0.1  # seconds before a lost stream is opened again


class Clients:
    """The streams of a process. `errors` has what was wrong."""

    def __init__(self, url, first_key, resets=False):
        """`first_key`: of the first stream; the others have the next ones. `resets`: the service or workers may be lost. A lost
        stream is opened again, and states may be reset."""
        self.url, self.resets = url, resets
        self.keys = itertools.count(first_key)
        self.rows = self.streams = self.lost = 0
        self.errors = collections.Counter()

    async def load(self, pipeline, streams, seconds, length, pace):
        """Keeps this many streams open, each of `length` seconds; at the end, those that are open end as usual.
        `pace`: speed of the frames, 1 is real time; 0: as fast as the service takes them."""
        until = time.monotonic() + seconds
        async with millrace.connect(self.url) as client:
            await asyncio.gather(*(self._streams(client, pipeline, until, int(length * ramp.RATE), pace, number / streams)
                                   for number in range(streams)))

    def outcome(self):
        return {"rows": self.rows, "streams": self.streams, "errors": self.errors}

    async def _streams(self, client, pipeline, until, frames, pace, phase):
        if pace:
            await asyncio.sleep(phase * PACKET / ramp.RATE / pace)
        while True:
            try:
                await self._stream(client, pipeline, next(self.keys), frames, pace)
                self.streams += 1
            except millrace.ClientError as error:
                if not self.resets:
                    self.errors[f"a stream was lost: {error}"] += 1
                    return
                self.lost += 1
                await asyncio.sleep(_PAUSE)
                continue
            if time.monotonic() >= until:
                return

    async def _stream(self, client, pipeline, key, frames, pace):
        async with client.open(pipeline, id=ramp.name_of(key), rate=ramp.RATE) as stream:
            sending = asyncio.create_task(self._send(stream, key, frames, pace))
            try:
                end, seq = 0, 0
                async for result in stream:
                    self._check(result, key, end, seq, frames)
                    end, seq = result.end, seq + 1
                if end != frames:
                    self.errors["a stream ended early"] += 1
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    @staticmethod
    async def _send(stream, key, frames, pace):
        start = time.monotonic()
        for begin in range(0, frames, PACKET):
            if pace:
                await asyncio.sleep(start + begin / ramp.RATE / pace - time.monotonic())
            await stream.send(ramp.frames(key, begin, min(PACKET, frames - begin)))
        await stream.end()

    def _check(self, result, key, end, seq, frames):
        self.rows += 1
        if result.error:
            self.errors[f"a row has the error {result.error}"] += 1
            return
        if (result.begin, result.seq) != (end, seq):
            self.errors["rows are missing or repeated"] += 1
        values, since_reset = result.data
        if values != ramp.total(key, max(result.begin - ramp.LEFT, 0), min(result.end + ramp.RIGHT, frames)):
            self.errors["an answer is not that to its row"] += 1
        if since_reset is not None and (since_reset > seq + 1 or since_reset < 1 or
                                        not self.resets and since_reset != seq + 1):
            self.errors["a state is not that of its stream"] += 1


def main():
    url, first_key, pipeline, *numbers = sys.argv[1:]
    streams, seconds, length, pace = map(float, numbers)
    clients = Clients(url, int(first_key))
    asyncio.run(clients.load(pipeline, int(streams), seconds, length, pace))
    print(json.dumps(clients.outcome()))


if __name__ == "__main__":
    main()
