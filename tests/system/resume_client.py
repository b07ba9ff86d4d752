# SPDX-License-Identifier: Apache-2.0
"""An independent client whose stream survives its connections (docs/resume.md)."""
import asyncio
import contextlib
import json
import urllib.parse

import websockets

from harness import UNHURRIED
from raw_client import RawClient, upgrade

LOST = (websockets.ConnectionClosed, websockets.InvalidMessage, OSError, EOFError, asyncio.TimeoutError)


def resuming(target, token):
    """The upgrade request that shows a token."""
    return upgrade(target, Sec_WebSocket_Protocol=f"millrace.v1, resume.{token}")


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

    @property
    def port(self):
        return urllib.parse.urlsplit(self.url).port

    def query(self, **changed):
        return urllib.parse.urlencode({name: value for name, value in self.numbers(**changed).items() if value is not None})

    def request(self, token=None, **changed):
        """The request of a RawClient that continues the stream."""
        return resuming("/v1/stream?" + self.query(**changed), token or self.token)

    async def connect(self, token=None, **changed):
        """Opens or continues the stream, and reads `ready`."""
        token, first, self.first = token or self.token, self.first, None
        self.socket = await websockets.connect(
            (first or self.url) + "?" + self.query(**changed), max_size=None, compression=None,
            subprotocols=["millrace.v1"] + (["resume." + token] if token else []), **UNHURRIED)
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

    async def finish(self, parts=()):
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
                await asyncio.sleep(0.01)  # its first connection is not noticed as lost yet
            except LOST:
                pass
        await self.socket.close()
        return self.messages


def refusal(client, token=None, **changed):
    """The status of the answer to a client that continues its stream, and the code and parameter of its error."""
    with RawClient(client.port, client.request(token, **changed)) as raw:
        status, fields = raw.head()
        if status == 101:
            return status, None, None
        error = json.loads(raw.body(fields))["error"]
        return status, error["code"], error.get("parameter")
