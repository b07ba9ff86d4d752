# SPDX-License-Identifier: Apache-2.0
"""Frames and parameters that are not what they should be."""
import array
import collections
import json
import math
import struct
import unittest
import urllib.parse

from faults import FaultTest, RawClient, text, upgrade
from harness import samples
from raw_client import BINARY, frame

AUDIO = '[[pipeline]]\nslots = 100\nframes = "f32"\nchunk = { size = 100 }\n'

PARAMETERS = {
    "rate 0": ("rate=0", 415), "a rate below 0": ("rate=-16000", 415), "rate 7999": ("rate=7999", 415),
    "rate 192001": ("rate=192001", 415), "a rate in words": ("rate=fast", 400),
    "channels 0": ("channels=0", 415), "channels 3": ("channels=3", 415), "channels 255": ("channels=255", 415),
    "a dim for audio": ("dim=80", 415), "dim 0": ("dim=0", 415), "dim 65536": ("dim=65536", 415),
    "an unknown format": ("format=mp3", 415), "no pipeline": ("pipeline=none", 404),
    "an unknown parameter": ("colour=red", 400), "a repeated one": ("rate=16000&rate=16000", 400),
    "an empty id": ("id=", 400), "an id of 129": ("id=" + "a" * 129, 400), "an id of 1 MiB": ("id=" + "a" * (1 << 20), 431),
    "a NUL in an id": ("id=a%00b", 400), "no UTF-8 in an id": ("id=%ff", 400), "a newline in an id": ("id=a%0ab", 400),
    "a label in an id": ("id=%7B%7D%22", 400), "an id upwards": ("id=../x", 400),
    "options of no object": ("options=[]", 400), "options of no JSON": ("options=%7B", 400),
    "options over 4 KiB": ("options=" + urllib.parse.quote('{"a":"' + "b" * 4090 + '"}'), 400),
    "options that nest deep": ("options=" + urllib.parse.quote('{"a":' + "[" * 100 + "]" * 100 + "}"), 400),
    "half a percent": ("id=%4", 400),
}


class Parameters(FaultTest):
    def test_a_parameter_that_is_wrong_is_refused_by_name(self):
        service = self.service()
        self.tap(service)
        expected = collections.Counter()
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, (query, status) in PARAMETERS.items():
                with self.subTest(name), RawClient(service.port, upgrade("/v1/stream?" + query)) as client:
                    got, fields = client.head()
                    self.assertEqual(got, status)
                    if status != 431:
                        client.buffer += client.socket.recv(1000) if not client.buffer else b""
                        error = json.loads(client.buffer)["error"]
                        self.assertEqual(error.get("parameter"), query.split("=")[0])
                expected["connections_rejected", "handshake" if status == 431 else "parameter"] += 1
                good.row()


class Values(FaultTest):
    def test_a_message_with_a_value_that_is_no_number_is_a_gap(self):
        service = self.service(AUDIO)
        tap = self.tap(service)
        with self.moved(service, {("messages_rejected", "nonfinite"): 3}):
            with RawClient(service.port, upgrade("/v1/stream?format=f32le&id=a")) as client:
                client.opened()
                for bad in (math.nan, math.inf, -math.inf):
                    client.send(frame(BINARY, struct.pack("<100f", *[0.5] * 100)))
                    client.send(frame(BINARY, struct.pack("<100f", *[0.5] * 70, bad, *[0.5] * 29)))
                client.send(text(type="end"))
                messages = client.rest()
        self.assertEqual(messages[-1], {"type": "closed", "frames": 300, "chunks": 3})
        rejected = [message for message in messages if message["type"] == "rejected"]
        self.assertEqual([(m["code"], m["frames"]) for m in rejected], [("values", 100)] * 3)
        rows = [json.loads(line) for line in tap.lines]
        self.assertEqual([(row["begin"], row["gap"], row["size"]) for row in rows],
                         [(0, 0, 100), (100, 0, 0), (200, 100, 100), (300, 0, 0), (400, 100, 100), (500, 0, 0),
                          (600, 100, 0)])

    def test_audio_beyond_one_is_clamped_and_counted(self):
        service = self.service('[[pipeline]]\nslots = 100\nchunk = { size = 4 }\n')
        tap = self.tap(service, "default", "--data", "crc32c")
        with self.moved(service, {}), RawClient(service.port, upgrade("/v1/stream?format=f32le")) as client:
            client.opened().send(frame(BINARY, struct.pack("<4f", 1e30, -1e30, 1e-40, -0.0)))
            client.send(text(type="end"))
            self.assertEqual(client.rest()[-1]["frames"], 4)
        from conformance_test import crc32c
        self.assertEqual(json.loads(tap.lines[0])["crc32c"],
                         crc32c(array.array("h", [32767, -32768, 0, 0]).tobytes()))

    def test_half_a_frame_is_carried_over_and_at_the_end_rejected(self):
        service = self.service()
        self.tap(service)
        with self.moved(service, {("messages_rejected", "format"): 1}):
            with RawClient(service.port, upgrade()) as client:
                audio = samples(0, 1600) + b"\1"
                client.opened().send(frame(BINARY, audio[:1]) + frame(BINARY, audio[1:]) + text(type="end"))
                messages = client.rest()
        self.assertEqual(sorted(m["type"] for m in messages),
                         ["closed", "ready", "rejected", "result", "result"])
        rejected = next(m for m in messages if m["type"] == "rejected")
        self.assertEqual((rejected["code"], rejected["frames"]), ("values", 0))


if __name__ == "__main__":
    unittest.main()
