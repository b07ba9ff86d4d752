# SPDX-License-Identifier: Apache-2.0
"""An independent client whose stream survives its connections (docs/resume.md), and a proxy that cuts them."""
import asyncio
import contextlib
import json
import urllib.parse

import websockets

from harness import UNHURRIED
from raw_client import RawClient, upgrade

LOST = (websockets.ConnectionClosed, websockets.InvalidMessage, OSError, EOFError, asyncio.TimeoutError)


class ResumingClient:
    """Keeps all that it sends, and numbers what it receives. A sent part is bytes of one-channel s16 frames, or a command."""

    def __init__(self, url, first=None, **parameters):
        """`first`: the address of the first connection, if it is another one."""
        self.url, self.first, self.parameters = url, first, {"rate": 16000, "resume": 1, **parameters}
        self.parts, self.messages, self.readies, self.token = [], [], [], None
        self.place, self.have, self.flushed, self.acknowledges = [0] * 5, 0, 0, True

    @property
    def n(self):
        return len(self.messages)

    def numbers(self, **changed):
        """The parameters with which the client continues."""
        if not self.readies:
            return dict(self.parameters)
        names = ["n", "seq", "from", "commands", "begin", "skip", "have", "flushed"]
        numbers = dict(zip(names, [self.n, *self.place, self.have, self.flushed]))
        if options := self.changed_options(self.place[2]):
            numbers["set"] = json.dumps(options)
        return {**self.parameters, "id": self.readies[-1]["stream"], **numbers, **changed}

    def changed_options(self, commands):
        """The options that the first `commands` commands have changed."""
        options = {}
        for part in [part for part in self.parts if not isinstance(part, bytes)][:commands]:
            options.update(part.get("options", {}))
        return options

    async def connect(self, token=None, **changed):
        """Opens or continues the stream, and reads `ready`."""
        token, first, self.first = token or self.token, self.first, None
        query = urllib.parse.urlencode({name: value for name, value in self.numbers(**changed).items() if value is not None})
        self.socket = await websockets.connect(
            (first or self.url) + "?" + query, subprotocols=["millrace.v1"] + (["resume." + token] if token else []), max_size=None,
            compression=None, **UNHURRIED)
        ready = json.loads(await self.socket.recv())
        if ready["type"] != "ready":
            raise AssertionError(ready)
        self.readies.append(ready)
        self.token = ready["resume"]
        return ready

    async def send(self, *parts):
        for part in parts:
            self.parts.append(part)
            await self.socket.send(part if isinstance(part, bytes) else json.dumps(part))

    async def send_again(self):
        """Sends what has not arrived, according to `ready`."""
        frames, commands = 2 * self.readies[-1]["frames"], self.readies[-1]["commands"]
        for part in list(self.parts):
            if isinstance(part, bytes):
                if rest := part[min(frames, len(part)):]:
                    await self.socket.send(rest)
                frames -= min(frames, len(part))
            elif commands > 0:
                commands -= 1
                frames -= 2 * part.get("frames", 0)
            else:
                await self.socket.send(json.dumps(part))

    async def receive(self):
        message = json.loads(await self.socket.recv())
        if "n" in message:
            if message["n"] != self.n:
                raise AssertionError(f"{message} is not number {self.n}")
            self.messages.append(message)
        if message["type"] == "result":
            self.place, self.have = message["ack"], message["seq"] + 1
        elif message["type"] == "flushed":
            self.flushed = message["seq"] + 1
        elif message["type"] == "ack":
            self.place = [message[name] for name in ("seq", "frames", "commands", "begin", "skip")]
        return message

    async def receive_until(self, kind, count=1):
        """Messages until `count` of this kind have come."""
        got = []
        while sum(message["type"] == kind for message in got) < count:
            got.append(await self.receive())
        return got

    async def acknowledge(self):
        with contextlib.suppress(websockets.ConnectionClosed):  # its last messages may still be unread
            await self.socket.send(json.dumps({"type": "ack", "n": self.n}))

    def cut(self):
        self.socket.transport.abort()

    async def finish(self, parts=(), pause=0.01):
        """Sends parts and receives until `closed`, over as many connections as it needs."""
        self.parts += parts
        while not self.messages or self.messages[-1]["type"] != "closed":
            try:
                await self.connect()
                await self.send_again()
                while (await self.receive())["type"] != "closed":
                    if self.messages and self.messages[-1]["type"] == "flushed":
                        await self.acknowledge()
            except websockets.InvalidStatusCode as error:
                if error.status_code not in (409, 503) or self.readies and error.status_code == 409:
                    raise
                await asyncio.sleep(pause)  # its first connection is not noticed as lost yet
            except LOST:
                pass
        await self.socket.close()
        return self.messages


def refusal(client, token=None, **changed):
    """The status of the answer to a client that continues its stream, and the code and parameter of its error."""
    numbers = {name: value for name, value in client.numbers(**changed).items() if value is not None}
    target = "/v1/stream?" + urllib.parse.urlencode(numbers)
    protocols = ["millrace.v1", "resume." + (token or client.token)]
    with RawClient(urllib.parse.urlsplit(client.url).port, upgrade(target, Sec_WebSocket_Protocol=", ".join(protocols))) as raw:
        status, fields = raw.head()
        if status == 101:
            return status, None, None
        error = json.loads(raw.body(fields))["error"]
        return status, error["code"], error.get("parameter")


class CuttingProxy:
    """Forwards connections to a port, and cuts each after `limit` bytes of the direction `down` (from the service) or up. A
    hard cut resets both connections."""

    def __init__(self, port):
        self.port, self.down, self.limit, self.hard, self.counts = port, False, None, False, {}

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = "ws://127.0.0.1:%d/v1/stream" % self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def _serve(self, reader, writer):
        down, limit, hard = self.down, self.limit, self.hard
        self.counts = {True: 0, False: 0}
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        parts = [asyncio.ensure_future(self._forward(source, sink, direction, limit if direction == down else None))
                 for source, sink, direction in ((reader, back, False), (there, writer, True))]
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            part.cancel()
        for end in (writer, back):
            end.transport.abort() if hard else end.close()

    async def _forward(self, source, sink, direction, limit):
        while limit != 0:
            data = await source.read(limit or 1 << 16)
            if not data:
                return
            sink.write(data)
            self.counts[direction] += len(data)
            limit = limit and limit - len(data)
