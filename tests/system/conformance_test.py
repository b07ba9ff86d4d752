# SPDX-License-Identifier: Apache-2.0
"""Every row that `millrace tap` prints for a stream over a real socket is the row of the contract, including its
values. By default for a part of the vectors; tests/cutting/conformance_test.cpp has them all."""
import array
import asyncio
import json
import os
import sys
import unittest

import client_wire as wire
from harness import ALL_INPUTS, SystemTest, read_all, run, sample, samples, wait_for
from worker_wire import names
from zeromq_client import Peer

CONFORMANCE = os.path.join(os.path.dirname(__file__), "..", "conformance")
sys.path.insert(0, CONFORMANCE)
import chunk_reference as contract  # noqa: E402

AT_ONCE = 24  # pipelines, each with a tap
MESSAGE = 16000  # frames, within the limit on messages


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return f"{crc ^ 0xFFFFFFFF:08x}"


def table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = list(table())


def cases():
    """(spec, align, pad, events) of the test vectors whose events a client can cause."""
    with open(os.path.join(CONFORMANCE, "chunks.json")) as file:
        vectors = json.load(file)
    for case in vectors["values"] + vectors["cases"]:
        if all(kind != "size" for kind, _ in case["events"]):
            yield case["spec"], case.get("align", "body"), case.get("pad", "zero"), case["events"]


def toml(pipeline, spec, align, pad):
    keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in
                     {**spec, "align": align, "pad": pad}.items())
    return f'[[pipeline]]\nname = "{pipeline}"\nslots = 4\nchunk = {{ {keys} }}\nbatch = {{ rows = 4 }}\n'


def expected(spec, align, pad, events):
    """The contract's rows as the tap prints them."""
    spec = contract.Spec(**spec)
    width = contract.row_width(spec)
    for row in contract.stream_rows(spec, events):
        seq, begin, left, size, right, flags, gap = row
        crc = None
        if size:
            values = contract.row_values(spec, row, sample, width, align, pad)
            crc = crc32c(array.array("h", values).tobytes())
        yield {"seq": seq, "begin": begin, "left": left, "size": size, "right": right,
               "flags": names(flags),
               "gap": gap, "crc32c": crc}


async def send(service, pipeline, events, stream, begun):
    """Causes the events as a client does."""
    async with service.connect(pipeline=pipeline, id=stream) as connection:
        position = 0
        for kind, n in events:
            if kind == "frames":
                for begin in range(0, n, MESSAGE):  # message borders change no row
                    await connection.send(samples(position + begin, min(MESSAGE, n - begin)))
            elif kind == "abort":
                # An aborted stream has no rows if no worker has had a row of it.
                while begun and json.loads(await connection.recv())["type"] != "result":
                    pass
                # Messages on their way may be lost when the connection breaks. After the pong, there are none.
                # A client that does not read its results gets no pong.
                read = asyncio.create_task(read_all(connection))
                await (await connection.ping())
                connection.transport.close()
                await read
                return
            elif kind == "gap":
                await connection.send(json.dumps({"type": "gap", "frames": n}))
            else:
                await connection.send(json.dumps({"type": kind}))
            position += n
            if kind == "end":
                return await read_all(connection)


def send_over_zeromq(service, pipeline, events, stream, begun):
    """As send(), with whole frames at their positions."""
    with Peer(service.zeromq_port) as peer:
        sender = peer.open(pipeline=pipeline, id=stream)
        for kind, n in events:
            if kind == "frames":
                sender.send(samples(sender.position, n))
            elif kind == "abort":
                while begun and sender.next()["type"] != "result":
                    pass
                peer.send(wire.end(0))  # its answer shows that all messages before it were read
                peer.next(0)
                return
            elif kind == "gap":
                sender.gap(n)
            else:
                sender.command({"flush": wire.flush, "reset": wire.reset, "end": wire.end}[kind])
        sender.rest()


TRANSPORTS = {"websocket": lambda *what, begun: run(send(*what, begun)), "zeromq": send_over_zeromq}


class Conformance(SystemTest):
    def check(self, group):
        service = self.service("".join(toml(f"p{i}", *case[:3]) for i, case in enumerate(group)))
        for i, case in enumerate(group):
            tap = self.tap(service, f"p{i}", "--data", "crc32c")
            want = list(expected(*case))
            if case[3][-1][0] == "abort" and len(want) == 1:
                want = []
            for transport, send_over in TRANSPORTS.items():
                with self.subTest(transport=transport, spec=case[0], align=case[1], pad=case[2], events=case[3]):
                    before = len(tap.lines)
                    send_over(service, f"p{i}", case[3], f"{transport}-{i}", begun=bool(want))
                    wait_for(lambda: len(tap.lines) >= before + len(want), "the rows")
                    wait_for(lambda: not service.streams(), "the end")
                    rows = [json.loads(line) for line in tap.lines[before:]]
                    self.assertEqual([{key: row[key] for key in wanted} for row, wanted in zip(rows, want)], want)
                    self.assertEqual(len(rows), len(want))
                    self.assertTrue(all(row["stream"] == f"{transport}-{i}" for row in rows))
            self.assertEqual(tap.stop(), 0)
            self.assertEqual(len(tap.lines), len(TRANSPORTS) * len(want))

    def test_every_row_over_a_real_socket_is_the_row_of_the_contract(self):
        everything = list(cases())
        step = len(everything) // AT_ONCE
        for first in range(step) if ALL_INPUTS else (0, step // 2):
            self.check(everything[first::step])


if __name__ == "__main__":
    unittest.main()
