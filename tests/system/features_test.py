# SPDX-License-Identifier: Apache-2.0
"""Streams of real feature vectors (MFCC of spoken digits): the rows are those of the contract, and every value is the one
that was sent."""
import asyncio
import glob
import json
import math
import random
import struct
import unittest


import client_wire as wire
from conformance_test import contract, crc32c
from harness import SystemTest, read_all, run
from worker_wire import names
from zeromq_client import Peer

FILES = sorted(glob.glob("/usr/share/pocketsphinx/test/data/tidigits/*.mfc"))
DIM = 13
LETTERS = {"f32": "f", "f16": "e"}


def vectors(path):
    """The vectors of a Sphinx file, which has the number of values, then the values, all big-endian."""
    with open(path, "rb") as file:
        count, = struct.unpack(">i", file.read(4))
        values = struct.unpack(f">{count}f", file.read())
    return [values[i:i + DIM] for i in range(0, count, DIM)]


def as_read(frame, format):
    """A vector as the service reads it: its values in the precision of the format, denormal values as 0."""
    letter, least = {"f32le": ("f", 2.0 ** -126), "f16le": ("e", 2.0 ** -14)}[format]
    values = struct.unpack(f"<{DIM}{letter}", struct.pack(f"<{DIM}{letter}", *frame))
    return [value if abs(value) >= least else math.copysign(0, value) for value in values]


def packed(frames, element):
    return b"".join(struct.pack(f"<{DIM}{LETTERS[element]}", *frame) for frame in frames)


def expected(spec, events, sent, element, align="body", pad="zero"):
    """The contract's rows with the checksums of their values; sent[p] is the vector at position p."""
    spec = contract.Spec(**spec)
    width = contract.row_width(spec)
    for row in contract.stream_rows(spec, events):
        crc = None
        if row[3]:
            columns = contract.row_values(spec, row, lambda p: p + 1, width, align, pad)
            crc = crc32c(packed([sent[p - 1] if p else (0,) * DIM for p in columns], element))
        yield [*row[:5], names(row[5]), row[6], crc]


async def send(service, events, frames, query, shuffle):
    """Causes the events, with the bytes of frames split anywhere. Returns every message of the service."""
    async with service.connect(**query) as connection:
        at = 0
        for kind, n in events:
            if kind == "frames":
                data = packed(frames[at:at + n], query.get("format", "f32le")[:3])
                while data:
                    cut = shuffle.randrange(1, 3 * DIM * 4)
                    await connection.send(data[:cut])
                    data = data[cut:]
            elif kind == "gap":
                await connection.send(json.dumps({"type": "gap", "frames": n}))
            else:
                await connection.send(json.dumps({"type": kind}))
            at += n
        return (await read_all(connection))[0]


def send_over_zeromq(service, streams, query, shuffle):
    """As send(), for all streams at once over one socket, in whole vectors. Returns the messages by stream."""
    with Peer(service.zeromq_port) as peer:
        senders = {name: peer.open(id=name, **query) for name in streams}
        left = {name: list(events) for name, (events, _) in streams.items()}
        while left:
            name = shuffle.choice(sorted(left))
            sender, frames = senders[name], streams[name][1]
            kind, n = left[name].pop(0)
            if kind == "frames":
                part = shuffle.randint(1, min(n, 40))
                sender.send(packed(frames[sender.position:sender.position + part], query.get("format", "f32le")[:3]))
                if part < n:
                    left[name].insert(0, (kind, n - part))
            elif kind == "gap":
                sender.gap(n)
            else:
                sender.command({"flush": wire.flush, "reset": wire.reset, "end": wire.end}[kind])
            if not left[name]:
                del left[name]
        return {name: sender.rest() for name, sender in senders.items()}


def send_over_websocket(service, streams, query, shuffle):
    async def send_all():
        return await asyncio.gather(*(send(service, events, frames, {**query, "id": name}, shuffle)
                                      for name, (events, frames) in streams.items()))

    return dict(zip(streams, run(send_all())))


def schedule(frames, shuffle):
    """The events of a stream: its frames except those of a gap, with a flush and a reset."""
    a, b, c = sorted(shuffle.sample(range(1, len(frames)), 3))
    return [("frames", a), ("flush", 0), ("frames", b - a), ("gap", c - b), ("frames", len(frames) - c),
            ("reset", 0), ("end", 0)]


class Features(SystemTest):
    SPEC = {"size": 16, "left": 6, "right": 4}

    def pipeline(self, element, more=""):
        keys = ", ".join(f"{key} = {value}" for key, value in self.SPEC.items())
        return (f'[[pipeline]]\nname = "{element}"\ndim = {DIM}\nframes = "{element}"\n'
                f'chunk = {{ {keys}{more} }}\nbatch = {{ rows = 4 }}\n')

    def check(self, element, format, files=4, **rule):
        """Streams files at once in this format to a pipeline of this element, over each transport."""
        service = self.service(self.pipeline(element, "".join(f', {key} = "{value}"' for key, value in rule.items())))
        tap = self.tap(service, element, "--data", "crc32c")
        for send_over in (send_over_websocket, send_over_zeromq):
            with self.subTest(send_over.__name__):
                shuffle = random.Random(f"{element} {format}")
                streams = {f"{send_over.__name__}-{i}": (schedule(frames, shuffle), frames)
                           for i, frames in enumerate(map(vectors, FILES[:files]))}
                query = {"pipeline": element, "format": format, "dim": DIM}
                for messages in send_over(service, streams, query, shuffle).values():
                    self.assertEqual(messages[-1]["type"], "closed")
                for name, (events, frames) in streams.items():
                    sent = [as_read(frame, format) for frame in frames]
                    rows = [[row["seq"], row["begin"], row["left"], row["size"], row["right"], row["flags"], row["gap"],
                             row["crc32c"]] for row in self.rows(tap, name)]
                    self.assertEqual(rows, list(expected(self.SPEC, events, sent, element, **rule)))

    def test_every_vector_of_real_speech_comes_out_as_it_went_in(self):
        self.assertGreater(len(FILES), 8)
        self.check("f32", "f32le", files=len(FILES))

    def test_vectors_are_packed_and_repeated_by_the_rule(self):
        self.check("f32", "f32le", align="packed", pad="repeat")

    def test_floats_become_the_nearest_halves(self):
        self.check("f16", "f32le")


class FractionalRate(SystemTest):
    PIPELINE = f'[[pipeline]]\ndim = {DIM}\nrate = 12.5\nchunk = {{ size = "400ms", right = "80ms" }}\n'

    def test_positions_in_seconds_are_right_at_a_fractional_rate(self):
        service = self.service(self.PIPELINE)
        tap = self.tap(service)
        events = [("frames", 12), ("gap", 4), ("frames", 16), ("end", 0)]
        for send_over in (send_over_websocket, send_over_zeromq):
            with self.subTest(send_over.__name__):
                name = send_over.__name__
                messages = send_over(service, {name: (events, vectors(FILES[0])[:32])}, {"rate": 12.5}, random.Random(1))[name]
                results = [message for message in messages if message["type"] == "result"]
                self.assertEqual(
                    [(r["begin"], r["end"], r["begin_s"], r["end_s"]) for r in results if r["end"] > r["begin"]],
                    [(0, 5, 0, 0.4), (5, 10, 0.4, 0.8), (10, 12, 0.8, 0.96),
                     (16, 21, 1.28, 1.68), (21, 26, 1.68, 2.08), (26, 31, 2.08, 2.48), (31, 32, 2.48, 2.56)])
                self.assertEqual([row["right"] for row in self.rows(tap, name) if row["size"]], [1, 1, 0, 1, 1, 1, 0])
                self.assertEqual((messages[-1]["frames"], messages[-1]["chunks"]), (28, 7))


if __name__ == "__main__":
    unittest.main()
