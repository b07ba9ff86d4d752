# SPDX-License-Identifier: Apache-2.0
"""Talks to a server of echoes with Debian's python3-websockets. Usage: independent_client.py PORT"""
import asyncio
import json
import sys

import websockets

URL = f"ws://127.0.0.1:{sys.argv[1]}/v1/stream"


async def plain():
    async with websockets.connect(URL + "?id=kitchen", compression="deflate") as client:
        assert json.loads(await client.recv())["stream"] == "kitchen"
        await (await client.ping())
        await client.send(bytes(3200))
        result = json.loads(await client.recv())
        assert (result["begin"], result["end"], result["data"]) == (0, 3200, 3200), result
        await client.send([b"abc", b"", b"de"])  # in fragments
        assert json.loads(await client.recv())["end"] == 3205
        await client.send('{"type":"end"}')
        assert json.loads(await client.recv()) == {"type": "closed", "frames": 3205, "chunks": 2}
        try:
            await client.recv()
        except websockets.ConnectionClosed as closed:
            assert closed.code == 1000, closed
        else:
            raise AssertionError("not closed")


async def subprotocol():
    async with websockets.connect(URL, subprotocols=["other", "millrace.v1"]) as client:
        assert client.subprotocol == "millrace.v1"


async def error():
    async with websockets.connect(URL) as client:
        await client.recv()
        await client.send("hello")
        assert json.loads(await client.recv())["code"] == "schema"
        try:
            await client.recv()
        except websockets.ConnectionClosed as closed:
            assert closed.code == 4400, closed
        else:
            raise AssertionError("not closed")


async def refused():
    try:
        await websockets.connect(URL + "?rate=fast")
    except websockets.InvalidStatusCode as refusal:
        assert refusal.status_code == 400, refusal
    else:
        raise AssertionError("not refused")


for case in (plain, subprotocol, error, refused):
    asyncio.run(asyncio.wait_for(case(), 30))
